"""BM25 as an inner product, and its random projection: by loops, worked examples, the engine, real texts."""

import tracemalloc
from functools import cache

import numpy as np
import pytest
from tests.conftest import SHARED
from tests.index.test_lexical import TEXTS, bm25_by_loops, build

from counterpoint.data import open_collection
from counterpoint.errors import ConfigError, ShapeError
from counterpoint.index import (
    BM25Vectors,
    LexicalSettings,
    TermStatistics,
    lexical_vectors,
    project_terms,
    projection_variance,
    saturation,
    term_id,
    term_signs,
)
from counterpoint.types import Ragged

QUERIES = ["brown fox", "dog fox run", "unknownword dog", "unknownword", "", "the"]


def product(q, d):
    """Σ over equal terms of the query's value times the document's, pair by pair."""
    found = np.zeros((len(q), len(d)))
    for i in range(len(q)):
        for j in range(len(d)):
            theirs = dict(zip(d.ids_of(j).tolist(), d[j][:, 0].tolist(), strict=True))
            mine = zip(q.ids_of(i).tolist(), q[i][:, 0].tolist(), strict=True)
            found[i, j] = sum(value * theirs.get(term, 0.0) for term, value in mine)
    return found


# -- BM25 ------------------------------------------------------------------------------------------------


def test_the_worked_vectors(golden):
    """The paper prints the factor k1 + 1, which Lucene leaves out."""
    case = golden("bm25_vectors")
    given, expected = case["inputs"], case["expected"]
    k1, tf = given["k1"], np.array(given["tf"])
    document = (k1 + 1) * saturation(tf, given["dl"], given["avgdl"], k1, given["b"])
    np.testing.assert_allclose(document, expected["d"], atol=case["tol"])
    terms = np.array(sorted(term_id(name) for name in "abc"))
    names = sorted("abc", key=term_id)
    statistics = TermStatistics(terms, np.array(given["df"]), given["N"], given["avgdl"])
    query = " ".join(names[at] for at in given["query_terms"])
    found = BM25Vectors(statistics, LexicalSettings(analyzer="none")).queries([query])
    dense = np.zeros(3)
    dense[np.searchsorted(terms, found.ids)] = found.values[:, 0]
    np.testing.assert_allclose(dense, expected["q"], atol=case["tol"])
    assert dense @ document == pytest.approx(expected["score"], abs=case["tol"])


@pytest.mark.parametrize("analyzer", ["english", "english-long", "simple", "none"])
@pytest.mark.parametrize("repeats", [False, True])
def test_the_product_is_bm25(analyzer, repeats):
    vectors = BM25Vectors.fit(TEXTS, LexicalSettings(analyzer=analyzer), repeats=repeats)
    found = product(vectors.queries(QUERIES), vectors.documents(TEXTS))
    expected = [bm25_by_loops(query, TEXTS, analyzer=analyzer) for query in QUERIES]
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_term_that_stands_twice_counts_once_unless_asked():
    once, twice = (BM25Vectors.fit(TEXTS, repeats=repeats) for repeats in (False, True))
    documents = once.documents(TEXTS)
    np.testing.assert_allclose(
        product(twice.queries(["dog dog fox"]), documents)[0], bm25_by_loops("dog dog fox", TEXTS), rtol=1e-5
    )
    np.testing.assert_allclose(
        product(once.queries(["dog dog fox"]), documents)[0], bm25_by_loops("dog fox", TEXTS), rtol=1e-5
    )


def test_texts_without_a_known_term_have_none():
    vectors = BM25Vectors.fit(TEXTS)
    assert vectors.queries(["", "unknownword", "the", "fox"]).lengths.tolist() == [0, 0, 0, 1]
    assert vectors.documents(["", "unknownword", "the", "fox fox"]).lengths.tolist() == [0, 0, 0, 1]
    assert project_terms(vectors.queries(["", "unknownword"]), 8).tolist() == [[0.0] * 8] * 2


def test_unknown_terms_make_a_document_longer():
    vectors = BM25Vectors.fit(TEXTS)
    short, long = vectors.documents(["fox", "fox unknownword other"]).values[:, 0]
    assert long < short


def test_a_collection_without_a_term():
    vectors = BM25Vectors.fit(["", "the"])
    assert vectors.documents(["fox"]).lengths.tolist() == [0]
    assert BM25Vectors.fit([]).statistics.documents == 0


