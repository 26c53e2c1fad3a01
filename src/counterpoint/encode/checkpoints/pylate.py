"""PyLate: Transformer and one or more Dense; lengths, markers and skipped words in the model's settings.

The format: `modules.json` with `pylate.models.Dense.Dense`. `config_sentence_transformers.json` has
`query_prefix`, `document_prefix` (each one vocabulary entry, inserted after [CLS]), `query_length`,
`document_length` (both count the marker), `do_query_expansion`, `attend_to_expansion_tokens` and
`skiplist_words` (documents only). Vectors are scaled to unit length at encoding.
"""

from __future__ import annotations

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.checkpoints.dense import projection
from counterpoint.encode.checkpoints.modules import PublishedModel
from counterpoint.encode.checkpoints.sentence import prompt, transformer_settings
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import PUNCTUATION, TokenVectors
from counterpoint.errors import ArtifactError
from counterpoint.types import Side

__all__ = ["read", "recognises"]

# PyLate's own defaults, for settings that a checkpoint omits.
_MARKERS: dict[Side, str] = {"query": "[Q] ", "document": "[D] "}
_LENGTHS: dict[Side, int] = {"query": 32, "document": 180}


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether a module or a setting is PyLate's."""
    if not checkpoint.lists_modules:
        return False
    settings = checkpoint.settings
    own = settings.get("model_type") == "ColBERT" or "query_prefix" in settings
    return own or any(name.startswith("pylate.") for name in checkpoint.classes)


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a PyLate model."""
    modules = checkpoint.modules("document")
    kinds = [module.kind for module in modules]
    if kinds != ["Transformer"] + ["Dense"] * (len(kinds) - 1):
        raise ArtifactError(f"has the modules {kinds}; expected a Transformer, then Dense")
    if len(kinds) == 1:
        raise ArtifactError(
            "late-interaction model without its projection (no Dense module); its vectors would be wrong. "
            "Get the complete checkpoint"
        )
    # A Stanford checkpoint converted in place also has its projection in the backbone's file.
    unused = ("linear.weight",) if "HF_ColBERT" in checkpoint.architectures else ()
    backbone = checkpoint.backbone(modules[0], unused=unused)
    transformer_settings(modules[0], backbone)
    skip = checkpoint.settings.get("skiplist_words")
    layer = projection(modules[1:], backbone.dim, on="token")
    head = TokenVectors(PUNCTUATION if skip is None else skip, projection=layer, normalise=True)
    inputs = {side: _input(checkpoint, backbone, side) for side in ("query", "document")}
    return DualEncoder(Encoder(backbone, {"tokens": head}, inputs["query"], inputs["document"]))


def _input(checkpoint: PublishedModel, backbone: Transformer, side: Side) -> TextInput:
    settings = checkpoint.settings
    length = settings.get(f"{side}_length") or _LENGTHS[side]
    marker = settings.get(f"{side}_prefix", _MARKERS[side])
    find = backbone.tokenizer.find
    if marker and find(marker) is None and find(marker.strip()) is not None:
        marker = marker.strip()
    expand = side == "query" and settings.get("do_query_expansion") is not False
    attend = bool(settings.get("attend_to_expansion_tokens"))
    return TextInput(length, marker or None, prompt(checkpoint, side), length if expand else None, attend)
