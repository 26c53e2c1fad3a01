"""Checkpoints of others: each format built tiny and random, and compared with the library that defines it."""

import json
import string

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.encode.tiny import TEXTS, save_tiny_bert
from torch.nn.functional import normalize

from counterpoint.encode import EncodeOptions, Encoder, Mean, Transformer, load_encoder
from counterpoint.errors import ArtifactError

st = pytest.importorskip("sentence_transformers")

FP32 = EncodeOptions(precision="fp32", device="cpu")
QUERIES = ["what is red?", "", "cat " * 50, "the dog: a house"]


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def assert_sets(found, expected):
    """A ragged set against a list of arrays."""
    assert len(found) == len(expected)
    for index, rows in enumerate(expected):
        np.testing.assert_allclose(
            found[index], np.asarray(rows).reshape(-1, found.dim), rtol=1e-4, atol=2e-5
        )


def bert(folder):
    return st.base.modules.Transformer(str(save_tiny_bert(folder)))


def save_dense(folder, *modules, pooling="mean", **options):
    from sentence_transformers.sentence_transformer.modules import Pooling

    model = st.SentenceTransformer(
        modules=[bert(folder / "bert"), Pooling(16, pooling), *modules], device="cpu", **options
    )
    model.save(str(folder / "model"))
    return model, folder / "model"


def dense_layer(*sizes, feature="sentence_embedding", **options):
    from sentence_transformers.base.modules import Dense

    return Dense(*sizes, module_input_name=feature, **options)


def normalise(feature="sentence_embedding"):
    from sentence_transformers.base.modules import Normalize

    return Normalize(feature)


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
        "normalised": (normalise(),),
        "dense": (dense_layer(16, 6), normalise()),
        "two dense": (
            dense_layer(16, 6, bias=False),
            dense_layer(6, 4, activation_function=None, use_residual=True),
        ),
    }[layers]
    prompts = {"query": "query: ", "document": "document: "}
    reference, folder = save_dense(tmp_path, *modules, pooling=pooling, prompts=prompts)
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
    reference, folder = save_dense(tmp_path, normalise())
    kinds = ("Transformer", "Pooling", "Normalize")
    paths = ("", "1_Pooling", "2_Normalize")
    set_modules(
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


def test_router_with_a_side_each(tmp_path):
    from sentence_transformers.base.modules import Router
    from sentence_transformers.sentence_transformer.modules import Pooling

    router = Router.for_query_document(
        query_modules=[bert(tmp_path / "a"), Pooling(16), dense_layer(16, 5)],
        document_modules=[st.base.modules.Transformer(str(tmp_path / "a")), Pooling(16), dense_layer(16, 5)],
    )
    reference = st.SentenceTransformer(modules=[router, normalise()], device="cpu")
    reference.save(str(tmp_path / "model"))
    found = load_encoder(tmp_path / "model")
    assert found.document is not None
    np.testing.assert_allclose(
        found.encode_query(QUERIES, FP32)["mean"].values, reference.encode_query(QUERIES), atol=2e-5
    )
    np.testing.assert_allclose(
        found.encode_document(TEXTS, FP32)["mean"].values, reference.encode_document(TEXTS), atol=2e-5
    )


# -- several vectors ---------------------------------------------------------------------------------------


def save_multi(folder, *, expansion=None, tasks=None, prompts=None, layers=None):
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    transformer = bert(folder / "bert")
    transformer.query_expansion = expansion
    transformer.document_length = 24
    layers = layers or [dense_layer(16, 8, feature="token_embeddings", bias=False, activation_function=None)]
    mask = MultiVectorMask(list(string.punctuation), skiplist_tasks=tasks)
    model = st.MultiVectorEncoder(
        modules=[transformer, *layers, mask, normalise("token_embeddings")], prompts=prompts, device="cpu"
    )
    model.save(str(folder / "model"))
    return model, folder / "model"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"expansion": {"strategy": "fixed", "length": 16}, "tasks": ["query", "document"]},
        {"expansion": {"strategy": "min", "length": 16, "attend": True, "token": "the"}},
        {"prompts": {"query": "[unused0] ", "document": "[unused1] "}},
        {"layers": [
            dense_layer(16, 12, feature="token_embeddings", use_residual=True),
            dense_layer(12, 8, feature="token_embeddings", activation_function=None),
        ]},
    ],
    ids=["plain", "fixed expansion", "attended expansion", "prompts", "stack"],
)  # fmt: skip
def test_multi_vector(tmp_path, options):
    reference, folder = save_multi(tmp_path, **options)
    found = load_encoder(folder)
    assert_sets(
        found.encode_query(QUERIES, FP32)["tokens"], reference.encode_query(QUERIES, convert_to_numpy=True)
    )
    assert_sets(
        found.encode_document(TEXTS, FP32)["tokens"], reference.encode_document(TEXTS, convert_to_numpy=True)
    )


