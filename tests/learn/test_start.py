"""A model that begins with the weights of another: what is taken, what is said, what is refused."""

import json

import pytest
import torch
from tests.encode.tiny import copy
from tests.learn.small import model, training_set
from tests.learn.test_trainer import Noted, StopAt, Stopped, log, stage

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, TokenVectors, Transformer, WholeWords
from counterpoint.errors import ArtifactError
from counterpoint.files import sha256_file
from counterpoint.learn import Job, train
from counterpoint.learn.start import Start
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.transform import Whitening


def other_heads(folder, **changes):
    """Another first layers' weights, one head in common with `small.model` and one that is new."""
    heads = {"tokens": TokenVectors(projection=Linear(8)), "mean": Mean(projection=Linear(5))}
    return Model(DualEncoder(Encoder(Transformer(str(folder), random=True, **changes), heads)))


def token_encoder(folder):
    heads = {"tokens": TokenVectors(projection=Linear(8))}
    return Encoder(Transformer(str(folder), layers=2), heads)


@pytest.fixture
def saved(tiny_bert_folder, tmp_path):
    """A model with token vectors on two layers, saved."""
    encoder = token_encoder(tiny_bert_folder)
    Model(DualEncoder(encoder)).save(tmp_path / "first")
    return tmp_path / "first", encoder.state_dict()


def test_what_fits_by_name_and_shape_is_taken(saved, tiny_bert_folder):
    folder, theirs = saved
    made = other_heads(tiny_bert_folder, layers=3).setup()
    before = {name: tensor.clone() for name, tensor in made.state_dict().items()}
    found = Start.find(str(folder)).give(made)
    named = {f"encoder.query.{name}": tensor for name, tensor in theirs.items()}
    for name, tensor in made.state_dict().items():
        assert torch.equal(tensor, named.get(name, before[name]))
        assert (name in found.taken) == (name in named) != (name in found.new)
    assert found.new and all("layer.2." in name or "heads.mean" in name for name in found.new)
    assert found.unused == found.other_shapes == ()
    fewer = other_heads(tiny_bert_folder, layers=1).setup()
    left = Start.find(str(folder)).give(fewer).unused
    assert left and all("layer.1." in name for name in left)


def test_a_part_may_have_another_name_there(saved, tiny_bert_folder):
    """Token vectors' projection goes on as that of whole words (ColBERTer)."""
    folder, theirs = saved
    heads = {"words": WholeWords(projection=Linear(8))}
    made = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=2), heads))).setup()
    found = Start.find(str(folder), {"query.heads.tokens.": "query.heads.words."}).give(made)
    assert found.new == found.unused == ()
    for name in ("weight", "bias"):
        taken = made.state_dict()[f"encoder.query.heads.words.projection.linear_.{name}"]
        assert torch.equal(taken, theirs[f"heads.tokens.projection.linear_.{name}"])


def test_other_shapes_are_left_and_listed(saved, tiny_bert_folder):
    folder, _ = saved
    heads = {"tokens": TokenVectors(projection=Linear(6))}
    made = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup()
    found = Start.find(str(folder)).give(made)
    layer = "encoder.query.heads.tokens.projection.linear_"
    assert sorted(found.other_shapes) == [f"{layer}.bias", f"{layer}.weight"]
    assert f"of another shape: {layer}." in str(found)


def test_an_encoder_that_was_saved_alone(saved, tiny_bert_folder, tmp_path):
    _, theirs = saved
    DualEncoder(token_encoder(tiny_bert_folder)).save(tmp_path / "alone")
    made = other_heads(tiny_bert_folder).setup()
    assert len(Start.find(str(tmp_path / "alone")).give(made).taken) == len(theirs)


def test_what_cannot_be_a_start(saved, tiny_bert_folder, tmp_path):
    made = other_heads(tiny_bert_folder).setup()
    with pytest.raises(ArtifactError, match="no such folder"):
        Start.find(str(tmp_path / "nowhere"))
    with pytest.raises(ArtifactError, match="neither a run nor a model"):
        Start.find(str(tiny_bert_folder))
    Whitening(2).save(tmp_path / "whitening")
    with pytest.raises(ArtifactError, match="no weight here fits the model: it has encoder.query"):
        Start.find(str(tmp_path / "whitening")).give(made)
    odd = copy(tiny_bert_folder, tmp_path)
    text = (odd / "tokenizer.json").read_text()
    (odd / "tokenizer.json").write_text(text.replace('"lowercase": true', '"lowercase": false'))
    other = other_heads(odd).setup()
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(ArtifactError, match=r"differs from that of the model's encoder\.query\.backbone"):
        Start.find(str(saved[0])).give(other)
    assert all(torch.equal(tensor, before[name]) for name, tensor in other.state_dict().items())


def test_a_run_starts_from_it_once_and_writes_it_down(saved, tiny_bert_folder, tmp_path):
    """Taken up after a crash it goes on from its checkpoint, not from the start again."""
    folder, theirs = saved
    start = Start.find(str(folder))

    def job(name, **changes):
        (tmp_path / name).mkdir(exist_ok=True)
        made = model(tiny_bert_folder)
        settings = {"steps": 6, "checkpoint_every": 2, **changes}
        return Job(made, (stage(**settings),), training_set(), tmp_path / name, start=start)

    heard = Noted()
    train(job("still", lr=0.0), reporter=heard)
    written = json.loads((tmp_path / "still" / "start.json").read_text())
    assert written["source"] == str(folder)
    assert written["sha256"] == sha256_file(folder / "weights.safetensors")
    taken, unused = written["taken"], written["unused"]
    assert not written["new"] and {*taken, *unused} == {f"encoder.query.{name}" for name in theirs}
    said = f"Started from {folder}: {len(taken)} weights taken; not used: "
    assert heard.notes[0].startswith(said)
    ended = Part.load(tmp_path / "still" / "model").state_dict()
    for name in taken:
        assert torch.equal(ended[name], theirs[name.removeprefix("encoder.query.")])
    train(job("whole"))
    with pytest.raises(Stopped):
        train(job("cut"), reporter=StopAt(5))
    train(job("cut"), resume=True)
    assert log(tmp_path / "cut") == log(tmp_path / "whole")
