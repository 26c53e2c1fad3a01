"""Sets stored in a few bits: rows are differences from their words' means, and every way gives one score."""

import os
import subprocess
import sys
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from counterpoint.errors import DataError
from counterpoint.index import Asked, SetLayout, coarse, paths
from counterpoint.index import residual as residual_module
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.dense import DenseStore
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.rotation import rotation
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.several import ExactStore, SeveralStore
from counterpoint.types import Document, Ragged

CODES = ["1-bit", "2-bit", "4-bit"]
INTEGERS = [*CODES, "int8"]


def texts_of(rng, count, dim, words=7, most=9):
    """Documents of words, each near its own direction, and some without any."""
    means = rng.normal(size=(words, dim))
    ids = [rng.integers(0, words, rng.integers(0, most)) for _ in range(count)]
    rows = [(means[some] + 0.4 * rng.normal(size=(len(some), dim))).astype(np.float32) for some in ids]
    return Ragged.from_list(rows, [np.asarray(some, np.int64) * 3 + 1 for some in ids], dim=dim)


def written(folder, vectors, codec, *, ids=True, kind="several", batch=4):
    layout = SetLayout(vectors.dim, kind, codec, ids)
    with SegmentWriter(folder, {"w": layout}) as writer:
        for at in range(0, len(vectors), batch):
            some = np.arange(at, min(at + batch, len(vectors)))
            writer.append([Document(str(i), "") for i in some], {"w": vectors.take(some)})
    return layout, Piece(CheckedFolder(folder), len(vectors), layout)


def opened(folder, vectors, codec, **how):
    layout, segment = written(folder, vectors, codec, **how)
    return (ExactStore if layout.kind == "exact" else SeveralStore)("w", layout, [segment])


def by_loops(store, query, position):
    """MaxSim by Python integers and one float operation after the other."""
    codec, dim = CODECS[store.layout.codec], store.layout.dim
    (part,) = store.parts
    whole = codec.asked(query.rows)
    bases = np.zeros((len(whole.rows), 1), np.float32) if part._means is None else part._means.products(whole)
    centres = part.centre_products(whole, np.array([position]))
    total = np.float32(0)
    first, last = part.offsets[position], part.offsets[position + 1]
    for m, row in enumerate(whole.rows):
        best = np.float32(-np.inf)
        for at in range(first, last):
            arrays = part.stored(np.array([at]))
            codes = codec.integers(arrays["values"], dim)[0]
            exact = sum(int(a) * int(b) for a, b in zip(row, codes, strict=True))
            value = np.float32(exact) * arrays["scales"].astype(np.float32)[0]
            value = value + bases[m, part._places(np.array([at]))[0]]
            value = (value + centres[m, 0]) * whole.scales[m]
            best = max(best, value)
        if query.floor:
            best = max(best, np.float32(0))
        total = best if m == 0 else total + best
    return total if last > first else np.float32(0)


@pytest.mark.parametrize("codec", INTEGERS)
@pytest.mark.parametrize("least", [2, 10**6])
def test_scores_are_those_of_loops_whatever_computes_them(tmp_path, codec, least, monkeypatch):
    monkeypatch.setattr(residual_module, "LEAST", least)
    rng = np.random.default_rng(1)
    for number, (dim, rows) in enumerate([(5, 3), (16, 1), (24, 17), (72, 5), (100, 33)]):
        vectors = texts_of(rng, 23, dim)
        store = opened(tmp_path / str(number), vectors, codec)
        for floor in (False, True):
            query = Asked(rng.normal(size=(rows, dim)).astype(np.float32), None, floor)
            wanted = [by_loops(store, query, i) for i in range(23)]
            some = rng.permutation(23)[:9]
            for compiled in (False, True):
                monkeypatch.setattr("counterpoint.index.paths.WORTH", 0 if compiled else 10**18)
                with patch.object(
                    Meter, "kernels", Meter.kernels if compiled else lambda self, products: None
                ):
                    assert store.all_scores([query])[0].tolist() == wanted
                    assert store.all_scores([query, query])[1].tolist() == wanted
                    assert store.scores(query, some).tolist() == [wanted[i] for i in some]
                    assert [store.scores(query, np.array([i]))[0] for i in range(23)] == wanted
            for i, (rows_, values) in enumerate(store.best_rows(query, np.arange(23))):
                assert values.sum() == pytest.approx(wanted[i], rel=1e-5, abs=1e-4)
                assert len(rows_) == rows


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    dim=st.integers(1, 40) | st.integers(60, 300) | st.sampled_from([64, 72, 128, 184]),  # some in place
    rows=st.integers(1, 40),
    codec=st.sampled_from(INTEGERS),
    kind=st.sampled_from(["normal", "zeros", "ties", "huge"]),
)
@example(seed=1, dim=1, rows=1, codec="1-bit", kind="zeros")
@example(seed=4, dim=5, rows=3, codec="int8", kind="zeros")
def test_the_compiled_kernel_equals_numpy(tmp_path_factory, seed, dim, rows, codec, kind):
    rng = np.random.default_rng(seed)
    vectors = texts_of(rng, 12, dim)
    factor = {"normal": 1, "zeros": 0, "ties": 1, "huge": 1000}[kind]
    values = np.sign(vectors.values) if kind == "ties" else vectors.values * factor
    store = opened(tmp_path_factory.mktemp("i"), Ragged(values, vectors.offsets, vectors.ids), codec)
    query = rng.normal(size=(rows, dim)).astype(np.float32) * np.float32(rng.choice([0, 1e-3, 1, 1e3]))
    asked = Asked(np.sign(query) if kind == "ties" else query, None, bool(seed % 2))
    with patch.object(Meter, "kernels", lambda self, products: None):
        (plain,) = store.all_scores([asked])
    with patch("counterpoint.index.paths.WORTH", 0):
        (compiled,) = store.all_scores([asked])
    assert compiled.tobytes() == plain.tobytes()