def save_pylate(folder, **settings):
    """Transformer and one PyLate Dense, with the settings PyLate writes."""
    save_tiny_bert(folder)
    (folder / "1_Dense").mkdir()
    save_file({"linear.weight": torch.randn(8, 16)}, folder / "1_Dense" / "model.safetensors")
    identity = "torch.nn.modules.linear.Identity"
    config = {"in_features": 16, "out_features": 8, "bias": False, "activation_function": identity}
    (folder / "1_Dense" / "config.json").write_text(json.dumps(config))
    names = [("", "sentence_transformers.models.Transformer"), ("1_Dense", "pylate.models.Dense.Dense")]
    entries = [{"idx": i, "name": str(i), "path": path, "type": name} for i, (path, name) in enumerate(names)]
    (folder / "modules.json").write_text(json.dumps(entries))
    settings = {
        "query_prefix": "[unused0]",
        "document_prefix": "[unused1]",
        "query_length": 12,
        "document_length": 20,
        "attend_to_expansion_tokens": False,
        "do_query_expansion": True,
        "skiplist_words": [".", ",", "!"],
        **settings,
    }
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return settings


def colbert(folder, weight, texts, *, marker, length, expand=False, attend=False, skip=()):
    """ColBERT's formula by a loop: one text at a time, normalise(W BERT([CLS] marker tokens [SEP])).

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
    save_pylate(tmp_path / "m", attend_to_expansion_tokens=attend, do_query_expansion=expand)
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
    save_pylate(tmp_path / "m", model_type="ColBERT")
    reference = st.MultiVectorEncoder(str(tmp_path / "m"), device="cpu")
    found = load_encoder(tmp_path / "m")
    assert_sets(
        found.encode_query(QUERIES, FP32)["tokens"], reference.encode_query(QUERIES, convert_to_numpy=True)
    )
    assert_sets(
        found.encode_document(TEXTS, FP32)["tokens"], reference.encode_document(TEXTS, convert_to_numpy=True)
    )


def save_stanford(folder, **metadata):
    save_tiny_bert(folder)
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**tensors, "linear.weight": torch.randn(8, 16)}, folder / "model.safetensors")
    edit(folder / "config.json", architectures=["HF_ColBERT"])
    (folder / "artifact.metadata").write_text(
        json.dumps({"query_maxlen": 10, "doc_maxlen": 18, "dim": 8, **metadata})
    )


@pytest.mark.parametrize("attend", [False, True])
@pytest.mark.parametrize("punctuation", [False, True])
def test_stanford(tmp_path, attend, punctuation):
    metadata = {"query_token_id": "[unused0]", "doc_token_id": "[unused1]"}
    save_stanford(tmp_path / "m", **metadata, mask_punctuation=punctuation, attend_to_mask_tokens=attend)
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
    save_stanford(tmp_path / "m")
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


# -- refused -----------------------------------------------------------------------------------------------


def refuse(folder, message):
    with pytest.raises(ArtifactError, match=message):
        load_encoder(folder)


def set_modules(folder, *entries):
    (folder / "modules.json").write_text(json.dumps([{"path": path, "type": name} for path, name in entries]))


def test_no_model(tmp_path):
    refuse(tmp_path, "no model here")


def test_missing_projections(tmp_path):
    save_stanford(tmp_path / "s")
    tensors = load_file(tmp_path / "s" / "model.safetensors")
    weight = tensors.pop("linear.weight")
    save_file(tensors, tmp_path / "s" / "model.safetensors")
    refuse(tmp_path / "s", "projection 'linear.weight' is missing")
    save_file({**tensors, "linear.weight": weight[:, :4].contiguous()}, tmp_path / "s" / "model.safetensors")
    refuse(tmp_path / "s", "maps 4 components")
    save_pylate(tmp_path / "p")
    set_modules(tmp_path / "p", ("", "sentence_transformers.models.Transformer"))
    refuse(tmp_path / "p", "without its projection")


def test_unused_weights(tmp_path):
    save_stanford(tmp_path / "s")
    (tmp_path / "s" / "artifact.metadata").unlink()
    edit(tmp_path / "s" / "config.json", architectures=["BertModel"])
    refuse(tmp_path / "s", "linear.weight' is not used")  # ColBERT is not to be read as a pooled model
    save_pylate(tmp_path / "p")
    path = tmp_path / "p" / "1_Dense" / "model.safetensors"
    save_file({"linear.weight": torch.zeros(8, 16), "linear.bias": torch.zeros(8)}, path)
    refuse(tmp_path / "p", "linear_.bias' is not used")


def test_dimensions_that_disagree(tmp_path):
    save_stanford(tmp_path / "s", dim=4)
    refuse(tmp_path / "s", "says dim 4")
    save_pylate(tmp_path / "p")
    edit(tmp_path / "p" / "1_Dense" / "config.json", in_features=12)
    refuse(tmp_path / "p", "in_features is 12")
    edit(tmp_path / "p" / "1_Dense" / "config.json", in_features=16, out_features=9)
    refuse(tmp_path / "p", "has shape")
    _, folder = save_dense(tmp_path / "d")
    edit(folder / "1_Pooling" / "config.json", embedding_dimension=99)
    refuse(folder, "pools 99 components")


@pytest.mark.parametrize(
    ("name", "path", "message"),
    [
        ("evil.Module", "1_Dense", "'evil.Module', which is not known"),
        ("sentence_transformers.models.LSTM", "1_Dense", "LSTM"),
        ("pylate.models.Dense.Dense", "../1_Dense", "outside the checkpoint"),
        ("pylate.models.Dense.Dense", "/1_Dense", "outside the checkpoint"),
        ("pylate.models.Dense.Dense", "2_Dense", "missing"),
    ],
)
def test_modules_not_to_be_trusted(tmp_path, name, path, message):
    save_pylate(tmp_path / "m")
    set_modules(tmp_path / "m", ("", "sentence_transformers.models.Transformer"), (path, name))
    refuse(tmp_path / "m", message)


def test_a_link_out_of_the_folder(tmp_path):
    save_pylate(tmp_path / "m")
    (tmp_path / "m" / "1_Dense").rename(tmp_path / "elsewhere")
    (tmp_path / "m" / "1_Dense").symlink_to(tmp_path / "elsewhere")
    refuse(tmp_path / "m", "outside the checkpoint")


def test_settings_that_cannot_be_carried_out(tmp_path):
    save_pylate(tmp_path / "m", query_prefix="[Q] ")
    refuse(tmp_path / "m", r"marker '\[Q\] ' is not one entry")
    save_pylate(tmp_path / "n")
    edit(tmp_path / "n" / "1_Dense" / "config.json", activation_function="os.system")
    refuse(tmp_path / "n", "os.system")
    _, folder = save_dense(tmp_path / "d", pooling="max")
    refuse(folder, "pools by 'max'")


@pytest.mark.parametrize("text", ["{", "[1]", '{"a": 1}'])
def test_broken_modules_json(tmp_path, text):
    save_pylate(tmp_path / "m")
    (tmp_path / "m" / "modules.json").write_text(text)
    refuse(tmp_path / "m", "modules.json")
