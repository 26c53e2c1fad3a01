import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.test_lexical import TEXTS, build

from counterpoint.errors import ArtifactError
from counterpoint.index import term_scores
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.packing import pack
from counterpoint.index.postings import saturated, unpacked
from counterpoint.index.term_files import TermFiles

GAPS = st.lists(st.one_of(st.integers(0, 3), st.integers(0, 300), st.integers(60_000, 70_000)), min_size=1)


@pytest.fixture(scope="module")
def kernel():
    return pytest.importorskip("counterpoint.index.compiled.postings").scored


IDF = float(np.float32(1.7))


def by_kernel(kernel, packed, count, norms, live):
    rows, scores = np.empty(count, np.int32), np.empty(count, np.float32)
    documents = norms, np.zeros(0, bool) if live is None else live
    kept = kernel(packed, count, documents, IDF, (rows, scores))
    return None if kept < 0 else (rows[:kept], scores[:kept])


def packed_of(gaps, counts):
    size = np.array([len(gaps)])
    return np.concatenate([pack(np.array(each), size)[0] for each in (gaps, counts)])


@settings(deadline=None)
@given(GAPS, st.data())
def test_rows_and_saturated_frequencies_are_those_of_a_loop(kernel, gaps, data):
    few = st.one_of(st.integers(0, 2), st.integers(250, 260), st.integers(65_530, 65_540))
    less = data.draw(st.lists(few, min_size=len(gaps), max_size=len(gaps)))
    documents = sum(gaps) + len(gaps) + data.draw(st.integers(0, 3))
    rng = np.random.default_rng(len(gaps))
    norms, live = rng.random(documents) + 0.1, rng.random(documents) < 0.7
    live = data.draw(st.sampled_from([None, live]))
    row, expected = -1, []
    for gap, count in zip(gaps, less, strict=True):
        row += gap + 1
        if live is None or live[row]:
            expected.append((row, (count + 1) / (norms[row] + (count + 1))))
    packed = packed_of(gaps, less)
    rows, shares = saturated(packed, len(gaps), norms, live)
    assert list(zip(rows.tolist(), shares.tolist(), strict=True)) == expected
    rows, scores = by_kernel(kernel, packed, len(gaps), norms, live)
    assert rows.tolist() == [row for row, _ in expected]
    assert scores.tolist() == [float(np.float32(share * IDF)) for _, share in expected]


@settings(deadline=None)
@given(GAPS, st.data())
def test_damaged_bytes_are_refused_by_both_or_read_alike(kernel, gaps, data):
    packed = packed_of(gaps, [0] * len(gaps))
    at = data.draw(st.integers(0, len(packed) - 1))
    packed[at] = data.draw(st.integers(0, 255))
    packed = packed[: data.draw(st.integers(1, len(packed)))]
    norms = np.ones(sum(gaps) + len(gaps))
    found = by_kernel(kernel, packed, len(gaps), norms, None)
    try:
        rows, shares = saturated(packed, len(gaps), norms, None)
    except ValueError:
        assert found is None
    else:
        np.testing.assert_array_equal(found[0], rows)
        np.testing.assert_array_equal(found[1], (shares * IDF).astype(np.float32))


def test_postings_of_a_larger_collection_are_refused():
    with pytest.raises(ValueError, match="another collection"):
        unpacked(packed_of([3], [0]), 1, 3)


@pytest.mark.parametrize("deleted", [False, True])
def test_an_index_scores_alike_by_both(kernel, tmp_path, monkeypatch, deleted):
    parts = []
    for name, texts in (("a", TEXTS[:3]), ("b", TEXTS[3:])):
        build(tmp_path / name, texts)
        parts.append(TermFiles(CheckedFolder(tmp_path / name)))
    live = [None, np.arange(len(TEXTS) - 3) > 0] if deleted else ()

    def scores(kernels):
        monkeypatch.setattr(term_scores.Meter, "kernels", lambda self, products: kernels)
        terms = term_scores.ComputedScores(parts, 0.9, 0.4, live)
        return [(*terms.scores(term), terms.frequency(term)) for term in ("brown", "fox", "dog", "unknown")]

    compiled = scores(term_scores.Meter().kernels(10**12))
    for one, other in zip(compiled, scores(None), strict=True):
        for each, same in zip(one, other, strict=True):
            assert np.asarray(each).dtype == np.asarray(same).dtype
            np.testing.assert_array_equal(each, same)


def test_damage_is_told_of_a_compiled_search(kernel, tmp_path, monkeypatch):
    build(tmp_path, TEXTS)
    terms = TermFiles(CheckedFolder(tmp_path))
    monkeypatch.setattr(TermFiles, "packed", lambda self, term: (np.array([9], np.uint8), 3))
    with pytest.raises(ArtifactError, match="the BM25 postings are damaged"):
        term_scores.ComputedScores([terms], 0.9, 0.4).scores("fox")
