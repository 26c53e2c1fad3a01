"""Checkpoints of others: each format built tiny and random, and compared with the library that defines it."""

import json
import string

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.encode.tiny import FP32, TEXTS, save_tiny_bert
from torch.nn.functional import normalize

from counterpoint.encode import Encoder, Mean, Transformer, load_encoder
from counterpoint.errors import ArtifactError
from counterpoint.loading import load_model

st = pytest.importorskip("sentence_transformers")
formats = pytest.importorskip("tests.encode.formats")

QUERIES = ["what is red?", "", "cat " * 50, "the dog: a house"]


def assert_sets(found, expected):
    """A ragged set against a list of arrays."""
    assert len(found) == len(expected)
    for index, rows in enumerate(expected):
        np.testing.assert_allclose(
            found[index], np.asarray(rows).reshape(-1, found.dim), rtol=1e-4, atol=2e-5
        )


# -- plain and dense ---------------------------------------------------------------------------------------


def test_plain_transformer(tmp_path):
    save_tiny_bert(tmp_path / "bert")
    found = load_encoder(tmp_path / "bert")
    reference = st.SentenceTransformer(str(tmp_path / "bert"), device="cpu")
    np.testing.assert_allclose(
        found.encode_document(TEXTS, FP32)["mean"].values, reference.encode(TEXTS), atol=2e-5
    )
    assert found.sets == {"mean": 16} and not found.training


@pytest.mark.parametrize("pooling", ["mean", "cls"])
@pytest.mark.parametrize("layers", ["none", "normalised", "dense", "two dense"])
def test_dense(tmp_path, pooling, layers):
    modules = {
        "none": (),
        "normalised": (formats.normalise(),),
        "dense": (formats.dense_layer(16, 6), formats.normalise()),
        "two dense": (
            formats.dense_layer(16, 6, bias=False),
            formats.dense_layer(6, 4, activation_function=None, use_residual=True),
        ),
    }[layers]
    prompts = {"query": "query: ", "document": "document: "}
    reference, folder = formats.save_dense(tmp_path, *modules, pooling=pooling, prompts=prompts)
    reference.max_seq_length = 20
    reference.save(str(folder))
    found = load_encoder(folder)
    assert found.query.query.max_length == 20
    np.testing.assert_allclose(
        found.encode_query(QUERIES, FP32)[pooling].values, reference.encode_query(QUERIES), atol=2e-5
    )
    np.testing.assert_allclose(
        found.encode_document(TEXTS, FP32)[pooling].values, reference.encode_document(TEXTS), atol=2e-5
    )


def test_dense_as_it_was_saved_before_version_6(tmp_path):
    reference, folder = formats.save_dense(tmp_path, formats.normalise())
    kinds = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    formats.set_modules(
        folder, *[(p, f"sentence_transformers.models.{k}") for p, k in zip(paths, kinds, strict=True)]
    )
    old = {"word_embedding_dimension": 16, "pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(old))
    (folder / "sentence_bert_config.json").write_text(
        json.dumps({"max_seq_length": 12, "do_lower_case": True})
    )
    reference.max_seq_length = 12
    found = load_encoder(folder).encode_document(TEXTS, FP32)["mean"].values
    np.testing.assert_allclose(found, reference.encode(TEXTS), atol=2e-5)


def save_router(folder):
    """A model whose sides have a transformer each; (sentence-transformers' model, folder)."""
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling

    formats.bert(folder / "a")
    sides = [
        [st.base.modules.Transformer(str(folder / "a")), Pooling(16), formats.dense_layer(16, 5)]
        for _ in range(2)
    ]
    router = Router.for_query_document(query_modules=sides[0], document_modules=sides[1])
    reference = st.SentenceTransformer(modules=[router, formats.normalise()], device="cpu")
    reference.save(str(folder / "model"))
    return reference, folder / "model"


def test_router_with_a_side_each(tmp_path):
    reference, folder = save_router(tmp_path)
    found = load_encoder(folder)
    assert found.document is not None
    np.testing.assert_allclose(
        found.encode_query(QUERIES, FP32)["mean"].values, reference.encode_query(QUERIES), atol=2e-5
    )
    np.testing.assert_allclose(
        found.encode_document(TEXTS, FP32)["mean"].values, reference.encode_document(TEXTS), atol=2e-5
    )


@pytest.mark.parametrize("side", ["query", "document"])
def test_each_side_is_tried_on_loading(tmp_path, side):
    _, folder = save_router(tmp_path)
    [config] = folder.glob(f"{side}_0_*/config.json")
    config.write_text(json.dumps({**json.loads(config.read_text()), "layer_norm_eps": -1e9}))
    with pytest.raises(ArtifactError, match="the vectors of a word are NaN or infinite"):
        load_model(folder)


# -- several vectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expansion": {"strategy": "fixed", "length": 16}, "tasks": ["query", "document"]},
        {"expansion": {"strategy": "min", "length": 16, "attend": True, "token": "the"}},
        {"prompts": {"query": "[unused0] ", "document": "[unused1] "}},
        {"layers": [
            formats.dense_layer(16, 12, feature="token_embeddings", use_residual=True),
            formats.dense_layer(12, 8, feature="token_embeddings", activation_function=None),
        ]},
    ],
    ids=["plain", "fixed expansion", "attended expansion", "prompts", "stack"],
)  # fmt: skip
def test_multi_vector(tmp_path, options):
    reference, folder = formats.save_multi(tmp_path, **options)
    found = load_encoder(folder)
    assert_sets(
        found.encode_query(QUERIES, FP32)["tokens"], reference.encode_query(QUERIES, convert_to_numpy=True)
    )
    assert_sets(
        found.encode_document(TEXTS, FP32)["tokens"], reference.encode_document(TEXTS, convert_to_numpy=True)
    )


