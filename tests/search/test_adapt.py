"""Weights that follow the query: by loops, and that nothing but the query and the index decides them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes import DOCUMENTS, HashModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, best_of, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.adapt import adapted, evidence_of
from counterpoint.types import Document

QUERIES = {"q": "brown fox", "r": "green box under a bridge", "s": "nothing of this is there", "t": "?"}
ADAPT = {"lexical": 2.0, "words": 6.0}
FIXED = SearchSettings(weights={"lexical": 0.5, "mean": 1.5, "words": 2.0}, idf={"words": 0.5}, candidates=3)
FOLLOWS = replace(FIXED, adapt=ADAPT)
PARTS = ("lexical", "mean", "words")
KNOWN = st.floats(0, 1)
WEIGHTS = st.tuples(*[st.floats(0.01, 1)] * 3).map(
    lambda values: {part: value / sum(values) for part, value in zip(PARTS, values, strict=True)}
)
EVIDENCE = st.tuples(KNOWN, st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.5, 3.0, 6.0, 9.0])).map(
    lambda values: dict(zip(PARTS, values, strict=True))
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapt") / "index"
    build_index(DOCUMENTS, HashModel(), folder, IndexSettings(codec="float32", search=FOLLOWS.to_dict()))
    with Index(folder) as opened:
        yield opened


@pytest.fixture
def searcher(index):
    return Searcher(index, HashModel())


# -- the formula -----------------------------------------------------------------------------------------


@given(WEIGHTS, EVIDENCE)
def test_weights_sum_to_one_and_a_part_that_knows_nothing_has_none(weights, evidence):
    found = adapted(weights, ADAPT, evidence)
    assert sum(found.values()) == pytest.approx(1) and min(found.values()) >= 0
    if evidence["lexical"] ** 2 > 0 or evidence["mean"] or evidence["words"]:
        assert all(found[part] == 0 for part in PARTS if not evidence[part])
    else:
        assert found == weights


@example(
    dict.fromkeys(PARTS, 1 / 3), {"lexical": 1.0, "mean": 0.0, "words": 0.0}, "words", 1.4e-160
)  # whose square is no normal number
@given(WEIGHTS, EVIDENCE, st.sampled_from(["lexical", "words"]), st.floats(0, 12))
def test_who_has_more_to_go_by_does_not_weigh_less(weights, evidence, part, more):
    more = max(evidence[part], min(more, 1.0) if part == "lexical" else more)
    if not (evidence["lexical"] ** 2 > 0 or evidence["mean"] or evidence["words"]):
        return  # then all are as they were
    before = adapted(weights, ADAPT, evidence)
    after = adapted(weights, ADAPT, {**evidence, part: more})
    assert after[part] >= before[part] - 1e-12


@given(WEIGHTS, st.floats(0.1, 12))
def test_sets_share_what_they_had_by_the_length_of_documents(weights, rows):
    found = adapted(weights, {"words": 6.0}, {"lexical": 0.3, "mean": 1.0, "words": rows})
    assert found["lexical"] == pytest.approx(weights["lexical"])
    words = weights["words"] * min(1, rows / 6) ** 2
    wanted = (1 - weights["lexical"]) * words / (words + weights["mean"])
    assert found["words"] == pytest.approx(wanted)
    if rows >= 6:
        assert found == pytest.approx(weights)


def test_equal_scores_leave_nothing_to_go_by():
    scores = {"lexical": np.array([0.1, 0.3]), "mean": np.array([0.9, 0.9]), "words": np.array([-0.2, -0.1])}
    assert evidence_of(scores, 0.7, {"words": 4.5}) == {"lexical": 0.7, "mean": 0.0, "words": 4.5}
    nothing = {part: np.zeros(0) for part in PARTS}
    assert evidence_of(nothing, 0.7, {"words": 0.0}) == dict.fromkeys(PARTS, 0.0)
    assert evidence_of({"mean": np.array([0.5, 0.0])}, 0.0, {}) == {"mean": 1.0}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(1, 14), st.integers(1, 14))
def test_fewer_candidates_are_among_more_and_none_is_worse_than_one_left_out(scores, one, other):
    values = np.array(scores, float)
    few, many = (set(best_of(values, k, matching=False).tolist()) for k in sorted((one, other)))
    assert few <= many and len(few) == min(one, other, len(scores))
    assert all(values[i] >= values[j] for i in few for j in set(range(len(scores))) - few)


# -- the engine ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", QUERIES.values())
def test_the_score_is_the_parts_by_the_weights_that_are_told(index, searcher, text):
    """The weights from the definition, over the candidates that three of each first stage propose."""
    answer = searcher.search(text, 20)
    plain = Searcher(index, HashModel(), replace(FIXED, weights={"mean": 1.0, "words": 1.0, "lexical": 1.0}))
    by = {hit.id: {part: 3 * score for part, score in hit.parts.items()} for hit in plain.search(text, 20)}
    pool = set()
    for part, workflow in (("lexical", "lexical"), ("mean", "dense")):
        scores = {hit.id: hit.score for hit in plain.search(text, 20, workflow=workflow)}
        order = sorted(scores, key=lambda name: (-scores[name], index.position_of(name)))
        pool |= {name for name in order[:3] if part != "lexical" or scores[name] > 0}
    rows = {part: [by[name][part] for name in pool if name in by] for part in PARTS}
    tell = {part: len(set(found)) > 1 for part, found in rows.items()}
    words = [len(set(document.full_text.lower().split())) for document in DOCUMENTS if document.id in pool]
    raised = {
        "lexical": 0.5 * index.lexical.known(text) ** 2 * tell["lexical"],
        "mean": 1.5 * tell["mean"],
        "words": 2.0 * min(1, sum(words) / len(words) / 6) ** 2 * tell["words"],
    }
    vectors = raised["mean"] + raised["words"]
    raised["mean"], raised["words"] = (3.5 * raised[part] / vectors for part in ("mean", "words"))
    wanted = {part: value / sum(raised.values()) for part, value in raised.items()}
    assert answer.weights == pytest.approx(wanted, abs=1e-5)
    for hit in answer:
        assert hit.parts == pytest.approx({part: wanted[part] * by[hit.id][part] for part in PARTS}, abs=1e-5)


@pytest.mark.parametrize("workflow", ["hybrid", "dense-words", "words-dense"])
@pytest.mark.parametrize("settings", [FOLLOWS, replace(FOLLOWS, feedback=0.25, feedback_documents=2)])
def test_leaves_sum_and_the_weights_are_of_the_query_alone(index, workflow, settings):
    searcher = Searcher(index, HashModel(), settings)
    run = searcher.run(QUERIES, 20, workflow=workflow)
    for name, text in QUERIES.items():
        answers = [searcher.search(text, k, workflow=workflow, explain=True) for k in (1, 4, 20)]
        for answer in answers:
            assert answer.weights == pytest.approx(answers[0].weights, rel=1e-6)
            assert sum(answer.weights.values()) == pytest.approx(1)
            for hit in answer:
                leaves = hit.explanation.leaves()
                assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-5)
        best = {}
        for hit in answers[-1]:  # of passages the best one stands for its document
            best.setdefault(hit.document.parent or hit.id, hit.score)
        assert best == pytest.approx(run.scores(name), abs=1e-6)


def test_reranking_has_the_weights_of_ranking(searcher):
    ranked = searcher.run(QUERIES, 20)
    few = Run({name: dict(list(ranked.scores(name).items())[-2:]) for name in QUERIES})
    again = searcher.run(QUERIES, 20, candidates=few)
    for name in QUERIES:
        wanted = ranked.scores(name)
        assert again.scores(name) == pytest.approx({key: wanted[key] for key in few.scores(name)}, abs=1e-6)


def test_several_settings_for_the_time_of_one_search(index, searcher):
    settings = [FOLLOWS, FIXED, replace(FOLLOWS, adapt={"words": 9.0}), replace(FOLLOWS, feedback=0.2)]
    for run, each in zip(searcher.run_each(QUERIES, 20, settings), settings, strict=True):
        alone = Searcher(index, HashModel(), each).run(QUERIES, 20)
        for name in QUERIES:
            assert run.scores(name) == pytest.approx(alone.scores(name), abs=1e-9)


def test_a_query_of_unknown_terms_is_ranked_as_without_bm25(index, searcher):
    answer = searcher.search("zyzzyva quux", 20)
    assert answer.weights["lexical"] == 0 and index.lexical.known("zyzzyva quux") == 0
    without = Searcher(index, HashModel(), replace(FOLLOWS, weights={"mean": 1.5, "words": 2.0}))
    other = {hit.id: hit.score for hit in without.search("zyzzyva quux", 20)}
    assert {hit.id: hit.score for hit in answer} == pytest.approx(other, abs=1e-6)


def test_a_set_that_scores_all_alike_changes_no_order(tmp_path):
    documents = [Document(f"d{i}", text) for i, text in enumerate(["fox", "fox brown", "dog fox"])]

    class Alike(HashModel):
        def encode_document(self, texts):
            made = dict(super().encode_document(texts))
            made["mean"] = replace(made["mean"], values=np.ones_like(made["mean"].values))
            return made

    build_index(documents, Alike(), tmp_path / "i", IndexSettings(codec="float32", search=FOLLOWS.to_dict()))
    with Index(tmp_path / "i") as index:
        answer = Searcher(index, Alike()).search("brown dog fox")
        assert answer.weights["mean"] == 0 and all(hit.parts["mean"] == 0 for hit in answer)
        without = replace(FOLLOWS, weights={"lexical": 0.5, "words": 2.0})
        other = Searcher(index, Alike(), without).search("brown dog fox")
        assert [hit.id for hit in answer] == [hit.id for hit in other]


@pytest.mark.parametrize("fusion", ["min-max", "z-score", "rrf", "none"])
def test_other_fusions_keep_their_weights(index, fusion):
    follows, fixed = (
        Searcher(index, HashModel(), each.with_fusion(fusion)).search("brown fox", 20)
        for each in (FOLLOWS, FIXED)
    )
    assert [hit.to_dict() for hit in follows] == [hit.to_dict() for hit in fixed] and not follows.weights


@pytest.mark.parametrize("power", [-1.0, math.inf, math.nan, "2"])
def test_numbers_that_cannot_be(power):
    with pytest.raises(ConfigError, match=r"search\.adapt.*words"):
        SearchSettings(adapt={"words": power})


def test_settings_survive_the_manifest(index):
    assert SearchSettings.for_index(index) == FOLLOWS
    older = {key: value for key, value in FOLLOWS.to_dict().items() if key != "adapt"}
    assert SearchSettings.from_dict(older) == FIXED
    fixed = replace(FOLLOWS, fixed_weights=True)
    assert SearchSettings.from_dict(fixed.to_dict()) == fixed
    assert "fixed_weights" not in FOLLOWS.to_dict()  # so that earlier versions can read it


def test_fixed_weights_rank_as_without_a_way_to_adapt(index):
    fixed = replace(FOLLOWS, fixed_weights=True)
    assert FOLLOWS.follows_query and not fixed.follows_query and not FIXED.follows_query
    one, other, adapts = (
        Searcher(index, HashModel(), each).search("brown fox", 20) for each in (fixed, FIXED, FOLLOWS)
    )
    assert [hit.to_dict() for hit in one] == [hit.to_dict() for hit in other]
    assert [hit.to_dict() for hit in one] != [hit.to_dict() for hit in adapts]
    assert FOLLOWS.with_weights({"mean": 1.0}) == replace(fixed, weights={"mean": 1.0})
    assert FIXED.with_weights({"mean": 1.0}) == replace(FIXED, weights={"mean": 1.0})