@pytest.mark.parametrize("codec", CODES)
def test_rows_come_back_near_what_they_were(tmp_path, codec, monkeypatch):
    """Differences from a mean that takes most of a row are coded with less error than rows are."""
    monkeypatch.setattr(residual_module, "LEAST", 4)
    vectors = texts_of(np.random.default_rng(0), 200, 64)
    store = opened(tmp_path / "with", vectors, codec)
    without = opened(tmp_path / "without", Ragged(vectors.values, vectors.offsets), codec, ids=False)
    bare = CODECS[codec].decode(CODECS[codec].encode(vectors.values), 64)
    decoded = [*(each.take(np.arange(200)).values for each in (store, without)), bare]
    errors = [np.square(each - vectors.values).mean() for each in decoded]
    assert errors[0] < 0.5 * errors[1] < errors[1] < errors[2]
    taken = store.take(np.array([7, 3, 7]))
    assert taken.ids.tolist() == np.concatenate([vectors.ids_of(i) for i in (7, 3, 7)]).tolist()
    assert taken.lengths.tolist() == [vectors.lengths[i] for i in (7, 3, 7)]


def test_means_are_those_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(residual_module, "LEAST", 3)
    monkeypatch.setattr(residual_module, "CHUNK", 5)
    vectors = texts_of(np.random.default_rng(0), 30, 24, words=40)
    opened(tmp_path / "i", vectors, "2-bit")
    ids, counts = np.unique(
        np.concatenate([np.unique(vectors.ids_of(i)) for i in range(30)]), return_counts=True
    )
    ranks = np.load(tmp_path / "i" / "w.mean_ranks.npy")
    assert ranks.tolist() == np.flatnonzero(counts >= 3).tolist() and 0 < len(ranks) < len(ids)
    values, scales = (np.load(tmp_path / "i" / f"w.{kind}.npy") for kind in ("means", "mean_scales"))
    means = coarse.Table(values, scales, 24).decoded() @ rotation(24).T
    wanted = np.stack([vectors.values[vectors.ids == number].mean(0) for number in ids[ranks]])
    error = np.linalg.norm(means - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert error.max() < 0.2


@pytest.mark.parametrize("codec", CODES)
def test_batches_and_segments_do_not_show(tmp_path, codec):
    """Codes do not depend on batches, and two segments are searched as one set."""
    vectors = texts_of(np.random.default_rng(0), 40, 24)
    (layout, whole), (_, small) = (
        written(tmp_path / str(batch), vectors, codec, batch=batch) for batch in (40, 3)
    )
    halves = [written(tmp_path / f"half{i}", vectors.take(np.arange(i, i + 20)), codec)[1] for i in (0, 20)]
    query = Asked(np.random.default_rng(1).normal(size=(6, 24)).astype(np.float32))
    assert len(np.load(tmp_path / "40" / "w.mean_ranks.npy")) > 0
    one, other = (SeveralStore("w", layout, [each]).all_scores([query])[0] for each in (whole, small))
    assert one.tobytes() == other.tobytes()
    two = SeveralStore("w", layout, halves)
    (scores,) = two.all_scores([query])
    some = np.random.default_rng(2).permutation(40)
    assert two.scores(query, some).tobytes() == scores[some].tobytes()
    ids, counts = two.frequencies()
    assert (ids.tolist(), counts.tolist()) == tuple(
        x.tolist() for x in SeveralStore("w", layout, [whole]).frequencies()
    )


@pytest.mark.parametrize("codec", CODES)
def test_postings_lead_to_the_same_codes(tmp_path, codec):
    vectors = texts_of(np.random.default_rng(0), 30, 24)
    store = opened(tmp_path / "i", vectors, codec, kind="exact")
    query = Asked(
        np.random.default_rng(1).normal(size=(5, 24)).astype(np.float32), np.array([1, 4, 4, 7, 99]), True
    )
    np.testing.assert_allclose(store.inverted_scores([query])[0], store.all_scores([query])[0], atol=1e-4)
    assert (store.inverted_scores([query]) > 0).any()


def test_a_kernel_that_disagrees_is_not_used(monkeypatch, caplog):
    """numba may have kept code of another version."""
    import counterpoint.index.compiled.maxsim as module

    right = module.maxsim_bits
    monkeypatch.setattr(module, "maxsim_bits", lambda *asked: right(*asked) + np.float32(1e-3))
    paths._loaded.cache_clear()
    try:
        assert paths._loaded() is None and "give other scores than numpy" in caplog.text
        assert paths.described() == {"kernel": "numpy"}
    finally:
        paths._loaded.cache_clear()
    monkeypatch.undo()
    assert paths._loaded().maxsim is right and paths.described()["kernel"].startswith("compiled")


def test_without_vnni_the_kernel_gives_the_same_scores():
    """Compiled for an older processor, in a process of its own: the check at loading compares all codecs."""
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    code = "from counterpoint.index.paths import described; print(described()['kernel'])"
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert found.stdout.strip() == "compiled, portable", found.stderr


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1), dim=st.integers(1, 200), count=st.integers(1, 9), asked=st.integers(1, 5)
)
def test_a_scan_of_pooled_vectors_equals_numpy(tmp_path_factory, seed, dim, count, asked):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("i")
    layout, values = SetLayout(dim, "dense", "int8"), rng.normal(size=(count, dim)).astype(np.float32)
    values *= rng.choice([0, 1, 500], (count, 1))
    with SegmentWriter(folder, {"w": layout}) as writer:
        rows = Ragged(values, np.arange(count + 1))
        writer.append([Document(str(i), "") for i in range(count)], {"w": rows})
    store = DenseStore("w", layout, [Piece(CheckedFolder(folder), count, layout)])
    queries = [Asked(rng.normal(size=(1, dim)).astype(np.float32)) for _ in range(asked)]
    with patch.object(Meter, "kernels", lambda self, products: None):
        plain, some = store.all_scores(queries), store.scores(queries[0], np.arange(count)[::-1])
    with patch("counterpoint.index.paths.WORTH", 0):
        compiled = store.all_scores(queries)
        alone = store.all_scores(queries[:1])
    assert compiled.tobytes() == plain.tobytes()
    assert alone.tobytes() == plain[:1].tobytes() and some.tobytes() == plain[0][::-1].tobytes()
    wanted = np.concatenate([query.rows for query in queries]) @ store.take(np.arange(count)).values.T
    np.testing.assert_allclose(plain, wanted, atol=0.02 * np.abs(values).max() * dim)


