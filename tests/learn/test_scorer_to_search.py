"""What a scorer has learnt decides how the saved model's index ranks."""

import re

import numpy as np
import pytest
import torch
from tests.learn.small import development_set, training_set
from tests.learn.test_trainer import Noted, StopAt, Stopped, log

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Linear,
    Mean,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.index import Index, build_index
from counterpoint.learn import Contrastive, Fit, Job, Train, train
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.scorer_to_search import scorer_to_search, searched_otherwise
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim, Mix, Scorer, ZScore
from counterpoint.search import Searcher
from counterpoint.transform import Normalise, Whitening
from counterpoint.types import Document, Explanation
from counterpoint.vectors import Vectors


def declared(folder, *, normalise=True, search=None, transforms=None):
    heads = {"mean": Mean(normalise=normalise), "tokens": TokenVectors(projection=Linear(8), normalise=True)}
    encoder = Encoder(Transformer(str(folder), layers=1), heads, TextInput(16), TextInput(24))
    return Model(DualEncoder(encoder), transforms, search)


def mix():
    return Mix([20 * Dot("mean"), 2 * MaxSim("tokens")])


def with_gamma(scorer, gamma):
    scorer.setup()
    with torch.no_grad():
        scorer.gamma_.fill_(gamma)
    return scorer


def as_batches(encoded):
    """Packed sets as one representation for each text."""
    count = len(next(iter(encoded.values())))
    for at in range(count):
        yield {name: Vectors.pad(packed.take(np.array([at]))) for name, packed in encoded.items()}


def order_by_hand(model, scorer, queries, documents):
    """Documents by the scorer's own score, one pair at a time, highest first."""
    encoded = list(as_batches(model.encode_document(list(documents.values()))))
    found = {}
    for name, q in zip(queries, as_batches(model.encode_query(list(queries.values()))), strict=True):
        with torch.no_grad():
            scores = [scorer(q, d).item() for d in encoded]
        found[name] = sorted(zip(documents, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))
    return found


def test_an_index_of_the_saved_model_ranks_as_the_trained_scorer(tiny_bert_folder, tmp_path):
    data, scorer, heard = training_set(), mix(), Noted()
    stage = Train(Contrastive(), scorer, steps=8, batch=6, lr=0.3, learn=("scorer.*",), keep="last")
    model = declared(tiny_bert_folder, search={"weights": {"mean": 5.0, "tokens": 1.0}})
    job = Job(model, (stage,), data, tmp_path, development=development_set(), measures=("RR@10",))
    saved = load_model(train(job, reporter=heard))
    gamma = torch.sigmoid(scorer.gamma_).item()
    assert abs(gamma - 0.5) > 0.1, "it has learnt something"
    learnt = {"mean": pytest.approx(20 * gamma), "tokens": pytest.approx(2 * (1 - gamma))}
    assert saved.search["weights"] == learnt
    assert saved.search["scale"] == "none" and len(heard.notes) == 1
    assert f"searched with the scorer's weights: mean {20 * gamma:.4g}, tokens" in heard.notes[0]
    documents = (Document(name, text) for name, text in data.documents.items())
    settings = saved.index_settings(codec="float32", lexical=None)
    build_index(documents, saved, tmp_path / "index", settings)
    with Index(tmp_path / "index") as index:
        run = Searcher(index, saved).run(data.queries, 24)
    expected = order_by_hand(saved, scorer, data.queries, data.documents)
    for query, ranked in expected.items():
        found = dict(run[query])
        assert found == pytest.approx(dict(ranked), rel=1e-4)
        apart = [at for at in range(23) if ranked[at][1] - ranked[at + 1][1] > 1e-4]
        for at in apart:
            assert found[ranked[at][0]] > found[ranked[at + 1][0]]


