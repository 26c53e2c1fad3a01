"""A text's vectors do not depend, to the last bit, on what is encoded with it."""

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.encode.tiny import TEXTS, VOCABULARY

from counterpoint.data import open_collection
from counterpoint.encode import (
    DualEncoder,
    EncodeOptions,
    Encoder,
    Gate,
    InteractiveEncoder,
    Linear,
    Mean,
    Router,
    SparseTerms,
    TextInput,
    TokenVectors,
    Transformer,
    WholeWords,
)
from counterpoint.encode.batching import shaped_batches
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.model import Model
from counterpoint.score import Dot
from counterpoint.search import Searcher
from counterpoint.transform import Whitening
from counterpoint.types import Document

PRECISIONS = ["fp32", "bf16"]
MORE = [*TEXTS, *(" ".join(VOCABULARY[40 + at : 40 + at + 3 * at]) for at in range(1, 20))]


@pytest.fixture(scope="module", params=[16, pytest.param(384, marks=pytest.mark.long)])
def tiny(request, tiny_bert_folder, tmp_path_factory):
    from tests.encode.tiny import save_tiny_bert

    folder = tiny_bert_folder
    if request.param != 16:
        folder = save_tiny_bert(tmp_path_factory.mktemp("wide-bert"), dim=request.param)
    torch.manual_seed(0)
    heads = {
        "mean": Mean(normalise=True),
        "words": WholeWords(projection=Linear(32)),
        "tokens": TokenVectors(projection=Linear(128), normalise=True),
        "terms": SparseTerms(Router(start="new", bias=0.0)),
    }
    encoder = Encoder(Transformer(str(folder)), heads, query=TextInput(expand_to=9))
    return DualEncoder(encoder, gates={"words": Gate()}).setup()


def options(precision):
    return EncodeOptions(precision=precision, device="cpu")


def assert_identical(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name].offsets, other[name].offsets)
        np.testing.assert_array_equal(one[name].values, other[name].values)


def in_chunks(encode, texts, size, how):
    chunks = [encode(texts[at : at + size], how) for at in range(0, len(texts), size)]
    return {name: type(chunks[0][name]).concatenate([c[name] for c in chunks]) for name in chunks[0]}


def taken(sets, order):
    return {name: packed.take(np.array(order)) for name, packed in sets.items()}


@given(st.lists(st.integers(1, 512), max_size=60), st.sampled_from([1, 100, 1024]), st.integers(1, 512))
def test_shapes_follow_from_each_length_alone(lengths, budget, limit):
    batches = shaped_batches(lengths, budget, limit)
    assert sorted(at for batch in batches for at in batch.texts) == list(range(len(lengths)))
    for batch in batches:
        assert 1 <= len(batch.texts) <= batch.rows and (batch.rows == 1 or batch.rows * batch.width <= budget)
        for at in batch.texts:
            assert lengths[at] <= batch.width <= max(limit, lengths[at])
            (alone,) = shaped_batches([lengths[at]], budget, limit)
            assert (alone.rows, alone.width) == (batch.rows, batch.width)


@pytest.mark.parametrize("precision", PRECISIONS)
def test_order_and_chunks_change_no_bit(tiny, precision):
    how = options(precision)
    for encode in (tiny.encode_document, tiny.encode_query):
        whole = encode(MORE, how)
        assert_identical(whole, in_chunks(encode, MORE, 7, how))
        assert_identical(whole, in_chunks(encode, MORE, 1, how))
        backwards = list(range(len(MORE)))[::-1]
        assert_identical(whole, taken(encode(MORE[::-1], how), backwards))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    neighbours=st.lists(st.sampled_from(MORE), max_size=12), at=st.integers(0, 12), text=st.sampled_from(MORE)
)
def test_no_neighbour_changes_a_vector(tiny, neighbours, at, text):
    at = min(at, len(neighbours))
    how = options("bf16")
    found = tiny.encode_document([*neighbours[:at], text, *neighbours[at:]], how)
    assert_identical(tiny.encode_document([text], how), taken(found, [at]))