def test_a_centre_is_the_mean_of_what_means_leave(tmp_path, monkeypatch):
    """Where all rows of a document are alike and no word has a mean, its centre is the row."""
    monkeypatch.setattr(residual_module, "LEAST", 10**6)
    rng = np.random.default_rng(0)
    rows = [np.repeat(rng.normal(size=(1, 32)), n, axis=0).astype(np.float32) for n in (3, 0, 5)]
    vectors = Ragged.from_list(rows, [np.arange(len(some)) for some in rows], dim=32)
    store = opened(tmp_path / "i", vectors, "1-bit")
    np.testing.assert_allclose(store.take(np.arange(3)).values, vectors.values, atol=0.2)
    centres = store.parts[0]._centres.of(np.arange(3)).decoded() @ rotation(32).T
    np.testing.assert_allclose(centres[[0, 2]], [rows[0][0], rows[2][0]], atol=0.3)
    assert not centres[1].any()


def test_vectors_that_are_too_large_for_a_scale_are_refused(tmp_path):
    """Their components fit in a float16, their factors do not."""
    values = np.random.default_rng(0).choice([-6e4, 6e4], (40, 64)).astype(np.float32)
    with pytest.raises(DataError, match="a vector is too large for 1-bit; use float32"):
        written(tmp_path / "i", Ragged(values, np.array([0, 20, 40])), "1-bit", ids=False)
