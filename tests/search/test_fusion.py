import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import ConfigError, DataError, ShapeError
from counterpoint.search.fusion import Fusion, fuse, fuse_runs
from counterpoint.search.run import Run

NAN = float("nan")
SCORE = st.one_of(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, NAN, 5e-324]))
TABLES = st.lists(st.tuples(SCORE, SCORE), max_size=7)
FUSIONS = st.builds(
    lambda method, normalise, missing, a, b: Fusion(
        weights={"a": a, "b": b},
        method=method,
        normalise="none" if method == "rrf" else normalise,
        missing=missing,
    ),
    st.sampled_from(["convex", "rrf"]),
    st.sampled_from(["none", "min-max", "z-score"]),
    st.sampled_from(["min", "zero"]),
    st.floats(0, 2),
    st.floats(0, 2),
)


def table(rows):
    return np.array(rows, dtype=np.float64).reshape(len(rows), -1 if rows else 2)


def slow(scores, weight, fusion):
    """One column of contributions, by loops."""
    known = [s for s in scores if not math.isnan(s)]
    out = []
    for score in scores:
        if not known or (math.isnan(score) and fusion.missing == "zero"):
            out.append(0.0)
            continue
        score = min(known) if math.isnan(score) else score
        if fusion.method == "rrf":
            value = 1 / (fusion.k + 1 + sum(other > score for other in known))
        elif fusion.normalise == "none":
            value = score
        elif max(known) == min(known):
            value = 0.0
        elif fusion.normalise == "min-max":
            value = (score - min(known)) / (max(known) - min(known))
        else:
            units = [(s - min(known)) / (max(known) - min(known)) for s in known]
            unit = (score - min(known)) / (max(known) - min(known))
            value = (unit - statistics.fmean(units)) / statistics.pstdev(units)
        out.append(weight * value)
    return out


def test_runs_are_fused_by_ranks_unless_told_otherwise():
    """Cormack et al. 2009: a document that a run lacks gets nothing from it."""
    first, second = Run({"q": {"a": 3.0, "b": 2.0}}), Run({"q": {"b": 0.2, "c": 0.1}, "p": {"d": 1.0}})
    fused = fuse_runs({"first": first, "second": second})
    assert fused["q"] == [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("c", 1 / 62)]
    assert fused["p"] == [("d", 1 / 61)]
    assert fuse_runs([first, second]) == fused
    assert fuse_runs([first, second]).provenance["fusion"]["weights"] == {"1": 1.0, "2": 1.0}
    with pytest.raises(ConfigError, match="no part has a weight"):
        fuse_runs([])


@settings(deadline=None)
@given(TABLES, FUSIONS)
def test_agrees_with_loops_and_contributions_sum(rows, fusion):
    fused, contributions = fuse(table(rows), fusion)
    for column, weight in enumerate(fusion.weights.values()):
        expected = slow([row[column] for row in rows], weight, fusion)
        np.testing.assert_allclose(contributions[:, column], expected, rtol=1e-6, atol=1e-6)
    assert np.array_equal(fused, contributions.sum(axis=1)) and np.isfinite(fused).all()


@settings(deadline=None)
@given(TABLES, FUSIONS, st.randoms(use_true_random=False))
def test_the_order_of_candidates_does_not_matter(rows, fusion, random):
    order = random.sample(range(len(rows)), len(rows))
    fused, _ = fuse(table(rows), fusion)
    shuffled, _ = fuse(table([rows[i] for i in order]), fusion)
    np.testing.assert_allclose(shuffled, fused[order], rtol=1e-9, atol=1e-9)


def test_convex_by_hand():
    scores = table([(10, 0.9), (5, 0.1), (0, 0.5)])
    for normalise, expected in (
        ("none", [2 * 10 + 0.9, 2 * 5 + 0.1, 0.5]),
        ("min-max", [2 + 1, 2 * 0.5, 0.5]),
        # means 5 and 0.5, deviations √(50/3) and √(0.32/3)
        ("z-score", [2 * 1.2247449 + 1.2247449, -1.2247449, 2 * -1.2247449]),
    ):
        fused, _ = fuse(scores, Fusion(weights={"a": 2, "b": 1}, method="convex", normalise=normalise))
        np.testing.assert_allclose(fused, expected, atol=1e-7)


def test_reciprocal_ranks_by_hand():
    scores = table([(9, NAN), (8, 0.5), (8, 0.7), (1, 0.5)])
    fused, _ = fuse(scores, Fusion(weights={"a": 1, "b": 1}, method="rrf", missing="zero"))
    expected = [1 / 61, 1 / 62 + 1 / 62, 1 / 62 + 1 / 61, 1 / 64 + 1 / 62]
    np.testing.assert_allclose(fused, expected)
    fused, _ = fuse(scores, Fusion(weights={"a": 1, "b": 0.5}, method="rrf", missing="min", k=0))
    np.testing.assert_allclose(fused, [1 + 0.25, 0.5 + 0.25, 0.5 + 0.5, 0.25 + 0.25])


