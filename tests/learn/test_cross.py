"""Steps of a cross-encoder: own documents only, and a run of a few steps that learns."""

import numpy as np
import pytest
import torch
from tests.learn.losses.steps import triple

from counterpoint.encode import InteractiveEncoder, Linear, Transformer
from counterpoint.errors import ConfigError
from counterpoint.learn import (
    Contrastive,
    Example,
    MarginMSE,
    NegativeLogLikelihood,
    TrainingSet,
    cross_step,
    make_batch,
    own_pairs,
)
from counterpoint.score import Dot

DATA = TrainingSet(
    queries={"q1": "cat", "q2": "house"},
    documents={"a": "the cat sat", "b": "a red house", "c": "dogs run"},
    examples=(
        Example("q1", ("a",), ("b", "c"), {"a": 2.0, "b": -1.0, "c": 0.0}),
        Example("q2", ("b",), ("c",), {"b": 1.0, "c": 0.5}),
    ),
    relevant={"q1": frozenset("a"), "q2": frozenset("b")},
)


@pytest.fixture
def batch():
    return make_batch(DATA, [0, 1], [lambda at, rng: DATA.examples[at].negatives], np.random.default_rng(0))


def test_pairs_are_each_querys_own_documents(batch):
    assert own_pairs(batch) == (
        ["cat", "cat", "cat", "house", "house"],
        ["the cat sat", "a red house", "dogs run", "a red house", "dogs run"],
    )


def test_losses_see_the_scores_of_own_documents_and_nothing_else(batch):
    step = cross_step(torch.tensor([3.0, 1.0, 2.5, 0.0, 0.0]), batch.targets)
    assert step.scores.tolist() == [[3.0, 1.0, 2.5], [0.0, 0.0, 0.0]]
    assert step.targets.allowed.tolist() == [[True, True, True], [False, True, True]]
    expected = (0.5549569 + 0.6931472) / 2  # DPR's worked example, and ln 2
    assert NegativeLogLikelihood()(step).item() == pytest.approx(expected, abs=1e-6)
    assert Contrastive()(step).item() == pytest.approx(expected, abs=1e-6)
    with pytest.raises(ConfigError, match="no vector set 'cls'"):
        Contrastive(scorer=Dot("cls"))(step)


def test_a_missing_own_document_has_no_score():
    targets = triple([[0.0] * 3] * 2, own=[[2, 0], [1, -1]]).targets
    step = cross_step(torch.tensor([5.0, 6.0, 7.0]), targets)
    assert step.scores.tolist() == [[6.0, 0.0, 5.0], [0.0, 7.0, 0.0]]
    assert step.targets.allowed.tolist() == [[True, False, True], [False, True, False]]


def test_a_cross_encoder_learns_from_a_teachers_margins(batch, tiny_bert_folder):
    judge = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1), max_length=16).setup().eval()
    optimiser = torch.optim.AdamW(judge.parameters(), lr=1e-2)
    losses = []
    for _ in range(20):
        loss = MarginMSE()(cross_step(judge(judge.pairs(*own_pairs(batch))), batch.targets))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
