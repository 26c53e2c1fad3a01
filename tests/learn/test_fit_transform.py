"""Maps fitted after a model, of its rows or of tokens before their mean, each again by loops."""

import numpy as np
import pytest
import torch
from tests.learn.small import development_set, training_set

from counterpoint.encode import (
    Cls,
    DualEncoder,
    EncodeOptions,
    Encoder,
    Linear,
    Mean,
    TokenVectors,
    Transformer,
    WholeWords,
)
from counterpoint.errors import ConfigError
from counterpoint.learn import (
    Contrastive,
    Fit,
    FitTexts,
    Job,
    Train,
    fit_transform,
    raw_length,
    recentre_transform,
    train,
)
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.score import Dot
from counterpoint.transform import FlowTraining, Nice, Normalise, Whitening

FP32 = EncodeOptions(precision="fp32")


def model(folder, *, document=None, **heads):
    return Model(DualEncoder(Encoder(Transformer(str(folder), layers=1), heads), document))


def fitted(folder, made, *stages):
    train(Job(made, stages, training_set(48), folder, development=development_set(48), measures=("RR@10",)))
    return made


DOCUMENTS, QUERIES = (
    list(texts.values()) for texts in (training_set(48).documents, training_set(48).queries)
)


def nice(dim):
    return [Nice(dim, width=8, layers=1, fitting=FlowTraining(steps=20, batch=64, lr=1e-2))]


def whiten(dim):
    return [Whitening(dim)]


def states(folder, texts):
    """The rows that a mean is taken of, text by text."""
    packed = model(folder, tokens=TokenVectors()).encode_document(texts, FP32)["tokens"]
    return [packed.values[a:b] for a, b in zip(packed.offsets, packed.offsets[1:], strict=False)]


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.mark.filterwarnings("ignore:Whitening")
def test_training_passes_over_maps_that_a_later_stage_fits(tiny_bert_folder, tmp_path):
    """And the maps are fitted to what was trained, on documents and queries where that is asked for."""
    heads = {"mean": Mean(tokenwise=[Whitening(16, rank=8)]), "cls": Cls()}
    made = Model(
        model(tiny_bert_folder, **heads).encoder, {"cls": [Whitening(16)]}, {"weights": {"mean": 1.0}}
    )
    stages = [
        Train(Contrastive(), Dot("mean"), steps=2, batch=4, evaluate_every=1, lr=1e-3),
        Fit("mean", what="tokenwise", documents=None, queries=True),
        Fit("cls", name="whiten", documents=20),
    ]
    made = fitted(tmp_path, made, *stages)
    tokens = DualEncoder(Encoder(made.encoder.query.backbone, {"tokens": TokenVectors()}))
    rows = np.concatenate(
        [tokens.encode_document(DOCUMENTS)["tokens"].values, tokens.encode_query(QUERIES)["tokens"].values]
    )
    whitening = made.encoder.query.heads["mean"].tokenwise[0]
    assert whitening.count_ == len(rows) and made.steps("cls")[0].count_ == 20
    np.testing.assert_allclose(whitening.mean_, rows.mean(0), atol=2e-3)
    again = load_model(tmp_path / "model")
    assert again.sets["mean"].dim == 8 and again.fingerprint() == made.fingerprint()
    assert again.encode_query(QUERIES)["mean"].values.shape == (48, 8)


@pytest.mark.filterwarnings("ignore:Whitening")
@pytest.mark.parametrize("declare", [nice, lambda dim: [Whitening(dim, rank=6)]], ids=["flow", "whitening"])
@pytest.mark.parametrize("level", ["token", "sequence", None])
@pytest.mark.filterwarnings("ignore:Nice")
def test_a_map_behind_a_mean_by_loops(tiny_bert_folder, tmp_path, level, declare):
    made = Model(model(tiny_bert_folder, mean=Mean()).encoder, {"mean": [Normalise()]}).setup()
    told = []
    made = fit_transform(made, "mean", declare, FitTexts(DOCUMENTS, QUERIES, told.append), level)
    assert told[-1] == len(DOCUMENTS) + len(QUERIES)
    made.save(tmp_path / "mapped")
    again = load_model(tmp_path / "mapped")
    found = again.encode_document(DOCUMENTS, FP32)["mean"].values
    (step,) = made.encoder.query.heads["mean"].tokenwise if level == "token" else made.steps("mean")[:1]
    for text, rows in enumerate(states(tiny_bert_folder, DOCUMENTS[:6])):
        if level == "token":
            wanted = sum(mapped(step, row) for row in rows) / len(rows)
        else:
            wanted = mapped(step, sum(rows) / len(rows))
        np.testing.assert_allclose(found[text], unit(wanted), atol=2e-4)
    assert made.has_unit_length("mean") and made.sets["mean"].dim == step.out_dim(16)


