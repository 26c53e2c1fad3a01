"""Damage to a saved model: an error that says so, or the very vectors of the intact one."""

import json
import re
import tomllib

import numpy as np
import pytest
import tomli_w
import torch
from safetensors.torch import load_file, save_file

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    Linear,
    Mean,
    TextInput,
    Transformer,
    WholeWords,
    load_encoder,
)
from counterpoint.errors import ArtifactError
from counterpoint.learn.start import Start
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.transform import Normalise, Whitening
from tests.damage import damaged, fuzz

TEXTS = ["the cat sat on the mat", "", "red dogs run, blue dogs sit"]


@pytest.fixture(scope="module")
def model(tiny_bert_folder):
    text = TextInput(max_length=32)
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    encoder = DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads, query=text, document=text))
    search = {"weights": {"mean": 0.25, "words": 0.75}}
    return Model(encoder.setup(), {"words": [fitted()]}, search=search).setup()


def fitted():
    rows = np.random.default_rng(0).normal(size=(200, 16)).astype(np.float32)
    return Whitening(16, rank=4, normalise=True).fit([rows])


@pytest.fixture
def folder(model, tmp_path):
    model.save(tmp_path / "model")
    return tmp_path / "model"


def answers(folder):
    """All that a model decides: its vectors, and how an index of it is built and searched."""
    loaded = load_model(folder)
    made = {**loaded.encode_document(TEXTS), "query": loaded.encode_query(TEXTS)["words"]}
    arrays = [[x.values.tolist(), x.offsets.tolist(), x.ids is None or x.ids.tolist()] for x in made.values()]
    return [arrays, loaded.fingerprint(), loaded.to_dict(), loaded.index_settings()]


def as_before(folder):
    """As earlier versions wrote it: without checksums of files and settings."""
    document = tomllib.loads((folder / "part.toml").read_text())
    kept = {key: value for key, value in document.items() if key not in ("files", "checksum", "same")}
    (folder / "part.toml").write_text(tomli_w.dumps(kept))


def check(folder, trials, say):
    tally, wrong = fuzz(folder, lambda: answers(folder), trials)
    say(f"saved model: {tally.total()} trials, {dict(tally)}")
    assert not wrong, "\n".join(wrong[:20])
    return tally


def test_damage_is_refused_or_makes_no_difference(folder, say):
    assert check(folder, 3, say)["refused"] > 10


@pytest.mark.long
def test_damage_anywhere(folder, say):
    tally = check(folder, 120, say)
    assert tally.total() >= 500 and tally["refused"] > 400