def colbert(folder, weight, texts, *, marker, length, expand=False, attend=False, skip=()):
    """ColBERT's formula by a loop: one text at a time, formats.normalise(W BERT([CLS] marker tokens [SEP])).

    No padding here: a query's [MASK]s are real positions with attention 0 (or 1 where `attend`).
    """
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    number = tokenizer.convert_tokens_to_ids(marker)
    skipped = {tokenizer.convert_tokens_to_ids(sign) for sign in skip} - {tokenizer.unk_token_id}
    found = []
    for text in texts:
        ids = tokenizer(text, truncation=True, max_length=length - 1)["input_ids"]
        ids = [ids[0], number, *ids[1:]]
        attention = [1] * len(ids)
        while expand and len(ids) < length:
            ids.append(tokenizer.mask_token_id)
            attention.append(int(attend))
        with torch.inference_mode():
            hidden = model(torch.tensor([ids]), torch.tensor([attention])).last_hidden_state[0]
        rows = normalize(hidden @ weight.T, dim=-1)
        found.append(rows[[at for at, token in enumerate(ids) if token not in skipped]].numpy())
    return found


@pytest.mark.parametrize("attend", [False, True])
@pytest.mark.parametrize("expand", [False, True])
def test_pylate(tmp_path, attend, expand):
    formats.save_pylate(tmp_path / "m", attend_to_expansion_tokens=attend, do_query_expansion=expand)
    weight = load_file(tmp_path / "m" / "1_Dense" / "model.safetensors")["linear.weight"]
    found = load_encoder(tmp_path / "m")
    queries = colbert(
        tmp_path / "m", weight, QUERIES, marker="[unused0]", length=12, expand=expand, attend=attend
    )
    assert_sets(found.encode_query(QUERIES, FP32)["tokens"], queries)
    documents = colbert(tmp_path / "m", weight, TEXTS, marker="[unused1]", length=20, skip=".,!")
    assert_sets(found.encode_document(TEXTS, FP32)["tokens"], documents)


def test_pylate_as_sentence_transformers_reads_it(tmp_path):
    """The other library's reading of the same files, as a second opinion on the format."""
    formats.save_pylate(tmp_path / "m", model_type="ColBERT")
    reference = st.MultiVectorEncoder(str(tmp_path / "m"), device="cpu")
    found = load_encoder(tmp_path / "m")
    assert_sets(
        found.encode_query(QUERIES, FP32)["tokens"], reference.encode_query(QUERIES, convert_to_numpy=True)
    )
    assert_sets(
        found.encode_document(TEXTS, FP32)["tokens"], reference.encode_document(TEXTS, convert_to_numpy=True)
    )


@pytest.mark.parametrize("attend", [False, True])
@pytest.mark.parametrize("punctuation", [False, True])
def test_stanford(tmp_path, attend, punctuation):
    metadata = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]"}
    formats.save_stanford(
        tmp_path / "m", **metadata, mask_punctuation=punctuation, attend_to_mask_tokens=attend
    )
    weight = load_file(tmp_path / "m" / "model.safetensors")["linear.weight"]
    save_tiny_bert(tmp_path / "bert")  # the same weights, without the prefix
    found = load_encoder(tmp_path / "m")
    queries = colbert(
        tmp_path / "bert", weight, QUERIES, marker="[unused0]", length=10, expand=True, attend=attend
    )
    assert_sets(found.encode_query(QUERIES, FP32)["tokens"], queries)
    skip = string.punctuation if punctuation else ""
    documents = colbert(tmp_path / "bert", weight, TEXTS, marker="[unused1]", length=18, skip=skip)
    assert_sets(found.encode_document(TEXTS, FP32)["tokens"], documents)


# -- ours --------------------------------------------------------------------------------------------------


def test_own_format_and_a_foreign_one_saved_in_it(tmp_path):
    formats.save_stanford(tmp_path / "m")
    first = load_encoder(tmp_path / "m")
    first.save(tmp_path / "ours")
    again = load_encoder(str(tmp_path / "ours"))
    assert again.fingerprint() == first.fingerprint()
    one, other = first.encode_query(QUERIES, FP32)["tokens"], again.encode_query(QUERIES, FP32)["tokens"]
    assert np.array_equal(one.values, other.values)
    Encoder(Transformer(str(save_tiny_bert(tmp_path / "bert"))), {"mean": Mean()}).save(tmp_path / "single")
    assert load_encoder(tmp_path / "single").sets == {"mean": 16}
    Mean(in_dim=3).save(tmp_path / "head")
    with pytest.raises(ArtifactError, match="holds a Mean"):
        load_encoder(tmp_path / "head")