def test_statistics_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="2 terms have 1"):
        TermStatistics(np.array([1, 2]), np.array([1]), 1, 1.0)


# -- the projection --------------------------------------------------------------------------------------


def test_the_worked_projection(golden, monkeypatch):
    case = golden("random_projection")
    given, expected = case["inputs"], case["expected"]
    matrix = np.array(given["A"])
    scaled = (matrix * 2).astype(np.int8)  # A has ±1/√4
    monkeypatch.setattr(lexical_vectors, "term_signs", lambda ids, dim, seed: scaled[:, ids].T)
    sides = [np.array(given[name]) for name in "qde"]
    packed = Ragged.from_list(
        [side[side != 0][:, None].astype(np.float32) for side in sides],
        [np.flatnonzero(side) for side in sides],
        dim=1,
    )
    q, d, e = project_terms(packed, 4)
    np.testing.assert_allclose(q, expected["q_proj"], atol=case["tol"])
    np.testing.assert_allclose(d, expected["d_proj"], atol=case["tol"])
    np.testing.assert_allclose([q @ d, q @ e], expected["projected"], atol=case["tol"])
    for dim, name in ((4, "sd_k4"), (768, "sd_k768")):
        found = [projection_variance(sides[0], side, dim) ** 0.5 for side in sides[1:]]
        np.testing.assert_allclose(found, expected[name], atol=case["tol"])


def test_a_projection_by_loops():
    vectors = BM25Vectors.fit(TEXTS)
    packed = vectors.documents(TEXTS)
    for dim, seed in ((1, 0), (64, 3), (100, 3), (129, 7)):
        found = project_terms(packed, dim, seed)
        for i in range(len(packed)):
            expected = np.zeros(dim)
            for term, value in zip(packed.ids_of(i), packed[i][:, 0], strict=True):
                expected += term_signs(np.array([term]), dim, seed)[0] * value / dim**0.5
            np.testing.assert_allclose(found[i], expected, atol=1e-5)


def test_many_terms_are_projected_piece_by_piece(monkeypatch):
    packed = BM25Vectors.fit(TEXTS).documents(TEXTS)
    whole = project_terms(packed, 32)
    monkeypatch.setattr(lexical_vectors, "SIGNS", 64)
    np.testing.assert_allclose(project_terms(packed, 32), whole, atol=1e-6)


def test_memory_does_not_grow_with_texts_times_terms():
    """2,000 texts of 50 terms of their own: dense, their weights would take 800 MB."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 2**62, 100_000)
    packed = Ragged(np.ones((100_000, 1), np.float32), np.arange(0, 100_001, 50), ids)
    tracemalloc.start()
    try:
        project_terms(packed, 16)
        assert tracemalloc.get_traced_memory()[1] < 60e6
    finally:
        tracemalloc.stop()


def test_signs_are_those_of_coins():
    """Fair; terms, components and seeds are alike by chance only (six standard deviations)."""
    ids = np.array([term_id(f"term{at}") for at in range(400)] + list(range(100)))  # poor ids, too
    signs = term_signs(ids, 700, 1).astype(np.float64)
    assert set(np.unique(signs)) == {-1.0, 1.0}
    assert abs(signs.mean()) < 6 / signs.size**0.5
    rows, columns = signs @ signs.T / 700, signs.T @ signs / 500
    for found, n in ((rows, 700), (columns, 500)):
        np.fill_diagonal(found, 0)
        assert abs(found).max() < 6 / n**0.5
    assert abs((signs * term_signs(ids, 700, 2)).mean()) < 6 / signs.size**0.5


def test_signs_stay_what_they_are():
    """A model trained with them must find them again: SplitMix64 in Python's own numbers."""
    m = 2**64 - 1

    def mixed(x):
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & m
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB & m
        return x ^ (x >> 31)

    step = 0x9E3779B97F4A7C15
    for term, seed in ((5, 0), (term_id("fox"), 12345)):
        start = mixed(term ^ mixed(seed + step & m))
        words = [mixed(start + n * step & m) for n in (1, 2)]
        bits = [word >> at & 1 for word in words for at in range(64)]
        assert term_signs(np.array([term]), 128, seed)[0].tolist() == [2 * bit - 1 for bit in bits]
    # The first output of SplitMix64 from 0, as its authors' code prints it.
    assert mixed(step) == 0xE220A8397B1DCDAF


