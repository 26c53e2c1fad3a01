"""ColBERTer and Uni-ColBERTer as their authors publish them.

The format: `config.json` names the architecture `ColBERTer` and, as `bert_model`, the transformer that
provides configuration and tokenizer; neither is in the folder. Weights are `bert_model.…`, `compressor.…`
(tokens), `compressor_retrieval.…` (the first position), `stop_word_reducer.…` (the gate), `mini_compressor.…`
(Uni-ColBERTer's second projection), each with a bias, and `score_merger`, γ.

The released code scores differently in training and with an index. Here both are the same: a row that the
gate drops does not exist, and the best similarity of a query word is at least 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.checkpoints.modules import PublishedModel
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.gate import Gate
from counterpoint.encode.heads import Cls, Head, WholeWords
from counterpoint.encode.layers import Linear
from counterpoint.encode.sources import locate
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import TokenVectors
from counterpoint.encode.weights import read_json, read_weights
from counterpoint.errors import ArtifactError

__all__ = ["read", "recognises", "search_settings"]

BACKBONE = "bert_model."
MERGER = "score_merger"
PARTS = ("compressor", "compressor_retrieval", "stop_word_reducer", "mini_compressor")
QUERY, DOCUMENT = 30, 200  # in tokens, as in the models' training


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether the architecture is ColBERTer's."""
    return "ColBERTer" in checkpoint.architectures


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a ColBERTer checkpoint: sets `cls` and `words`, or `tokens` if words are not aggregated.

    Raises:
        ArtifactError: weights that the settings need are missing, or there are others.
    """
    settings, tensors = read_json(checkpoint.folder / "config.json"), read_weights(checkpoint.folder)
    _check_names(settings, tensors)
    backbone = _backbone(checkpoint, settings, tensors)
    layers = {name: _linear(checkpoint, name, tensors) for name in PARTS if f"{name}.weight" in tensors}
    several, head = _several(settings, layers.get("compressor"))
    heads: dict[str, Head] = {"cls": Cls(projection=layers.get("compressor_retrieval")), several: head}
    gates = {}
    if "stop_word_reducer" in layers:
        gates[several] = Gate(in_dim=layers["stop_word_reducer"].in_dim).setup()
        gates[several].linear_.load_state_dict(layers["stop_word_reducer"].linear_.state_dict())
    shared = {several: layers["mini_compressor"]} if "mini_compressor" in layers else None
    query, document = (TextInput(min(n, backbone.max_positions)) for n in (QUERY, DOCUMENT))
    return DualEncoder(Encoder(backbone, heads, query, document), shared=shared, gates=gates)


def search_settings(checkpoint: PublishedModel) -> dict[str, Any]:
    """Search settings for the model: σ(γ) for `cls`, the rest for words, matched as in training."""
    settings, tensors = read_json(checkpoint.folder / "config.json"), read_weights(checkpoint.folder)
    several = _several(settings, None)[0]
    cls = 1 / (1 + math.exp(-float(tensors[MERGER])))
    said: dict[str, Any] = {"weights": {"cls": cls, several: 1 - cls}, "scale": "none"}
    if settings.get("compress_to_exact_mini_mode"):
        return {**said, "exact": (several,)}
    return {**said, "floor": (several,)} if settings.get("use_contextualized_stopwords") else said


def _several(settings: Mapping[str, Any], projection: Linear | None) -> tuple[str, Head]:
    """The multi-vector set; its words are not stemmed, whatever the released setting says."""
    if settings.get("aggregate_unique_ids"):
        return "words", WholeWords(stem="lower", projection=projection)
    return "tokens", TokenVectors(projection=projection)


def _check_names(settings: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
    wanted = {
        "compressor": settings.get("compression_dim", -1) > -1,
        "compressor_retrieval": settings.get("retrieval_compression_dim", -1) > -1,
        "stop_word_reducer": bool(settings.get("use_contextualized_stopwords")),
        "mini_compressor": settings.get("second_compress_dim", -1) > -1,
    }
    names = {MERGER, *(f"{part}.{kind}" for part in PARTS if wanted[part] for kind in ("weight", "bias"))}
    found = {name for name in tensors if not name.startswith(BACKBONE)}
    if names != found:
        faults = [f"weight {name!r} is missing" for name in sorted(names - found)]
        faults += [f"weight {name!r} is not expected by config.json" for name in sorted(found - names)]
        raise ArtifactError("; ".join(faults))


def _backbone(
    checkpoint: PublishedModel, settings: Mapping[str, Any], tensors: Mapping[str, Tensor]
) -> Transformer:
    name = settings.get("bert_model")
    if not isinstance(name, str):
        raise ArtifactError("config.json does not name its backbone as bert_model")
    own = {key.removeprefix(BACKBONE): t for key, t in tensors.items() if key.startswith(BACKBONE)}
    return Transformer(checkpoint.source, checkpoint.revision).setup_from(locate(name), weights=own)


def _linear(checkpoint: PublishedModel, name: str, tensors: Mapping[str, Tensor]) -> Linear:
    weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
    linear = Linear(weight.shape[0], in_dim=weight.shape[1]).setup()
    linear._load_strictly({"linear_.weight": weight.float(), "linear_.bias": bias.float()}, checkpoint.folder)
    return linear
