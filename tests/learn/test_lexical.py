"""BM25's vectors in training: counted once, taken up again, the same in chunks, seen by losses only."""

import numpy as np
import pytest
import torch
from tests.index.test_lexical import bm25_by_loops
from tests.learn.small import development_set, judge, training_set
from tests.learn.test_trainer import StopAt, Stopped, job, log, losses, same, weights

from counterpoint.errors import ConfigError
from counterpoint.index import BM25Vectors
from counterpoint.learn import (
    BM25Terms,
    Contrastive,
    FromData,
    Loss,
    NegativeLogLikelihood,
    Orthogonality,
    ResidualMargin,
    Train,
    bm25_scores,
    train,
)
from counterpoint.score import Dot
from counterpoint.search import LEXICAL


def stage(objective=None, **changes):
    objective = objective or Contrastive() + Orthogonality("mean") + 0.5 * ResidualMargin()
    settings = {"steps": 9, "batch": 4, "lr": 3e-3, "precision": "fp32", "lexical": BM25Terms(), **changes}
    return Train(objective, Dot("mean"), negatives=(FromData(1),), **settings)


class Seen(Loss):
    """Keeps what it saw."""

    needs = frozenset({"lexical"})
    steps = []

    def forward(self, step):
        self.steps.append(step)
        return step.scores.sum() * 0


def test_a_step_has_the_bm25_of_every_pair(tiny_bert_folder, tmp_path):
    Seen.steps.clear()
    train(job(tiny_bert_folder, tmp_path / "run", stage(Seen(), steps=3)))
    data = training_set()
    texts = list(data.documents.values())
    by_loops = {query: bm25_by_loops(query, texts) for query in data.queries.values()}
    terms = BM25Terms().start(texts, lambda done: None)
    for step in Seen.steps:
        found = bm25_scores(step, "test")
        assert found.shape == step.scores.shape and not found.requires_grad
        # Which texts are in the batch is known by their vectors.
        for i in range(len(found)):
            row = found[i].tolist()
            assert any(
                all(min(abs(s - t) for t in scores) < 1e-4 for s in row) and max(row) > 0
                for scores in by_loops.values()
            )
        assert set(step.q) == set(step.d) == {"mean", LEXICAL}
    assert terms.vectors.statistics.documents == len(texts)


def test_chunks_change_nothing(tiny_bert_folder, tmp_path):
    for name, chunk in (("whole", None), ("chunked", 2)):
        run = job(tiny_bert_folder, tmp_path / name, stage(steps=4, chunk=chunk))
        for module in run.model.modules():
            if type(module).__name__ == "Dropout":
                module.p = 0.0
        train(run)
    for one, other in zip(losses(tmp_path / "whole"), losses(tmp_path / "chunked"), strict=True):
        assert one[2] == pytest.approx(other[2], rel=1e-4)


def test_every_term_of_the_objective_is_logged(tiny_bert_folder, tmp_path):
    train(job(tiny_bert_folder, tmp_path / "run", stage()))
    last = [row for row in log(tmp_path / "run") if "loss" in row][-1]
    terms = [last[name] for name in ("contrastive", "orthogonality", "residual_margin")]
    assert last["loss"] == pytest.approx(sum(terms), rel=1e-5)
    assert not any(LEXICAL in name for row in log(tmp_path / "run") for name in row), "no watch on numbers"


def test_an_interrupted_run_takes_the_counts_up(tiny_bert_folder, tmp_path, monkeypatch):
    def fresh(folder):
        return job(
            tiny_bert_folder, folder, stage(checkpoint_every=3), development=development_set(),
            measures=("RR@10",),
        )  # fmt: skip

    train(fresh(tmp_path / "whole"))
    with pytest.raises(Stopped):
        train(fresh(tmp_path / "cut"), reporter=StopAt(7))
    monkeypatch.setattr(BM25Vectors, "fit", None)  # counting again would fail
    train(fresh(tmp_path / "cut"), resume=True)
    assert log(tmp_path / "cut") == log(tmp_path / "whole")
    assert same(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_the_state_is_the_counts():
    texts = list(training_set().documents.values())
    terms = BM25Terms(k1=1.2, b=0.75, analyzer="none", repeats=True)
    counted = terms.start(texts, lambda done: None)
    again = terms.restore(*counted.state())
    for side in ("query", "document"):
        one, other = (
            counted.of(["the red cat cat", ""], side, "cpu"),
            again.of(["the red cat cat", ""], side, "cpu"),
        )
        assert torch.equal(one.values, other.values) and torch.equal(one.ids, other.ids)
        assert one.mask.sum(1).tolist() == [3, 0]
    assert np.array_equal(counted.vectors.statistics.terms, again.vectors.statistics.terms)


def test_a_batch_without_any_term():
    counted = BM25Terms().start(["red cat"], lambda done: None)
    assert counted.of(["", "the"], "query", "cpu").mask.shape == (2, 0)


def test_what_is_wrong_is_refused(tiny_bert_folder, tmp_path):
    with pytest.raises(ConfigError, match="k1 must be at least 0") as caught:
        BM25Terms(k1=-1, b=2)
    assert len(caught.value.faults) == 2
    with pytest.raises(ConfigError, match="choose english, english-long, simple or none"):
        BM25Terms(analyzer="klingon")
    with pytest.raises(ConfigError, match="no lexical vectors"):
        train(job(tiny_bert_folder, tmp_path / "without", stage(lexical=None)))
    pairs = Train(NegativeLogLikelihood(), negatives=(FromData(1),), lexical=BM25Terms(), steps=2, batch=4)
    with pytest.raises(ConfigError, match="lexical needs vectors, and a cross-encoder makes none"):
        train(job(tiny_bert_folder, tmp_path / "pairs", pairs, model=judge(tiny_bert_folder)))