def mapped(step, row):
    if isinstance(step, Whitening):
        return (row - step.mean_.numpy()) @ step.matrix_.numpy()
    return step.latent(torch.from_numpy(row)[None])[0][0].numpy()


@pytest.mark.filterwarnings("ignore:Whitening")
def test_maps_of_rows_stand_behind_each_other(tiny_bert_folder):
    made = Model(model(tiny_bert_folder, words=WholeWords()).encoder).setup()
    for rank in (10, 4):
        fit_transform(made, "words", lambda dim, rank=rank: [Whitening(dim, rank=rank)], FitTexts(DOCUMENTS))
    kinds = [type(step).__name__ for step in made.steps("words")]
    assert kinds == ["Whitening", "Whitening", "Normalise"] and made.sets["words"].dim == 4
    values = made.encode_document(DOCUMENTS, FP32)["words"].values
    np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Whitening")
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.filterwarnings("ignore:Nice")
def test_several_maps_are_fitted_in_turn(tiny_bert_folder, level):
    made = model(tiny_bert_folder, mean=Mean(normalise=True)).setup()
    fit_transform(
        made, "mean", lambda dim: [Whitening(dim, rank=6, power=0.0), *nice(6)], FitTexts(DOCUMENTS), level
    )
    steps = made.encoder.query.heads["mean"].tokenwise if level == "token" else made.steps("mean")
    kept, others = (texts.documents for texts in FitTexts(DOCUMENTS).divided())
    assert sorted([*kept, *others]) == sorted(DOCUMENTS) and len(others) == 2
    rows, held_out = (np.concatenate(states(tiny_bert_folder, texts)) for texts in (kept, others))
    if level == "sequence":
        rows, held_out = (
            np.array([each.mean(0) for each in states(tiny_bert_folder, texts)]) for texts in (kept, others)
        )
    turned = (rows - rows.mean(0)) @ steps[0].matrix_.numpy()
    assert made.sets["mean"].dim == 6 and steps[0].count_ == steps[1].count_ == len(rows)
    np.testing.assert_allclose(steps[1].mean_, turned.mean(0), atol=5e-3)
    np.testing.assert_allclose(steps[1].deviation_, turned.std(0, ddof=1), rtol=0.02)
    bits = steps[1].bits
    assert (bits.rows, bits.rows_held_out) == (len(rows), len(held_out))
    unseen = torch.from_numpy((held_out - rows.mean(0)) @ steps[0].matrix_.numpy())
    assert bits.held_out == pytest.approx(steps[1].bits_per_dimension(unseen), abs=0.02)


@pytest.mark.filterwarnings("ignore:Whitening")
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.filterwarnings("ignore:Nice")
def test_maps_are_recentred_by_loops(tiny_bert_folder, tmp_path, level):
    """The rotation takes the mean of other texts' rows, and the flow after it stays as it is."""
    made = model(tiny_bert_folder, mean=Mean(normalise=True)).setup()
    maps = [Whitening(16, rank=6, power=0.0), *nice(6)]
    fit_transform(made, "mean", lambda dim: maps, FitTexts(DOCUMENTS), level)
    before, values = made.fingerprint(), maps[1].state_dict()
    values = {name: value.clone() for name, value in values.items()}
    recentre_transform(made, "mean", FitTexts(DOCUMENTS[:7], QUERIES[:5]))
    texts = [*DOCUMENTS[:7], *QUERIES[:5]]
    rows = np.concatenate(states(tiny_bert_folder, texts))
    if level == "sequence":
        rows = np.array([rows.mean(0) for rows in states(tiny_bert_folder, texts)])
    np.testing.assert_allclose(maps[0].mean_, rows.mean(0), atol=1e-2)  # of bfloat16
    assert maps[0].count_ == maps[1].count_ > len(rows) and made.fingerprint() != before
    assert all(torch.equal(value, values[name]) for name, value in maps[1].state_dict().items())
    made.save(tmp_path / "recentred")
    assert load_model(tmp_path / "recentred").fingerprint() == made.fingerprint()


