"""Several threads may encode by one model at once, and get what one alone gets."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest
from tests.encode.tiny import FP32

from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.model import Model, load_model

THREADS = 8
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


@pytest.mark.minilm
def test_threads_get_what_one_gets_of_the_default_model():
    model = load_model("minilm")
    texts = ["growth of lung tissue", "a query", "dates in Python"]
    alone = [model.encode_query([text]) for text in texts]
    for at, text in enumerate(texts):
        same(together(lambda text=text: model.encode_query([text])), alone[at])