@pytest.mark.parametrize("way", ["exact", "floor"])
def test_an_index_matches_as_the_scorer_does(tiny_bert_folder, tmp_path, way):
    data = training_set()
    scorer = with_gamma(Mix([Dot("mean"), MaxSim("tokens", exact=way == "exact", floor0=True)]), 0.5)
    model = declared(tiny_bert_folder).setup()
    assert scorer_to_search(scorer, model)[0] and model.search[way] == ["tokens"]
    model.save(tmp_path / "model")
    model = load_model(tmp_path / "model")
    documents = (Document(name, text) for name, text in data.documents.items())
    build_index(documents, model, tmp_path / "i", model.index_settings(codec="float32", lexical=None))
    with Index(tmp_path / "i") as index:
        assert (index.layouts["tokens"].kind == "exact") == (way == "exact")
        run = Searcher(index, model).run(data.queries, 24)
    for query, ranked in order_by_hand(model, scorer, data.queries, data.documents).items():
        assert dict(run[query]) == pytest.approx(dict(ranked), rel=1e-4, abs=1e-6)


def test_the_last_scorer_decides_how_a_set_matches(tiny_bert_folder):
    """A stage with exact matches after one without, and the other way round."""
    model = declared(tiny_bert_folder)
    for exact, floor, wanted in (
        (False, True, {"floor": ["tokens"]}),
        (True, True, {"floor": [], "exact": ["tokens"]}),
        (False, False, {"floor": [], "exact": []}),
    ):
        scorer = with_gamma(Mix([Dot("mean"), MaxSim("tokens", exact=exact, floor0=floor)]), 0.0)
        assert scorer_to_search(scorer, model)[0]
        assert {key: model.search[key] for key in ("exact", "floor") if key in model.search} == wanted


def test_it_is_evaluated_meanwhile_by_what_was_learnt(tiny_bert_folder, tmp_path):
    """Taken up after a crash, or in a stage that learns no weights, the weights are still there."""

    def job(name):
        (tmp_path / name).mkdir(exist_ok=True)
        first = Train(
            Contrastive(), mix(), name="first", steps=6, batch=6, lr=0.05, precision="fp32", evaluate_every=3
        )
        second = Train(Contrastive(), Dot("mean"), name="second", steps=3, batch=6, precision="fp32")
        return Job(
            declared(tiny_bert_folder), (first, second), training_set(), tmp_path / name,
            development=development_set(), measures=("RR@10",),
        )  # fmt: skip

    whole = load_model(train(job("whole")))
    with pytest.raises(Stopped):
        train(job("cut"), reporter=StopAt(2))
    with pytest.raises(Stopped):
        train(job("cut"), resume=True, reporter=StopAt(5))
    assert Checkpoint.latest(tmp_path / "cut" / "checkpoints").step == 3
    cut = load_model(train(job("cut"), resume=True))
    assert cut.search == whole.search and cut.search["weights"].keys() == {"mean", "tokens"}
    assert log(tmp_path / "cut") == log(tmp_path / "whole")


def hil(folder, *, search=None):
    """L and H, with ColBERT's marker and masks."""
    heads = {
        "l": Static(projection=Linear(8), normalise=True),
        "h": TokenVectors(projection=Linear(8), normalise=True),
    }
    query = TextInput(16, marker="[unused0]", expand_to=16)
    encoder = Encoder(Transformer(str(folder), layers=1), heads, query, TextInput(24, marker="[unused1]"))
    return Model(DualEncoder(encoder), search=search)


def z_scores():
    return ZScore(MaxSim("l", idf=1.0)) + ZScore(MaxSim("h"))


def test_an_index_of_hil_ranks_as_the_trained_scorer(tiny_bert_folder, tmp_path):
    """Σ idf·M_L/σ_L + Σ M_H/σ_H; the training collection is the searched one, so idf is the same."""
    data, scorer, heard = training_set(), z_scores(), Noted()
    stages = (
        Fit("l", what="idf", documents=None),
        Train(Contrastive(), scorer, steps=6, batch=6, lr=1e-3, keep="last", precision="fp32"),
    )
    saved = load_model(train(Job(hil(tiny_bert_folder), stages, data, tmp_path), reporter=heard))
    stds = [part.std_.item() for part in scorer.parts]
    assert stds[0] != stds[1] and 1.0 not in stds and scorer.parts[0].batches_ == 6
    assert saved.search["weights"] == {"l": pytest.approx(1 / stds[0]), "h": pytest.approx(1 / stds[1])}
    assert saved.search["idf"] == {"l": 1.0} and saved.search["scale"] == "none"
    documents = (Document(name, text) for name, text in data.documents.items())
    build_index(documents, saved, tmp_path / "i", saved.index_settings(codec="float32", lexical=None))
    with Index(tmp_path / "i") as index:
        run = Searcher(index, saved).run(data.queries, 24)
    for query, ranked in order_by_hand(saved, scorer, data.queries, data.documents).items():
        assert dict(run[query]) == pytest.approx(dict(ranked), rel=1e-4, abs=1e-5)