def test_layers_and_gates_neither(tiny):
    how = options("bf16")
    whole = dict(
        states
        for found in [tiny.encode_layers(MORE, "document", how)]
        for batch, layers in found
        for states in zip(batch, zip(*[_each(layer) for layer in layers], strict=True), strict=True)
    )
    for at in (0, 3, len(MORE) - 1):
        ((_, layers),) = tiny.encode_layers([MORE[at]], "document", how)
        for one, other in zip(whole[at], [_each(layer)[0] for layer in layers], strict=True):
            np.testing.assert_array_equal(one, other)
    gates = tiny.gate_weights(MORE, "words", how)
    np.testing.assert_array_equal(gates[3], tiny.gate_weights([MORE[3]], "words", how)[0])


def _each(packed):
    return [packed[at] for at in range(len(packed))]


@pytest.mark.filterwarnings("ignore:Whitening")
def test_transforms_neither(tiny):
    rows = tiny.encode_document(MORE, options("fp32"))["tokens"].values
    model = Model(tiny, {"tokens": [Whitening(128, rank=32, normalise=True).fit([rows])]}).setup()
    how = options("fp32")
    whole = model.encode_document(MORE, how)
    assert whole["tokens"].dim == 32
    assert_identical(whole, in_chunks(model.encode_document, MORE, 1, how))


@pytest.mark.parametrize("precision", PRECISIONS)
def test_pairs_neither(tiny_bert_folder, precision):
    judge, how = InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1)).setup(), options(precision)
    whole = judge.scores(MORE, MORE[::-1], how)
    alone = [judge.scores([q], [d], how)[0] for q, d in zip(MORE, MORE[::-1], strict=True)]
    assert whole.tolist() == torch.stack(alone).tolist()


def test_identical_documents_have_one_score_and_rank_by_id(tiny, tmp_path, monkeypatch):
    """In build batches of 7, the copies are in three of them; ties go to the higher id, as in trec_eval."""
    monkeypatch.setattr("counterpoint.index.stream.BATCH", 7)
    texts = [*MORE[:5], "red dogs run", *MORE[5:13], "red dogs run", *MORE[13:], "red dogs run"]
    model = Model(tiny, {}, Dot("mean")).setup()
    build_index(
        [Document(f"d{at:02}", text) for at, text in enumerate(texts)],
        model,
        tmp_path / "i",
        IndexSettings(codec="float32", sets=["mean"], lexical=None),
    )
    same = [at for at, text in enumerate(texts) if text == "red dogs run"]
    assert len(same) == 3
    with Index(tmp_path / "i") as index:
        hits = Searcher(index, model).search("red dogs run", k=len(texts)).hits
    found = [hit for hit in hits if hit.document.id in {f"d{at:02}" for at in same}]
    assert len({hit.score for hit in found}) == 1
    assert [hit.document.id for hit in found] == [f"d{at:02}" for at in reversed(same)]


@pytest.mark.parametrize("gains", [False, True])
def test_queries_are_not_rounded_on_a_cpu(tiny, monkeypatch, gains):
    monkeypatch.setattr("counterpoint.encode.batching.bf16_gains", lambda device: gains)
    how = EncodeOptions(device="cpu")
    assert_identical(tiny.encode_query(MORE, how), tiny.encode_query(MORE, options("fp32")))
    documents = options("bf16" if gains else "fp32")
    assert_identical(tiny.encode_document(MORE, how), tiny.encode_document(MORE, documents))


# -- MiniLM ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm():
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    return DualEncoder(Encoder(Transformer("minilm"), heads)).setup()


@pytest.mark.minilm
@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.long)])
def test_minilm_order_and_chunks_change_no_bit(minilm, precision):
    words = "Boundary layers of a flat plate in supersonic flow with heat transfer at the wall".split()
    texts = [" ".join((words * 9)[at : at + size]) for at, size in enumerate((3, 9, 20, 33, 61, 62, 100))]
    how = options(precision)
    for encode in (minilm.encode_document, minilm.encode_query):
        whole = encode(texts, how)
        assert_identical(whole, in_chunks(encode, texts, 1, how))
        assert_identical(whole, taken(encode(texts[::-1], how), list(range(len(texts)))[::-1]))


@pytest.mark.long
@pytest.mark.shared
@pytest.mark.minilm
@pytest.mark.parametrize("precision", PRECISIONS)
def test_chunks_of_7_and_of_512_make_identical_arrays(minilm, shared, precision):
    texts = [document.full_text for document in open_collection(shared / "data" / "cranfield").documents()]
    how = options(precision)
    whole = in_chunks(minilm.encode_document, texts[:600], 512, how)
    assert_identical(whole, in_chunks(minilm.encode_document, texts[:600], 7, how))
