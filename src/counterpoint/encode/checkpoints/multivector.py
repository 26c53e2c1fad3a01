"""sentence-transformers 6, multi-vector: Transformer, Dense, MultiVectorMask, Normalize.

The format: `query_length`, `document_length` and `query_expansion` (strategy, length, attend, token) are in
the Transformer's `sentence_bert_config.json`. MultiVectorMask's `config.json` has the entries that documents
skip. Markers are prompts, which the saved tokenizer knows as single tokens.
"""

from __future__ import annotations

from typing import Any

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.checkpoints.dense import projection
from counterpoint.encode.checkpoints.modules import Module, PublishedModel
from counterpoint.encode.checkpoints.sentence import both_sides, longest, prompt, transformer_settings
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import TokenVectors
from counterpoint.errors import ArtifactError
from counterpoint.types import Side

__all__ = ["read", "recognises"]


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether there is a mask module, in the list or after a router."""
    modules = checkpoint.modules("query") if checkpoint.lists_modules else ()
    return any(module.kind == "MultiVectorMask" for module in modules)


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a multi-vector sentence-transformers model."""
    return both_sides(checkpoint, _encoder)


def _encoder(checkpoint: PublishedModel, modules: list[Module]) -> Encoder:
    backbone = checkpoint.backbone(modules[0])
    settings = transformer_settings(modules[0], backbone)
    kinds = [module.kind for module in modules[1:]]
    shape = [kind for kind in kinds if kind != "MultiVectorMask"]
    dense = ["Dense"] * shape.count("Dense")
    if kinds.count("MultiVectorMask") != 1 or shape not in (dense, [*dense, "Normalize"]):
        raise ArtifactError(
            f"after the Transformer come {kinds}; expected Dense, one MultiVectorMask, Normalize"
        )
    configs = {module.kind: module.config("config.json") for module in modules[1:]}
    mask = configs["MultiVectorMask"]
    if mask.get("keep_only_token_ids"):
        raise ArtifactError("keeps only some token ids (images), which is not supported")
    feature = configs.get("Normalize", {"module_input_name": "token_embeddings"}).get("module_input_name")
    if feature != "token_embeddings":
        raise ArtifactError(f"normalises {feature!r}, not 'token_embeddings'")
    skip, layer = mask.get("skiplist_words") or (), projection(modules[1:], backbone.dim, on="token")
    head = TokenVectors(skip, mask.get("skiplist_tasks") or ("document",), layer, "Normalize" in kinds)
    inputs = {
        side: _input(checkpoint, modules[0], settings, backbone, side) for side in ("query", "document")
    }
    return Encoder(backbone, {"tokens": head}, inputs["query"], inputs["document"])


def _input(
    checkpoint: PublishedModel, module: Module, settings: dict[str, Any], backbone: Transformer, side: Side
) -> TextInput:
    most = longest(module, settings, backbone, settings.get(f"{side}_length"))
    text = prompt(checkpoint, side)
    expansion = settings.get("query_expansion")
    if side == "document" or not expansion:
        return TextInput(most, prompt=text)
    strategy, length = expansion.get("strategy"), expansion.get("length")
    if strategy not in ("fixed", "min"):
        raise ArtifactError(
            f"expands queries with {strategy!r}; supported are 'fixed' and 'min'", path=module.folder
        )
    if not isinstance(length, int):
        raise ArtifactError(f"expands queries to a length of {length!r}", path=module.folder)
    most = length if strategy == "fixed" else max(most, length)
    attend, filler = bool(expansion.get("attend")), expansion.get("token")
    return TextInput(most, prompt=text, expand_to=length, attend=attend, expand_with=filler)