def test_statistics_go_back_to_the_best_model(tiny_bert_folder, tmp_path):
    """At a rate of 0 no evaluation is better than the first, before which no batch was seen."""
    for keep, batches in (("best", 0), ("last", 6)):
        scorer = ZScore(MaxSim("h"))
        stage = Train(Contrastive(), scorer, steps=6, batch=6, lr=0.0, evaluate_every=3, keep=keep)
        (tmp_path / keep).mkdir()
        job = Job(
            hil(tiny_bert_folder), (stage,), training_set(), tmp_path / keep,
            development=development_set(), measures=("RR@10",),
        )  # fmt: skip
        saved = load_model(train(job))
        assert scorer.batches_ == batches and (scorer.std_ == 1) == (keep == "best")
        assert saved.search["weights"] == {"h": pytest.approx(1 / scorer.std_.item())}


def test_hil_goes_on_after_a_crash(tiny_bert_folder, tmp_path):
    """With a table of idf and running statistics in the checkpoint."""

    def job(name):
        (tmp_path / name).mkdir(exist_ok=True)
        stages = (
            Fit("l", what="idf", documents=None),
            Train(Contrastive(), z_scores(), steps=6, batch=6, lr=1e-3, precision="fp32", checkpoint_every=3),
        )
        return Job(hil(tiny_bert_folder), stages, training_set(), tmp_path / name)

    whole = load_model(train(job("whole")))
    with pytest.raises(Stopped):
        train(job("cut"), reporter=StopAt(5))
    cut = load_model(train(job("cut"), resume=True))
    assert cut.search == whole.search and log(tmp_path / "cut") == log(tmp_path / "whole")


REASONS = {
    "BM25": ({"search": {"weights": {"lexical": 1.0, "mean": 1.0}}}, mix, "the settings also use lexical"),
    "idf": ({"search": {"weights": {}, "idf": {"tokens": 0.5}}}, mix, "the settings have idf = "),
    "ranks": ({"search": {"weights": {}, "method": "rrf"}}, mix, "the settings have method = 'rrf'"),
    "cosines": (
        {"normalise": False},
        lambda: Mix([Dot("mean", normalise=True), MaxSim("tokens")]),
        "uses cosines of mean",
    ),
    "cosines of whitened": (
        {"transforms": {"mean": [Normalise(), Whitening(8)]}},
        lambda: Mix([Dot("mean", normalise=True), MaxSim("tokens")]),
        "uses cosines of mean",
    ),
    "exact": (
        {},
        lambda: Mix([Dot("mean"), MaxSim("tokens", exact=True)]),
        "MaxSim.tokens. has exact without floor0",
    ),
    "two ways": (
        {},
        lambda: Mix([MaxSim("tokens", exact=True, floor0=True), MaxSim("tokens")]),
        "scores tokens in one way, the scorer both with and without exact or floor0",
    ),
    "a floor under one vector": (
        {},
        lambda: Mix([MaxSim("mean", floor0=True), MaxSim("tokens")]),
        "takes the plain inner product of mean, which has one vector per text",
    ),
    "another idf": (
        {"search": {"weights": {}, "idf": {"tokens": 0.5}}},
        lambda: Mix([Dot("mean"), MaxSim("tokens", idf=1.0)]),
        "the settings have idf = {'tokens': 0.5}, which the scorer does not",
    ),
    "idf once with and once without": (
        {},
        lambda: Mix([MaxSim("tokens"), MaxSim("tokens", idf=1.0)]),
        "weights tokens by idf in one way, but the scorer in several",
    ),
    "negative": ({}, lambda: Mix([Dot("mean"), -1 * MaxSim("tokens")]), "tokens is not above 0"),
}


