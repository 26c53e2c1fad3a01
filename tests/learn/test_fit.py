"""Fitted projections: the principal directions of what a head's layer is fed, by loops."""

import math

import numpy as np
import pytest
import torch
from tests.learn.small import training_set
from tests.learn.test_trainer import Noted

from counterpoint.encode import (
    DualEncoder,
    EncodeOptions,
    Encoder,
    Linear,
    Mean,
    Static,
    TextInput,
    Transformer,
    WholeWords,
)
from counterpoint.errors import ConfigError
from counterpoint.learn import Contrastive, Fit, Job, Train, train
from counterpoint.model import Model
from counterpoint.score import MaxSim, ZScore
from counterpoint.transform import Whitening

FP32 = EncodeOptions(precision="fp32")


def model(folder, *, document=None, **heads):
    return Model(DualEncoder(Encoder(Transformer(str(folder), layers=1), heads), document))


def fitted(folder, made, *stages):
    train(Job(made, stages, training_set(48), folder))
    return made


@pytest.mark.parametrize("normalise", [False, True])
def test_the_projection_becomes_the_leading_directions_of_its_input(tiny_bert_folder, tmp_path, normalise):
    heads = {"words": WholeWords(projection=Linear(3), normalise=normalise), "mean": Mean()}
    made = fitted(tmp_path, model(tiny_bert_folder, **heads), Fit("words", what="projection", documents=None))
    plain = model(tiny_bert_folder, words=WholeWords())
    texts = list(training_set(48).documents.values())
    second = np.zeros((16, 16))
    for row in plain.encode_document(texts, FP32)["words"].values.astype(np.float64):
        second += np.outer(row, row)
    values, directions = np.linalg.eigh(second)
    assert values[-4] < 0.95 * values[-3], "the third direction is well told from the fourth"
    linear = made.encoder.query.heads["words"].projection.linear_
    weight = linear.weight.detach().numpy()
    best = directions[:, -3:]
    np.testing.assert_allclose(
        weight.T @ weight, best @ best.T, atol=5e-3
    )  # encoded in bf16 where that is faster
    assert not linear.bias.any()


def test_transforms_are_still_fitted_on_what_stands_before_them(tiny_bert_folder, tmp_path):
    made = model(tiny_bert_folder, mean=Mean(projection=Linear(4)))
    made = Model(made.encoder, {"mean": [Whitening(4)]})
    with pytest.warns(UserWarning, match="fitted on 48 vectors of 16 components"):
        fitted(tmp_path, made, Fit("mean", what="projection"), Fit("mean", name="whiten"))
    texts = list(training_set(48).documents.values())
    values = made.encode_document(texts, FP32)["mean"].values
    np.testing.assert_allclose(np.cov(values.T), np.eye(4), atol=0.05)


@pytest.mark.parametrize(
    "heads", [{"mean": Mean()}, {"mean": Mean(projection=Linear(4, activation="tanh"))}], ids=["none", "tanh"]
)
def test_without_a_plain_projection_there_is_nothing_to_fit(tiny_bert_folder, tmp_path, heads):
    with pytest.raises(ConfigError, match=r"fit: 'mean' needs one encoder for both sides and a head with"):
        fitted(tmp_path, model(tiny_bert_folder, **heads), Fit("mean", what="projection"))


def with_static(folder):
    query = TextInput(12, marker="[unused0]", expand_to=12)
    document = TextInput(24, marker="[unused1]")
    head = Static(projection=Linear(4), normalise=True)
    return Model(DualEncoder(Encoder(Transformer(str(folder), layers=1), {"l": head}, query, document)))


def test_idf_of_the_training_documents(tiny_bert_folder, tmp_path):
    """ln(1 + (N − df + ½)/(df + ½)) by loops, in every scorer of every later stage; special tokens 0."""
    scorer, of_loss = ZScore(MaxSim("l", idf=1.0)), MaxSim("l", idf=1.0)
    stage = Train(Contrastive(scorer=of_loss), scorer, steps=1, batch=4)
    made = fitted(tmp_path, with_static(tiny_bert_folder), Fit("l", what="idf", documents=None), stage)
    tokenizer, texts = made.encoder.query.backbone.tokenizer, list(training_set(48).documents.values())
    tokens = made.encoder.query.tokens(texts, "document")
    standing = [{tokenizer.name_of(number) for number in row} for row in tokens.ids.tolist()]
    special = ("[CLS]", "[SEP]", "[PAD]", "[MASK]", "[unused0]", "[unused1]")
    names = ["the", "house", "dog", "query", "z", "##z", *special]
    for part in (scorer.of, of_loss):
        ids = torch.tensor([[tokenizer.id_of(name) for name in names]])
        found = part._idf_of(made(made.encoder.query.tokens(["the"], "query"))["l"].take(torch.tensor([0])))
        assert found.shape == (1, 12)
        known = dict(zip(part.words_.tolist(), part.idf_.tolist(), strict=True))
        for name, number in zip(names, ids[0].tolist(), strict=True):
            df = sum(name in row for row in standing)
            expected = 0.0 if name in special else math.log(1 + (48 - df + 0.5) / (df + 0.5))
            assert known.get(number, part.unseen_.item()) == pytest.approx(expected, abs=1e-6), name
        assert found[0, 0] == found[0, 1] == found[0, -1] == 0 and found[0, 2] > 0  # [CLS], [Q], [MASK], the


def test_idf_that_nobody_weighs_by(tiny_bert_folder, tmp_path):
    stage = Train(Contrastive(), MaxSim("l"), steps=1, batch=4)
    job = Job(with_static(tiny_bert_folder), (Fit("l", what="idf"), stage), training_set(), tmp_path)
    heard = Noted()
    train(job, reporter=heard)
    assert heard.notes[0] == "fit: no scorer weights 'l' by idf; nothing is counted"
