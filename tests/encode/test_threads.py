"""Several threads may encode by one model at once, and get what one alone gets."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from tests.encode.tiny import FP32

import counterpoint as cp
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.loading import load_model
from counterpoint.model import Model

THREADS = 8
NOUNS = ("lung", "date", "whale", "train", "python", "otter", "bridge", "fox")
TEXTS = [" ".join(["paris", "is", "in", "france", "cats"][: 1 + at % 5] * (1 + at // 5)) for at in range(24)]


def made(folder):
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    return Model(DualEncoder(Encoder(Transformer(str(folder)), heads)))


def together(work):
    """What eight threads get that begin at once, and then each again."""
    gate = Barrier(THREADS)

    def one(_):
        gate.wait()
        return [work() for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        return [found for some in pool.map(one, range(THREADS)) for found in some]


def same(found, alone):
    for sets in found:
        for name, packed in alone.items():
            np.testing.assert_array_equal(sets[name].values, packed.values)
            np.testing.assert_array_equal(sets[name].offsets, packed.offsets)


@pytest.mark.parametrize("side", ["encode_query", "encode_document"])
def test_threads_get_what_one_gets(tiny_bert_folder, side):
    model = made(tiny_bert_folder).setup()
    alone = getattr(model, side)(TEXTS, FP32)
    assert model.training  # as it was made: in that mode dropout would change every vector
    same(together(lambda: getattr(model, side)(TEXTS, FP32)), alone)
    assert model.training and model.encoder.training


def test_a_model_is_set_up_once_whichever_thread_is_first(tiny_bert_folder):
    model = made(tiny_bert_folder)
    found = together(lambda: model.encode_query(TEXTS[:3], FP32))
    same(found, model.encode_query(TEXTS[:3], FP32))


def test_the_maps_of_a_model_are_set_up_once(tiny_bert_folder, monkeypatch):
    made_once = []
    monkeypatch.setattr(Model, "_allocate", lambda self: made_once.append(threading.get_ident()))
    model = made(tiny_bert_folder)
    together(lambda: model.encode_document(TEXTS[:2], FP32))
    assert len(made_once) == 1


def test_threads_do_not_move_a_model_at_the_same_time(tiny_bert_folder, monkeypatch):
    inside, most, move = [], [], DualEncoder.to

    def slow(self, *where):
        inside.append(0)
        most.append(len(inside))
        time.sleep(0.01)
        moved = move(self, *where)
        inside.pop()
        return moved

    monkeypatch.setattr(DualEncoder, "to", slow)
    model = made(tiny_bert_folder)
    together(lambda: model.encode_document(TEXTS[:2], FP32))
    assert len(most) >= THREADS and max(most) == 1


@pytest.mark.minilm
def test_threads_get_what_one_gets_of_the_default_model():
    """Each thread has texts of its own, of its own lengths, and takes turns with queries and documents."""
    model = load_model("minilm")
    texts = [[f"{word} " * (1 + 20 * at), f"growth of {word}"] for at, word in enumerate(NOUNS)]
    alone = [(model.encode_query(some), model.encode_document(some)) for some in texts]
    gate = Barrier(THREADS)

    def one(at):
        gate.wait()
        return [(model.encode_query(texts[at]), model.encode_document(texts[at])) for _ in range(2)]

    with ThreadPoolExecutor(THREADS) as pool:
        for (queries, documents), made in zip(alone, pool.map(one, range(THREADS)), strict=True):
            same([found for found, _ in made], queries)
            same([found for _, found in made], documents)


@pytest.mark.minilm
def test_an_open_index_answers_threads_as_it_answers_one(tmp_path):
    with cp.index([f"a {word} and a tree" for word in NOUNS], tmp_path / "i") as notes:
        alone = [notes.search(word, k=3, explain=True).to_dict() for word in NOUNS]
    with cp.open(tmp_path / "i") as notes, ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda word: notes.search(word, k=3, explain=True).to_dict(), NOUNS))
    assert found == alone
