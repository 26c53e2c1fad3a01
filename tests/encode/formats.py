"""Tiny random checkpoints in the formats of others."""

import json
import string

import sentence_transformers as st
import torch
from safetensors.torch import load_file, save_file
from tests.encode.tiny import save_tiny_bert


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def set_modules(folder, *entries):
    (folder / "modules.json").write_text(json.dumps([{"path": path, "type": name} for path, name in entries]))


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


def save_colberter(folder, *, exact=False, words=True):
    """ColBERTer, or Uni-ColBERTer where `exact`: the transformer is named, and its files are elsewhere."""
    bert = save_tiny_bert(folder.parent / "bert")
    tensors = {f"bert_model.{name}": t for name, t in load_file(bert / "model.safetensors").items()}
    sizes = {"compressor": (5, 16), "compressor_retrieval": (6, 16), "stop_word_reducer": (1, 5)}
    sizes |= {"mini_compressor": (1, 5)} if exact else {}
    for name, size in sizes.items():
        tensors |= {f"{name}.weight": torch.randn(*size), f"{name}.bias": torch.randn(size[0])}
    folder.mkdir()
    save_file({**tensors, "score_merger": torch.tensor([0.4])}, folder / "model.safetensors")
    settings = {
        "architectures": ["ColBERTer"], "model_type": "ColBERT", "bert_model": str(bert),
        "compression_dim": 5, "retrieval_compression_dim": 6, "use_contextualized_stopwords": True,
        "aggregate_unique_ids": words, "compress_to_exact_mini_mode": exact,
        "second_compress_dim": 1 if exact else -1, "dual_loss": True, "return_vecs": False,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(settings))
    return tensors, bert


def save_stanford(folder, **metadata):
    save_tiny_bert(folder)
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file({**tensors, "linear.weight": torch.randn(8, 16)}, folder / "model.safetensors")
    edit(folder / "config.json", architectures=["HF_ColBERT"])
    (folder / "artifact.metadata").write_text(
        json.dumps({"query_maxlen": 10, "doc_maxlen": 18, "dim": 8, **metadata})
    )