def test_every_changed_weight_is_found(folder):
    """In the last byte of each tensor, with the checksums of files and without them."""
    for _ in range(2):
        tensors = load_file(folder / "weights.safetensors")
        for name, tensor in tensors.items():
            changed = tensor.clone()
            changed.view(-1).view(torch.uint8)[-1] ^= 1
            save_file({**tensors, name: changed}, folder / "weights.safetensors")
            message = "settings or tokenizer were edited or damaged since it was saved; copy .*fingerprint"
            with pytest.raises(ArtifactError, match=message):
                Part.load(folder)
        save_file(tensors, folder / "weights.safetensors")
        Part.load(folder)
        as_before(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_weights_that_are_not_finite_are_refused(tmp_path, value, dtype):
    whitening = fitted()
    with torch.no_grad():
        whitening.to(dtype).matrix_[3, 1] = value
    whitening.save(tmp_path / "part")
    message = r"weights.safetensors: weight 'matrix_' has 1 values of 64 that are NaN or infinite"
    with pytest.raises(ArtifactError, match=message):
        Part.load(tmp_path / "part")


def test_large_weights_are_not_taken_for_infinite(tmp_path):
    """Their sum is, in the type that they have."""
    whitening = fitted()
    with torch.no_grad():
        whitening.half().matrix_.fill_(60_000)
    whitening.save(tmp_path / "part")
    assert (Part.load(tmp_path / "part").state_dict()["matrix_"] == 60_000).all()


def test_weights_of_other_libraries_are_refused_too(tiny_bert_folder, tmp_path):
    for path in tiny_bert_folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    tensors = load_file(tmp_path / "model.safetensors")
    name = next(name for name in tensors if name.endswith("layer.1.output.dense.weight"))
    tensors[name][0, :2] = float("nan")
    save_file(tensors, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ArtifactError, match=r"layer.1.output.dense.weight' has 2 values of 512 that are NaN"):
        load_encoder(tmp_path)


def test_what_was_edited_is_named(folder):
    text = (folder / "part.toml").read_text()
    (folder / "part.toml").write_text(text.replace("mean = 0.25", "mean = 0.5"))
    with pytest.raises(ArtifactError, match=r"part.toml: \[part\] was edited or damaged since it was saved"):
        Part.load(folder)
    (folder / "part.toml").write_text(text)
    config = next(folder.rglob("config.json"))
    kept = config.read_text()
    config.write_text(json.dumps({**json.loads(kept), "layer_norm_eps": 0.5}))
    with pytest.raises(ArtifactError, match=r"config.json: was edited or damaged since it was saved"):
        Part.load(folder)
    config.unlink()
    with pytest.raises(ArtifactError, match=r"config.json: this file is missing; the model folder"):
        Part.load(folder)
    config.write_text(kept)
    Part.load(folder)


@pytest.mark.parametrize("name", ["files", "same"])
def test_tables_of_another_type_are_refused(folder, name):
    document = tomllib.loads((folder / "part.toml").read_text())
    (folder / "part.toml").write_text(tomli_w.dumps({**document, name: [1]}))
    with pytest.raises(ArtifactError, match=rf"\[{name}\] must be a table, found a list"):
        Part.load(folder)


@pytest.mark.parametrize("same", [{"encoder": 3}, {"nowhere": "encoder"}, {"encoder.query": "encoder"}])
def test_parts_that_differ_are_not_joined(folder, same):
    document = tomllib.loads((folder / "part.toml").read_text())
    (folder / "part.toml").write_text(tomli_w.dumps({**document, "same": same}))
    with pytest.raises(ArtifactError, match=r"\[same\] says that .*, but they differ"):
        Part.load(folder)


def test_a_saved_model_has_the_fingerprint_of_the_one_that_was_saved(model, folder):
    """Also where one part has two places in it, and where an earlier version saved it."""
    assert model.encoder.query.query is model.encoder.query.document
    assert Part.load(folder).fingerprint() == model.fingerprint()
    as_before(folder)
    assert Part.load(folder).fingerprint() == model.fingerprint()


def test_a_fingerprint_is_not_made_twice(folder, monkeypatch):
    loaded = Part.load(folder)
    expected = loaded.fingerprint()
    with monkeypatch.context() as patch:
        patch.setattr("counterpoint.part.hashlib.sha256", lambda *given: pytest.fail("hashed again"))
        assert loaded.fingerprint() == expected
    loaded.state_dict()["transforms.words.0.mean_"].data[0] += 1  # which no version counter of torch sees
    assert loaded.fingerprint() != expected


def test_parts_of_a_damaged_model_are_refused(model, folder):
    """A run that starts from its weights, and an encoder that takes its backbone, do not load all of it."""
    with damaged(folder / "weights.safetensors", np.random.default_rng(5)):
        message = re.escape("weights.safetensors: was edited or damaged since it was saved")
        with pytest.raises(ArtifactError, match=message):
            Start.find(str(folder)).give(model)
        with pytest.raises(ArtifactError, match=message):
            Transformer(str(folder)).setup()
    Transformer(str(folder)).setup()


def test_print_shows_the_arguments_that_differ_from_their_defaults():
    assert repr(Whitening(4, rank=2)) == "Whitening(dim=4, rank=2)"
    assert repr(Normalise()) == "Normalise()"
    shown = repr(Cls(projection=Linear(3), normalise=True))
    assert shown == "Cls(\n  normalise=True\n  (projection): Linear(dim=3)\n)"
