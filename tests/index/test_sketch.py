"""What a sketch leaves of pooled vectors, against a look at all of them."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.index.test_graph import Clustered

from counterpoint.errors import ArtifactError
from counterpoint.index import Asked, Index, IndexSettings, SetLayout, build_index, rows_writer
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.dense import DenseStore
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.signs import TOP, sketched
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document, Ragged


def written(folder, values, codec="int8"):
    layout = SetLayout(values.shape[1], "dense", codec)
    with patch.object(rows_writer, "LEAST", 1), SegmentWriter(folder, {"v": layout}) as writer:
        documents = [Document(str(i), "") for i in range(len(values))]
        writer.append(documents, {"v": Ragged(values, np.arange(len(values) + 1))})
    return Piece(CheckedFolder(folder), len(values), layout)


def opened(*segments, codec="int8", dim):
    return DenseStore("v", SetLayout(dim, "dense", codec), segments)


def units(rng, count, dim):
    """Around a few centres, as texts are."""
    values = rng.normal(size=(9, dim))[rng.integers(0, 9, count)] + rng.normal(size=(count, dim))
    return (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("codec", ["int8", "float16"])
@pytest.mark.parametrize("compiled", [True, False])
def test_the_best_are_found_by_estimates(tmp_path, codec, compiled, monkeypatch):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    if not compiled:
        monkeypatch.setattr(Meter, "kernels", lambda self, products: None)
    rng = np.random.default_rng(0)
    values, dim = units(rng, 3000, 100), 100
    store = opened(written(tmp_path, values, codec), codec=codec, dim=dim)
    queries = [Asked(row[None]) for row in units(rng, 40, dim)]
    near, every = store.look(queries), store.look(queries, exhaustive=True)
    shares, left = [], []
    for i, query in enumerate(queries):
        found, wanted = near.best(i, 10), every.best(i, 10)
        shares.append(len(np.intersect1d(found, wanted)) / 10)
        np.testing.assert_array_equal(np.sort(near.best(i, 3000)), np.arange(3000))
        left.append((store.all_scores([query])[0] > store._bounds(query)).mean())
    assert np.mean(shares) >= 0.99
    assert np.mean(left) < 0.06  # 1.9 deviations: 2.9 % of a normal distribution, more with few components


def test_bounds_do_not_depend_on_segments_or_on_what_computes_them(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    rng = np.random.default_rng(1)
    values = units(rng, 500, 37)
    one = opened(written(tmp_path / "a", values), dim=37)
    two = opened(written(tmp_path / "b", values[:123]), written(tmp_path / "c", values[123:]), dim=37)
    query = Asked(units(rng, 1, 37))
    wanted = one._bounds(query).tobytes()
    assert two._bounds(query).tobytes() == wanted
    monkeypatch.setattr(Meter, "kernels", lambda self, products: None)
    assert one._bounds(query).tobytes() == wanted


def test_a_segment_that_has_none_is_compared_as_it_is(tmp_path):
    rng = np.random.default_rng(2)
    values = units(rng, 300, 24)
    with patch.object(rows_writer, "LEAST", 10**9):
        layout = SetLayout(24, "dense", "int8")
        with SegmentWriter(tmp_path / "b", {"v": layout}) as writer:
            rows = Ragged(values[100:], np.arange(201))
            writer.append([Document(str(i), "") for i in range(200)], {"v": rows})
    without = Piece(CheckedFolder(tmp_path / "b"), 200, layout)
    store = opened(written(tmp_path / "a", values[:100]), without, dim=24)
    query = Asked(units(rng, 1, 24))
    bounds, scores = store._bounds(query), store.all_scores([query])[0]
    assert (bounds[:100] != scores[:100]).all()
    assert bounds[100:].tobytes() == scores[100:].tobytes()


@settings(deadline=None, max_examples=50)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.one_of(st.integers(1, 200), st.integers(121, 128), st.integers(260, 400)),
    count=st.one_of(st.integers(0, 40), st.integers(1020, 1032), st.integers(2044, 2056)),
)
def test_compiled_bounds_are_those_of_loops(seed, dim, count):
    from counterpoint.index.compiled.sketched import sketched_rows

    rng, f32 = np.random.default_rng(seed), np.float32
    query, signs = rng.integers(-TOP, TOP + 1, dim), rng.integers(0, 256, (count, -(-dim // 8)), np.uint8)
    signs[:, -1] &= np.uint8(255 >> (-dim % 8))
    factors = np.ldexp(rng.random(count), rng.integers(-30, 16, count)).astype(np.float16)  # subnormal, too
    scale, error = f32(rng.random()), f32(rng.random())
    bits = np.unpackbits(signs, axis=1, bitorder="little")[:, :dim].astype(int)
    sums = [sum(int(q) if bit else -int(q) for q, bit in zip(query, row, strict=True)) for row in bits]
    wanted = [f32(s) * (f32(f) * scale) + f32(f) * error for s, f in zip(sums, factors, strict=True)]
    assert sketched((query.astype(f32), scale, error), signs, factors).tolist() == wanted
    padded = np.zeros(8 * signs.shape[1], np.int8)
    padded[:dim] = query
    assert sketched_rows((padded, scale, error), signs, factors.view(np.uint16)).tolist() == wanted


@pytest.mark.parametrize("dim", [128, 300])
@pytest.mark.parametrize("value", [TOP, -TOP])
@pytest.mark.parametrize("signs", [0, 255])
def test_the_largest_queries_do_not_overflow(dim, value, signs):
    """Two look-ups are added up in a byte."""
    from counterpoint.index.compiled.sketched import sketched_rows

    rows = np.full((1100, -(-dim // 8)), signs, np.uint8)
    rows[:, -1] &= np.uint8(255 >> (-dim % 8))
    padded, factors = np.zeros(8 * rows.shape[1], np.int8), np.ones(len(rows), np.float16)
    padded[:dim] = value
    found = sketched_rows((padded, np.float32(1), np.float32(0)), rows, factors.view(np.uint16))
    assert (found == (value if signs else -value) * dim).all()


def test_signs_that_do_not_fit_are_refused(tmp_path):
    piece = written(tmp_path, units(np.random.default_rng(3), 20, 16))
    np.save(tmp_path / "v.signs.npy", np.zeros((19, 2), np.uint8))
    with pytest.raises(ArtifactError, match="signs of 'v' do not fit"):
        opened(Piece(piece.files, 20, piece.layout), dim=16)


def test_a_search_by_a_sketch_scores_as_without(tmp_path, monkeypatch):
    documents = [Document(str(i), str(i)) for i in range(600)]
    model = Clustered(documents=600)
    build_index(documents, model, tmp_path / "plain", IndexSettings(lexical=None))
    monkeypatch.setattr(rows_writer, "LEAST", 1)
    build_index(documents, model, tmp_path / "signs", IndexSettings(lexical=None))
    with Index(tmp_path / "plain") as plain, Index(tmp_path / "signs") as signs:
        queries = {str(i): str(i) for i in range(20)}
        wanted = Searcher(plain, model).run(queries, 600)
        assert Searcher(signs, model).run(queries, 600) == wanted
        settings = SearchSettings(exhaustive=True)
        assert Searcher(signs, model, settings).run(queries, 10) == wanted.top(10)
        assert signs.info()["bytes_by_purpose"]["sketch: cls"] > 600 * 5
        assert signs.manifest.faults(signs.folder) == []


def test_no_sketch_is_written_if_a_scale_is_infinite(tmp_path):
    """Bounds would be infinite or none; all vectors are compared instead."""
    rng = np.random.default_rng(0)
    values = units(rng, 300, 64)
    values[7] = 6e5
    piece = written(tmp_path, values, "float32")
    assert "v.signs.npy" not in piece.files and "v.sign_scales.npy" not in piece.files
    store = opened(piece, codec="float32", dim=64)
    query = Asked(units(rng, 1, 64))
    wanted = np.argsort(-store.all_scores([query])[0], kind="stable")[:10]
    np.testing.assert_array_equal(np.sort(store.look([query]).best(0, 10)), np.sort(wanted))
