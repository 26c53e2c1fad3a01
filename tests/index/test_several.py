"""Sets of words with means: the way to candidates by the means, against a look at every vector."""

from unittest.mock import patch

import numpy as np
import pytest
from tests.index import test_lists
from tests.index.test_lists import queries

from counterpoint.index import Among, Asked
from counterpoint.index.paths import Meter
from counterpoint.index.store import Everything
from counterpoint.types import Ragged

DIM, WORDS = 24, 60
WAYS = [Meter.kernels, lambda self, products: None]


@pytest.fixture(autouse=True)
def means_of_few(monkeypatch):
    monkeypatch.setattr("counterpoint.index.several.LEAST", 100)
    monkeypatch.setattr("counterpoint.index.several.BLOCK", 64)
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)


def texts(rng, count, words=WORDS):
    """Vectors of words, with something of their document; some documents are empty."""
    means, rows, ids = rng.normal(size=(words, DIM)), [], []
    for _ in range(count):
        own = rng.permutation(words)[: rng.integers(0, 12)]
        found = means[own] + 0.4 * rng.normal(size=(len(own), DIM)) + 0.3 * rng.normal(size=DIM)
        rows.append((found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32))
        ids.append(own * 7)
    return Ragged.from_list(rows, ids, dim=DIM)


def opened(folder, vectors, codec, cuts=()):
    return test_lists.opened(folder, vectors, codec, cuts, "several")


@pytest.mark.parametrize("codec", ["1-bit", "2-bit", "4-bit"])
@pytest.mark.parametrize("cuts", [(), (50,), (150,)])
@pytest.mark.parametrize("filtered", [False, True])
def test_means_find_what_looking_at_everything_finds(tmp_path, codec, cuts, filtered):
    rng = np.random.default_rng(0)
    vectors = texts(rng, 700)
    store, asked = opened(tmp_path, vectors, codec, cuts), queries(rng, vectors)
    among = Among(rng.random(700) < 0.6 if filtered else None, rng.permutation(700))
    near, everything = store.look(asked), store.look(asked, exhaustive=True)
    found = [
        np.isin(everything.best(i, 10, among), near.best(i, 10, among)).mean() for i in range(len(asked))
    ]
    assert np.mean(found) > 0.95
    assert near.known(0, np.arange(3)) is None and everything.known(0, np.arange(3)) is not None
    for i in range(len(asked)):
        best = near.best(i, 600, among)
        assert len(set(best.tolist())) == min(600, 700 if among.allowed is None else among.allowed.sum())
        assert among.allowed is None or among.allowed[best].all()


@pytest.mark.parametrize("words", [WORDS, 70_000])
def test_numpy_and_the_kernels_find_the_same_whatever_is_asked_with_it(tmp_path, words):
    """With more words than two bytes can number, too."""
    rng = np.random.default_rng(1)
    vectors = texts(rng, 300)
    if words > 2**16:
        rare = Ragged(np.ones((words, DIM), np.float32), np.array([0, words]), 1000 + np.arange(words))
        vectors = Ragged.concatenate([vectors, rare])
    store = opened(tmp_path, vectors, "1-bit", (120,))
    assert store.parts[1].words[1][:1].dtype == (np.uint32 if words > 2**16 else np.uint16)
    for size in (1, 16, 17, 33):
        asked = queries(rng, vectors, 4, size)
        asked.append(Asked(np.zeros((size, DIM), np.float32)))
        found = []
        for way in WAYS:
            with patch.object(Meter, "kernels", way):
                together = [store.look(asked).best(i, 7).tolist() for i in range(5)]
                assert together == [store.look([query]).best(0, 7).tolist() for query in asked]
                found.append(together)
        assert found[0] == found[1]


@pytest.mark.parametrize("way", WAYS)
def test_a_query_without_rows_scores_nothing(tmp_path, way):
    store = opened(tmp_path, texts(np.random.default_rng(3), 150), "1-bit")
    asked = Asked(np.zeros((0, DIM), np.float32))
    with patch.object(Meter, "kernels", way), np.errstate(all="raise"):
        assert sorted(store.look([asked]).best(0, 5)) == sorted(
            store.look([asked], exhaustive=True).best(0, 5)
        )


def test_small_segments_and_exact_matching_look_at_everything(tmp_path):
    rng = np.random.default_rng(2)
    vectors = texts(rng, 190)
    small = opened(tmp_path / "small", vectors, "1-bit", (95,))
    plain = opened(tmp_path / "plain", vectors, "int8")
    large = opened(tmp_path / "large", vectors, "1-bit")
    asked = queries(rng, vectors, 1, 6)
    assert isinstance(small.look(asked), Everything) and isinstance(plain.look(asked), Everything)
    assert not isinstance(large.look(asked), Everything)
    exact = [Asked(asked[0].rows, np.arange(6) * 7, True)]
    assert isinstance(large.look(exact), Everything)