@pytest.mark.filterwarnings("ignore:Whitening")
def test_every_map_of_a_set_is_recentred_in_turn(tiny_bert_folder):
    """Of tokens, of the mean, and after another one; those that do not centre are none of them."""
    made = model(tiny_bert_folder, mean=Mean(), cls=Cls()).setup()
    fit_transform(made, "mean", whiten, FitTexts(DOCUMENTS), "token")
    for _ in range(2):
        fit_transform(made, "mean", lambda dim: [Whitening(dim, rank=5)], FitTexts(DOCUMENTS))
    before = [step.mean_.clone() for step in made.steps("mean") if isinstance(step, Whitening)]
    wrong = made.encode_query(QUERIES, FP32)["mean"].values.mean(0)
    recentre_transform(made, "mean", FitTexts(QUERIES))
    after = [step.mean_ for step in made.steps("mean") if isinstance(step, Whitening)]
    assert len(after) == 2 and not any(old.equal(new) for old, new in zip(before, after, strict=True))
    (tokens,) = made.encoder.query.heads["mean"].tokenwise
    there, here = (np.concatenate(states(tiny_bert_folder, texts)).mean(0) for texts in (DOCUMENTS, QUERIES))
    np.testing.assert_allclose(tokens.mean_, here, atol=1e-2)  # of bfloat16
    assert np.abs(here - there).max() > 0.1
    right = made.encode_query(QUERIES, FP32)["mean"].values.mean(0)
    assert np.linalg.norm(right) < np.linalg.norm(wrong) / 2
    fit_transform(made, "cls", lambda dim: [Whitening(dim, centre=False)], FitTexts(DOCUMENTS))
    for on, message in (("cls", "no map of 'cls' subtracts a mean"), ("x", "no vector set 'x'")):
        with pytest.raises(ConfigError, match=message):
            recentre_transform(made, on, FitTexts(QUERIES))


def test_a_fit_that_fails_leaves_the_model_as_it_was(tiny_bert_folder):
    heads = {"head": Mean(normalise=True), "step": Mean(), "cls": Cls()}
    made = Model(model(tiny_bert_folder, **heads).encoder, {"step": [Normalise()]}).setup()
    before = made.fingerprint()
    for on in heads:
        with pytest.raises(ConfigError):
            fit_transform(made, on, lambda dim: [Nice(dim + 1)], FitTexts(DOCUMENTS))
        assert made.fingerprint() == before
    for on, unit_before in (("head", True), ("step", True), ("cls", False)):
        undo = raw_length(made, on)
        assert not made.has_unit_length(on) and (made.fingerprint() == before) != unit_before
        undo()
        assert made.has_unit_length(on) == unit_before and made.fingerprint() == before


def test_a_projected_mean_is_mapped_in_its_own_space(tiny_bert_folder):
    made = model(tiny_bert_folder, mean=Mean(Linear(6), normalise=True)).setup()
    fit_transform(made, "mean", nice, FitTexts(DOCUMENTS), "token")
    assert made.encoder.query.heads["mean"].tokenwise[0].dim == 6 and not made.steps("mean")


@pytest.mark.filterwarnings("ignore:Whitening")
def test_what_cannot_be_mapped_is_named(tiny_bert_folder, tmp_path):
    def refused(made, on, level, message):
        with pytest.raises(ConfigError, match=message):
            fit_transform(made.setup(), on, whiten, FitTexts(DOCUMENTS), level)

    made = model(tiny_bert_folder, mean=Mean(), cls=Cls(), words=WholeWords())
    refused(made, "tokens", None, "no vector set 'tokens'; this model makes mean, cls, words")
    refused(made, "words", "sequence", "'words' has several rows per text")
    refused(made, "cls", "token", "'cls' has no tokens to map; that needs one encoder")
    refused(
        model(tiny_bert_folder, mean=Mean(Linear(4, activation="tanh"))), "mean", "token", "if any, is linear"
    )
    fit_transform(made, "mean", whiten, FitTexts(DOCUMENTS))
    refused(made, "mean", "token", "map the tokens first")
    two = model(tiny_bert_folder, mean=Mean()).encoder.query
    made = model(tiny_bert_folder, document=two, mean=Mean())
    refused(made, "mean", "token", "one encoder for both sides")
    with pytest.raises(ConfigError, match=r"needs one encoder for both sides and a head Mean\(tokenwise="):
        fitted(tmp_path, model(tiny_bert_folder, mean=Mean()), Fit("mean", what="tokenwise"))


@pytest.mark.filterwarnings("ignore:Whitening")
@pytest.mark.parametrize("kind", ["gated", "routed"])
def test_weights_of_rows_outlive_a_map(tiny_bert_folder, kind):
    """The rows are whitened as they come; scaled to length 1 they would all weigh the same."""
    from counterpoint.encode import Gate, Routed, Router

    if kind == "gated":
        encoder = Encoder(Transformer(str(tiny_bert_folder), layers=1), {"words": WholeWords(normalise=True)})
        made = Model(DualEncoder(encoder, gates={"words": Gate()})).setup()
    else:
        made = model(tiny_bert_folder, words=Routed(Router("softmax", start="new"), normalise=True)).setup()
    assert made.is_weighed("words") and not made.has_unit_length("words")
    before = made.encode_document(DOCUMENTS, FP32)["words"].values
    fit_transform(made, "words", whiten, FitTexts(DOCUMENTS))
    (step,) = made.steps("words")
    assert isinstance(step, Whitening) and made.is_weighed("words")
    after = made.encode_document(DOCUMENTS, FP32)["words"].values
    np.testing.assert_allclose(after, mapped(step, before), atol=1e-4)
    assert np.ptp(np.linalg.norm(after, axis=1)) > 0.1
