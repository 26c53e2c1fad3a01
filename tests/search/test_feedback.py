"""Feedback against loops over the stored vectors, and that its share of a score is told."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes import DOCUMENTS, HashModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, VectorSet, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.feedback import likeness
from counterpoint.search.settings import FUSIONS
from counterpoint.types import Document

PLAIN = SearchSettings(
    weights={"lexical": 0.5, "mean": 1.5, "words": 2.0}, idf={"words": 0.5}, candidates=100
)
FED = replace(PLAIN, feedback=0.25, feedback_documents=2)
QUERIES = {"q": "brown fox", "r": "green box under a bridge", "s": "nothing of this is there", "t": "?"}


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("feedback") / "index"
    build_index(DOCUMENTS, HashModel(), folder, IndexSettings(codec="float32", search=FED.to_dict()))
    with Index(folder) as opened:
        yield opened


def searching(index, settings=FED):
    return Searcher(index, HashModel(), settings)


def by_loops(scores, vectors, documents, owners=None):
    """Σ_j w_j cos(d_j, d), w_j ∝ s_j − s of the first that is none of them; of an owner the best alone."""
    ranked, met = [], set()
    for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
        owner = i if owners is None else owners[i]
        ranked += [] if owner in met else [i]
        met.add(owner)
    best, after = ranked[:documents], ranked[min(documents, len(ranked) - 1)]
    above = [scores[j] - scores[after] for j in best]
    if sum(above) == 0:
        return [0.0] * len(scores)

    def cos(a, b):
        lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
        return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0

    weights = [each / sum(above) for each in above]
    return [sum(w * cos(vectors[j], d) for w, j in zip(weights, best, strict=True)) for d in vectors]


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=8, unique=True), st.integers(1, 9), st.integers(0, 99)
)
def test_likeness_is_what_loops_say_on_any_scale(scores, documents, seed):
    vectors = np.random.default_rng(seed).normal(size=(len(scores), 3))
    vectors[0] = 0
    found = likeness([vectors], np.array(scores, float), documents)
    np.testing.assert_allclose(found.scores, by_loops(scores, vectors, documents), atol=1e-9)
    other = likeness([vectors * 7, vectors], 0.01 * np.array(scores) - 3, documents)
    np.testing.assert_allclose(other.scores, found.scores, atol=1e-7)
    assert len(found.rows) <= documents and np.abs(found.scores).max() <= 1 + 1e-9
    assert len(scores) == 1 or found.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize("scores", [[], [1.0], [2.0, 2.0, 2.0]])
def test_where_nothing_is_above_the_rest_nothing_is_said(scores):
    found = likeness([np.ones((len(scores), 2))], np.array(scores), 2)
    assert found.scores.tolist() == [0.0] * len(scores) and len(found.rows) == len(found.weights) == 0


def test_the_hybrid_is_its_parts_and_feedback(index):
    for text in QUERIES.values():
        before = {
            hit.document.id: hit.score
            for hit in Searcher(index, HashModel(), PLAIN).search(text, len(DOCUMENTS)).hits
        }
        names = list(before)
        vectors = [index.take("mean", np.array([index.position_of(name)])).values[0] for name in names]
        owners = [name.split("#")[0] for name in names]
        assert len(set(owners)) == len(names) - 1
        likened = by_loops([before[name] for name in names], vectors, 2, owners)
        fed = dict(zip(names, likened, strict=True))
        for hit in searching(index).search(text, len(DOCUMENTS)).hits:
            name = hit.document.id
            assert hit.score == pytest.approx((before[name] + 0.25 * fed[name]) / 1.25, abs=1e-5)
            assert hit.parts["feedback"] == pytest.approx(0.2 * fed[name], abs=1e-5)
            assert sum(hit.parts.values()) == pytest.approx(hit.score)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_an_explanation_names_the_documents_that_were_fed_back(index, fusion):
    settings = FED.with_fusion(fusion)
    answer = searching(index, settings).search("brown fox", 4, explain=True)
    best = {
        f"(like {hit.document.id})"
        for hit in searching(index, PLAIN.with_fusion(fusion)).search("brown fox", 2).hits
    }
    for hit in answer.hits:
        (part,) = (part for part in hit.explanation.children if part.label == "feedback")
        assert part.score == pytest.approx(hit.parts["feedback"])
        assert sum(leaf.score for leaf in part.leaves()) == pytest.approx(part.score, abs=1e-5)
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)
        if fusion in ("ceiling", "none"):
            assert {leaf.label for leaf in part.leaves()} == best


def test_ranks_are_fused_with_the_rank_of_likeness(index):
    plain, fed = (
        searching(index, each.with_fusion("rrf")).search("brown fox", len(DOCUMENTS)).hits
        for each in (PLAIN, FED)
    )
    before = {hit.document.id: hit.score for hit in plain}
    added = {hit.document.id: hit.score - before[hit.document.id] for hit in fed}
    assert max(added.values()) == pytest.approx(0.25 * 4 / 61)
    for hit in fed:
        assert hit.parts["feedback"] == pytest.approx(added[hit.document.id])


@pytest.mark.parametrize("workflow", ["lexical", "dense", "words", "dense-words", "words-dense"])
def test_only_the_hybrid_has_feedback(index, workflow):
    fed, plain = (searching(index, each).search("brown fox", 3, workflow=workflow) for each in (FED, PLAIN))
    assert [(hit.document.id, hit.parts) for hit in fed.hits] == [
        (hit.document.id, hit.parts) for hit in plain.hits
    ]


def test_several_feedbacks_for_the_time_of_one_search(index, monkeypatch):
    settings = [
        PLAIN,
        FED,
        replace(FED, feedback_documents=1),
        replace(FED, weights={**FED.weights, "mean": 9}),
    ]
    alone = [searching(index, each).run(QUERIES, 4) for each in settings]
    assert len({str(run.to_dict()) for run in alone}) == len(settings)
    calls, encode = [], HashModel.encode_query
    monkeypatch.setattr(HashModel, "encode_query", lambda self, t: calls.append(t) or encode(self, t))
    for found, wanted in zip(searching(index).run_each(QUERIES, 4, settings), alone, strict=True):
        for query in QUERIES:
            assert dict(found[query]) == pytest.approx(dict(wanted[query]), abs=1e-6)
    assert len(calls) == 1


def test_candidates_that_are_given_are_likened_among_themselves(index):
    first = Run({"q": {"a": 3.0, "c": 2.0}, "r": {"b": 1.0}})
    fed, plain = (searching(index, each).run(QUERIES, candidates=first) for each in (FED, PLAIN))
    assert {name for name, _ in fed["q"]} == {"a", "c"}
    ((name, alone),) = fed["r"]
    assert alone == pytest.approx(plain["r"][0][1] / 1.25) and name == "b"
    assert "s" not in fed or not list(fed["s"])


def test_a_pooled_set_alone_has_feedback_too_and_so_has_one_without_weight(index, tmp_path):
    alone = SearchSettings(weights={"mean": 1.0}, feedback=0.5)
    settings = IndexSettings(sets=("mean",), lexical=None, search=alone.to_dict())
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", settings)
    with Index(tmp_path / "i") as dense:
        (first, *_) = Searcher(dense, HashModel()).search("brown fox", 3).hits
        assert first.parts.keys() == {"mean", "feedback"}
    without = replace(FED, weights={"lexical": 1.0, "words": 1.0})
    parts = searching(index, without).search("brown fox", 1).hits[0].parts
    assert parts.keys() == {"lexical", "words", "feedback"}


@pytest.mark.parametrize("fusion", FUSIONS)
@pytest.mark.parametrize("weights", [{"mean": 1.0}, {"lexical": 2.0}, PLAIN.weights])
def test_one_search_or_several_the_scores_are_the_same(index, fusion, weights):
    settings = replace(FED, weights=weights).with_fusion(fusion)
    alone = searching(index, settings).run(QUERIES, 5)
    (together,) = searching(index, settings).run_each(QUERIES, 5, [settings])
    for query in QUERIES:
        assert dict(together[query]) == pytest.approx(dict(alone[query]), abs=1e-6)
    for hit in searching(index, settings).search("brown fox", 3, explain=True).hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)


def test_a_part_that_is_alone_with_and_without_feedback(index):
    settings = [replace(each, weights={"lexical": 1.0}) for each in (PLAIN, FED)]
    with pytest.raises(ConfigError, match="search with and without feedback separately"):
        list(searching(index).run_each(QUERIES, 3, settings))


def test_of_a_document_that_was_cut_the_best_passage_is_fed_back(tmp_path):
    texts = ["brown fox runs", "brown fox sleeps", "brown bear", "green box", "blue sea"]
    documents = [Document(f"e#{i}", text, parent="e", start=i) for i, text in enumerate(texts[:3])]
    documents += [Document("f", texts[3]), Document("g", texts[4])]
    build_index(documents, HashModel(), tmp_path / "i", IndexSettings(codec="float32", search=FED.to_dict()))
    with Index(tmp_path / "i") as cut:
        best = Searcher(cut, HashModel(), PLAIN).search("brown fox", 5).hits
        (first, *_) = Searcher(cut, HashModel(), FED).search("brown fox", 5, explain=True).hits
        fed = {leaf.label for part in first.explanation.children[-1:] for leaf in part.leaves()}
    owners = {hit.document.parent or hit.document.id: hit.document.id for hit in reversed(best)}
    wanted = sorted(owners.values(), key=[hit.document.id for hit in best].index)[:2]
    assert fed == {f"(like {name})" for name in wanted} and len(owners) == 3


def test_several_pooled_sets_are_looked_at_alike():
    rng = np.random.default_rng(0)
    one, two, scores = rng.normal(size=(6, 3)), rng.normal(size=(6, 5)), rng.normal(size=6)
    found = likeness([one, two], scores, 3).scores
    mean = np.add(by_loops(scores, one, 3), by_loops(scores, two, 3)) / 2
    np.testing.assert_allclose(found, mean, atol=1e-9)


def test_a_list_that_holds_the_best_ones_is_reranked_to_the_same_scores(index):
    whole = searching(index).run(QUERIES, len(DOCUMENTS))
    ranked = searching(index, PLAIN).run(QUERIES, len(DOCUMENTS))
    few = Run({query: dict(list(ranked[query])[:3]) for query in ("q", "r")})
    again = searching(index).run({query: QUERIES[query] for query in ("q", "r")}, candidates=few)
    for query in ("q", "r"):
        for name, score in again[query]:
            assert score == pytest.approx(whole.scores(query)[name], abs=1e-6)


@pytest.mark.parametrize("wrong", [{"feedback": each} for each in (-0.1, math.nan, math.inf, "0.1,5")])
def test_a_weight_that_is_none(wrong):
    with pytest.raises(ConfigError, match="search.feedback: expected a (weight|number)"):
        SearchSettings(**wrong)


def test_of_no_document():
    for wrong in (0, 2.5, "5"):
        with pytest.raises(
            ConfigError, match="feedback_documents: expected a whole number( from 1 up)?, found"
        ):
            SearchSettings(feedback=0.1, feedback_documents=wrong)


@pytest.mark.parametrize("name", ["feedback", "lexical"])
def test_no_set_has_the_name_of_another_part(name):
    class Named(HashModel):
        sets = {name: VectorSet(4, True, False)}

    with pytest.raises(ConfigError, match=f"cannot be called {name!r}"):
        IndexSettings().layouts(Named())
