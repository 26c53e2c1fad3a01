"""An open index keeps the vectors of its last queries; what it answers is the same."""

import threading

import numpy as np
import pytest
from tests.fakes import DOCUMENTS, HashModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, build_index
from counterpoint.library.remembered import Remembered
from counterpoint.search import Searcher


class Counting(HashModel):
    def __init__(self):
        super().__init__()
        self.asked = []

    def encode_query(self, texts):
        self.asked += texts
        return super().encode_query(texts)


def same(one, other):
    return all(
        np.array_equal(one[name].values, other[name].values)
        and np.array_equal(one[name].offsets, other[name].offsets)
        and ((one[name].ids is None) == (other[name].ids is None))
        for name in one
    )


def test_a_query_is_encoded_once_and_answers_stay_the_same(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    model = Counting()
    with Index(tmp_path / "i") as index:
        kept, plain = Searcher(index, Remembered(model, 10)), Searcher(index, HashModel())
        for query in ("fox", "bridge", "fox", "fox bridge", "bridge"):
            found, wanted = kept.search(query, explain=True), plain.search(query, explain=True)
            assert [(h.id, h.score, h.explanation) for h in found] == [
                (h.id, h.score, h.explanation) for h in wanted
            ]
    assert model.asked == ["fox", "bridge", "fox bridge"]


def test_the_least_recently_asked_goes_first():
    model = Counting()
    kept = Remembered(model, 2)
    for query in ("a", "b", "a", "c", "a", "b"):
        kept.encode_query([query])
    assert model.asked == ["a", "b", "c", "b"]


@pytest.mark.parametrize("size", [0, 1, 3, 100])
def test_several_queries_come_in_their_order_whatever_is_kept(size):
    model = Counting()
    kept = Remembered(model, size)
    for texts in (["a", "b c", "a", ""], ["b c", "d"], []):
        assert same(kept.encode_query(texts), HashModel().encode_query(texts))
    assert model.asked.count("a") == 1


def test_threads_share_it():
    kept = Remembered(HashModel(), 3)
    wanted = {text: HashModel().encode_query([text]) for text in "abcdefgh"}
    wrong = []

    def ask(seed):
        for at in np.random.default_rng(seed).integers(0, 8, 300):
            text = "abcdefgh"[at]
            if not same(kept.encode_query([text]), wanted[text]):
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_negative_size_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cached must be"):
        Remembered(HashModel(), -1)