def test_the_mean_over_seeds_is_the_product_and_the_variance_the_exact_one():
    vectors = BM25Vectors.fit(TEXTS)
    q, d = vectors.queries(["brown dog run"]), vectors.documents(TEXTS)
    exact, dim, seeds = product(q, d)[0], 16, 2000
    found = np.array([(project_terms(q, dim, s) @ project_terms(d, dim, s).T)[0] for s in range(seeds)])
    for j in range(len(TEXTS)):
        variance = projection_variance(*aligned(q, 0, d, j), dim)
        assert abs(found[:, j].mean() - exact[j]) <= 5 * (variance / seeds) ** 0.5 + 1e-6
        assert found[:, j].var() == pytest.approx(variance, rel=0.2, abs=1e-9)


def test_bad_projections_are_refused():
    packed = BM25Vectors.fit(TEXTS).documents(TEXTS)
    with pytest.raises(ConfigError, match="dim from 1"):
        project_terms(packed, 0)
    with pytest.raises(ConfigError, match="seed from 0"):
        project_terms(packed, 8, -1)
    nothing = BM25Vectors.fit(TEXTS).documents([""])
    for dim, seed in ((-1, 0), (0, 0), (8, -1), (8, 2**64)):
        for found in (packed, nothing):
            with pytest.raises(ConfigError, match=rf"0 to 2\*\*64 - 1, found {dim} and {seed}"):
                project_terms(found, dim, seed)
    with pytest.raises(ShapeError, match="id of its term"):
        project_terms(Ragged(packed.values, packed.offsets), 8)


# -- a real collection -----------------------------------------------------------------------------------


def aligned(q, i, d, j):
    """Both vectors over the terms of either."""
    terms = np.union1d(q.ids_of(i), d.ids_of(j))
    sides = []
    for packed, at in ((q, i), (d, j)):
        dense = np.zeros(len(terms))
        dense[np.searchsorted(terms, packed.ids_of(at))] = packed[at][:, 0]
        sides.append(dense)
    return sides


@cache
def cranfield():
    collection = open_collection(SHARED / "data" / "cranfield", passage_words=None)
    texts = [document.full_text for document in collection.documents()]
    return texts, list(collection.queries().values())


@pytest.mark.shared
def test_the_product_is_the_engines_score_on_cranfield(tmp_path):
    texts, queries = cranfield()
    engine = build(tmp_path, texts)
    vectors = BM25Vectors.fit(texts, repeats=True)
    found = vectors.queries(queries)
    terms = np.unique(np.concatenate([found.ids, (documents := vectors.documents(texts)).ids]))
    sides = []
    for packed in (found, documents):
        dense = np.zeros((len(packed), len(terms)), np.float32)
        rows = np.repeat(np.arange(len(packed)), packed.lengths)
        dense[rows, np.searchsorted(terms, packed.ids)] = packed.values[:, 0]
        sides.append(dense)
    expected = np.stack([engine.scores(query) for query in queries])
    assert expected.max() > 10
    np.testing.assert_allclose(sides[0] @ sides[1].T, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.shared
def test_every_error_is_within_five_standard_deviations_on_cranfield():
    """1,000 pairs: queries' best documents and random ones, whose errors are as large as they should be."""
    texts, queries = cranfield()
    vectors, dim, rng = BM25Vectors.fit(texts), 768, np.random.default_rng(0)
    q, d = vectors.queries(queries), vectors.documents(texts)
    projected = project_terms(q, dim) @ project_terms(d, dim).T
    errors = []
    for i in rng.choice(len(queries), 100, replace=False):
        best = np.argsort(-projected[i])[:5]  # chosen by the projection: its largest errors are among them
        for j in [*best, *rng.choice(len(texts), 5, replace=False)]:
            ours, theirs = aligned(q, i, d, j)
            sd = projection_variance(ours, theirs, dim) ** 0.5
            if sd:
                errors.append(((projected[i, j] - ours @ theirs) / sd, j in best))
    z = np.array([error for error, _ in errors])
    assert len(z) >= 990 and np.abs(z).max() <= 5
    assert 0.9 < np.array([error for error, chosen in errors if not chosen]).std() < 1.1