@pytest.mark.parametrize("name", REASONS)
def test_what_no_index_can_do_is_said_and_changes_nothing(name, tiny_bert_folder):
    changes, scorer, reason = REASONS[name]
    model = declared(tiny_bert_folder, **changes)
    before = model.search
    done, said = scorer_to_search(with_gamma(scorer(), 1.0), model)
    assert not done and model.search == before
    assert re.search(f"scorer's weights .*are not in the model's search settings: .*{reason}", said)


def test_sums_and_mixes_inside_each_other(tiny_bert_folder):
    model = declared(tiny_bert_folder, search={"weights": {"mean": 1.0}, "candidates": 50})
    inner = with_gamma(Mix([Dot("mean"), MaxSim("tokens")]), 0.0)
    assert scorer_to_search(3 * inner + 0.5 * Dot("mean", normalise=True), model)[0]
    assert model.search == {
        "weights": {"mean": pytest.approx(2.0), "tokens": pytest.approx(1.5)},
        "scale": "none",
        "candidates": 50,
    }


def test_fixed_weights_are_the_recipes_business(tiny_bert_folder):
    for search in ({}, {"weights": {"mean": 1.0, "tokens": 1.0}}):
        model = declared(tiny_bert_folder, search=search)
        assert scorer_to_search(0.3 * Dot("mean") + MaxSim("tokens"), model) is None
        assert model.search == search


def test_fixed_weights_count_where_the_recipe_says_nothing(tiny_bert_folder):
    model = declared(tiny_bert_folder)
    assert scorer_to_search(0.3 * Dot("mean") + MaxSim("tokens"), model)[0]
    assert model.search == {"weights": {"mean": 0.3, "tokens": 1.0}, "scale": "none"}
    model = declared(tiny_bert_folder)  # one set: the factor changes no order
    assert scorer_to_search(20 * Dot("mean"), model) is None and model.search is None


def test_fixed_weights_that_the_search_does_not_share_are_said(tiny_bert_folder):
    scorer = 0.5 * Dot("mean") + 4 * MaxSim("tokens")

    def told(weights, scorer=scorer, scale="none"):
        search = {"weights": weights, "scale": scale}
        return searched_otherwise(scorer, declared(tiny_bert_folder, search=search))

    assert told({"mean": 1.0, "tokens": 1.0}) == (
        "the scorer weighs mean 0.5, tokens 4, but the model is searched with mean 1, tokens 1"
    )
    assert "searched with mean 1, tokens 0" in told({"mean": 1.0})
    assert told({"mean": 1.0, "tokens": 8.0}) == ""  # only ratios count
    assert told({"mean": 1.0, "tokens": 1.0}, scale="ceiling") == ""
    assert told({"tokens": 1.0}, 8 * MaxSim("tokens")) == ""  # a factor of all scores changes no order
    assert searched_otherwise(scorer, declared(tiny_bert_folder)) == ""


class Largest(Scorer):
    """A scorer that no index knows."""

    def forward(self, q, d):
        return q["mean"].values.flatten(1) @ d["mean"].values.flatten(1).mT

    def explain(self, q, d):
        return Explanation("largest", self(q, d).item())


def test_a_scorer_that_no_index_knows_is_said(tiny_bert_folder):
    model = declared(tiny_bert_folder)
    for scorer in (Largest(), Dot("mean") + 2 * Largest()):
        assert "an index cannot compute Largest; a search ranks by" in searched_otherwise(scorer, model)


def test_training_warns_that_its_scorer_weighs_otherwise(tiny_bert_folder, tmp_path):
    model = declared(tiny_bert_folder, search={"weights": {"mean": 1.0, "tokens": 1.0}, "scale": "none"})
    stage = Train(Contrastive(), 0.5 * Dot("mean") + 4 * MaxSim("tokens"), steps=2, batch=4)
    noted = Noted()
    train(Job(model, (stage,), training_set(), tmp_path / "run"), reporter=noted)
    assert any("the scorer weighs mean 0.5, tokens 4" in text for text in noted.warnings)