def test_missing_scores_by_hand():
    scores = table([(4, NAN), (2, 8), (NAN, 6)])
    for missing, normalise, expected in (
        ("zero", "none", [4, 10, 6]),
        ("min", "none", [10, 10, 8]),
        ("zero", "min-max", [1, 0 + 1, 0]),
        ("min", "z-score", [1 - 1, -1 + 1, -1 - 1]),
        ("zero", "z-score", [1 + 0, -1 + 1, 0 - 1]),
    ):
        fusion = Fusion(weights={"a": 1, "b": 1}, method="convex", normalise=normalise, missing=missing)
        np.testing.assert_allclose(fuse(scores, fusion)[0], expected, err_msg=f"{missing} {normalise}")


@pytest.mark.parametrize("normalise", ["min-max", "z-score"])
def test_a_part_that_tells_nothing_apart_contributes_nothing(normalise):
    fusion = Fusion(weights={"a": 1, "b": 1}, method="convex", normalise=normalise, missing="min")
    for rows in ([(3, 7)], [(3, 1), (3, 1)], [(NAN, 2)], [(NAN, NAN)], [(3, NAN), (NAN, NAN)]):
        fused, contributions = fuse(table(rows), fusion)
        assert not fused.any() and not contributions.any()
    assert fuse(np.empty((0, 2)), fusion)[0].shape == (0,)


def test_what_is_wrong_is_named():
    fusion = Fusion(weights={"lexical": 1, "words": 1}, method="convex")
    with pytest.raises(DataError, match="1 of 2 candidates have no score from part 'words'"):
        fuse(table([(1, 2), (1, NAN)]), fusion)
    with pytest.raises(DataError, match="'lexical' has an infinite score"):
        fuse(table([(math.inf, 2)]), fusion)
    with pytest.raises(ShapeError, match=r"lexical, words: expected 2 columns, found .* \(3, 1\)"):
        fuse(np.zeros((3, 1)), fusion)
    with pytest.raises(ConfigError) as error:
        Fusion(weights={"a": math.nan}, method="rrf", normalise="maxmin", missing="guess", k=-1)
    for word in ("maxmin", "guess", "'a'", "rrf uses ranks", "k must be"):
        assert word in str(error.value)
    with pytest.raises(ConfigError, match="no part"):
        Fusion(weights={})


def test_the_worked_hybrid_score(golden):
    """RoC's equation 11: BM25 + λ times the vectors' product, nothing normalised."""
    case = golden("hybrid_score")
    given = case["inputs"]
    fusion = Fusion(weights={"lexical": 1.0, "dense": given["lam"]}, method="convex")
    found, _ = fuse(np.column_stack([given["lex"], given["sem"]]), fusion)
    assert found.tolist() == pytest.approx(case["expected"]["score"], abs=case["tol"])


def test_survives_as_plain_data():
    fusion = Fusion(weights={"a": 1.0}, method="rrf", k=10, missing="zero")
    assert Fusion(**fusion.to_dict()) == fusion


def test_runs():
    lexical = Run({"q1": {"a": 10.0, "b": 5.0, "c": 0.0}, "q2": {"a": 1.0}}, provenance={"tag": "bm25"})
    dense = Run({"q1": {"b": 0.9, "c": 0.1}, "q3": {"z": 1.0}}, provenance={"tag": "cls"})
    fusion = Fusion(weights={"lexical": 1, "dense": 2}, method="convex", normalise="min-max", missing="zero")
    fused = fuse_runs({"dense": dense, "lexical": lexical}, fusion)
    assert fused == Run({"q1": {"b": 2.5, "a": 1.0, "c": 0.0}, "q2": {"a": 0.0}, "q3": {"z": 0.0}})
    assert fused.provenance["runs"] == {"lexical": {"tag": "bm25"}, "dense": {"tag": "cls"}}
    assert Fusion(**fused.provenance["fusion"]) == fusion
    with pytest.raises(ConfigError, match="lexical, dense do not fit runs dense"):
        fuse_runs({"dense": dense}, fusion)
    strict = Fusion(weights={"lexical": 1, "dense": 2}, method="convex")
    with pytest.raises(DataError, match="query 'q1': .*1 of 3 candidates have no score from part 'dense'"):
        fuse_runs({"lexical": lexical, "dense": dense}, strict)
    assert fuse_runs({"lexical": Run({"q": {}}), "dense": Run({})}, strict) == Run({"q": {}})


def test_unless_told_otherwise_runs_are_fused_by_ranks_and_need_not_have_the_same_documents():
    """Cormack et al.: a document that a list lacks gets nothing from it."""
    one, two = Run({"q": {"a": 9.0, "b": 8.0}}), Run({"q": {"b": 0.3}})
    fusion = Fusion(weights={"one": 1, "two": 1})
    assert (fusion.method, fusion.missing) == ("rrf", "zero")
    assert fuse_runs({"one": one, "two": two}, fusion)["q"] == [("b", 1 / 62 + 1 / 61), ("a", 1 / 61)]
    assert Fusion(weights={"one": 1}, method="convex").missing == "error"
