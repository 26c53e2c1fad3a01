"""sentence-transformers, dense: Transformer, Pooling, then optional Dense and Normalize.

The format: `modules.json` lists classes and folders. The Transformer's folder has `sentence_bert_config.json`
(`max_seq_length`) or, since version 6, `model_max_length` in `tokenizer_config.json`. Pooling's `config.json`
has one flag per mode or, since version 6, `pooling_mode`. Prompts are in `config_sentence_transformers.json`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.checkpoints.dense import projection
from counterpoint.encode.checkpoints.modules import Module, PublishedModel
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.heads import Cls, Head, Mean
from counterpoint.encode.text import TextInput
from counterpoint.errors import ArtifactError
from counterpoint.types import Side

__all__ = ["both_sides", "longest", "prompt", "read", "recognises", "transformer_settings"]

_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether there is a `modules.json`."""
    return checkpoint.lists_modules


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a dense sentence-transformers model."""
    return both_sides(checkpoint, _encoder)


def both_sides(
    checkpoint: PublishedModel, make: Callable[[PublishedModel, list[Module]], Encoder]
) -> DualEncoder:
    """Make an encoder for each side, or one for both unless a router separates them."""
    query, document = checkpoint.modules("query"), checkpoint.modules("document")
    if query == document:
        return DualEncoder(make(checkpoint, query))
    return DualEncoder(make(checkpoint, query), make(checkpoint, document))


def _encoder(checkpoint: PublishedModel, modules: list[Module]) -> Encoder:
    backbone = checkpoint.backbone(modules[0])
    settings = transformer_settings(modules[0], backbone)
    if len(modules) < 2 or modules[1].kind != "Pooling":
        raise ArtifactError("expected Pooling after the Transformer")
    name, head = _head(modules[1], modules[2:], backbone.dim)
    most = longest(modules[0], settings, backbone)
    inputs = {side: TextInput(most, prompt=prompt(checkpoint, side)) for side in ("query", "document")}
    excluded = modules[1].config("config.json").get("include_prompt") is False
    if excluded and any(text.prompt for text in inputs.values()):
        raise ArtifactError(
            "excludes the prompt from pooling, which is not supported", path=modules[1].folder
        )
    return Encoder(backbone, {name: head}, inputs["query"], inputs["document"])


def _head(pooling: Module, rest: list[Module], dim: int) -> tuple[str, Head]:
    config = pooling.config("config.json")
    declared = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if declared != dim:
        raise ArtifactError(
            f"pools {declared} components, but the transformer has {dim}", path=pooling.folder
        )
    flagged = [mode for flag, mode in _FLAGS.items() if config.get(flag)]
    modes = config.get("pooling_mode") or flagged or "mean"
    mode = modes if isinstance(modes, str) else modes[0] if len(modes) == 1 else "+".join(modes)
    kinds = [module.kind for module in rest]
    dense = ["Dense"] * kinds.count("Dense")
    if kinds not in (dense, [*dense, "Normalize"]):
        raise ArtifactError(
            f"after Pooling come {kinds}; only Dense, then Normalize, are supported",
            path=pooling.folder.parent,
        )
    layer = projection(rest, dim, on="sentence")
    if mode == "cls":
        return "cls", Cls(layer, normalise="Normalize" in kinds)
    if mode == "mean":
        return "mean", Mean(layer, normalise="Normalize" in kinds)
    raise ArtifactError(f"pools by {mode!r}; only 'mean' and 'cls' are supported", path=pooling.folder)


def transformer_settings(module: Module, backbone: Transformer) -> dict[str, Any]:
    """A Transformer module's own settings; refuse those that need more than the last hidden state."""
    names = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
    found = module.config(*[f"sentence_{name}_config.json" for name in names])
    wanted = {"transformer_task": "feature-extraction", "module_output_name": "token_embeddings"}
    for name, value in wanted.items():
        if found.get(name, value) != value:
            raise ArtifactError(f"{name} is {found[name]!r}; only {value!r} is supported", path=module.folder)
    if found.get("do_lower_case"):
        upper, lower = (encoding.ids for encoding in backbone.tokenizer.encode(["ABC Xyz", "abc xyz"]))
        if upper != lower:
            raise ArtifactError(
                "lower-cases texts, but its tokenizer does not; this is not supported", path=module.folder
            )
    return found


def longest(module: Module, settings: dict[str, Any], backbone: Transformer, own: int | None = None) -> int:
    """Maximum number of positions: a side's own length, else the module's, tokenizer's or backbone's."""
    limit = backbone.max_positions
    tokenizer = module.config("tokenizer_config.json").get("model_max_length") or limit
    return own or min(settings.get("max_seq_length") or tokenizer, int(min(tokenizer, limit)))


def prompt(checkpoint: PublishedModel, side: Side) -> str:
    """The prompt of one side, chosen as `encode_query` and `encode_document` choose it."""
    prompts = checkpoint.settings.get("prompts") or {}
    names = ["query"] if side == "query" else ["document", "passage", "corpus"]
    name = next((name for name in names if name in prompts), checkpoint.settings.get("default_prompt_name"))
    return prompts.get(name) or ""
