"""Read a transformer's weights from its folder, strictly and without pickles."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from counterpoint.errors import ArtifactError
from counterpoint.tensors import read_tensors

__all__ = ["Layers", "inside", "lexical_head", "read_json", "read_weights", "rename_weights"]

Layers = int | Sequence[int] | None
"""Layers of a backbone to keep: an int for the first so many, a list counted from 0, None for all."""

# Weights of other heads over the same backbone, in the names of BERT, RoBERTa, DistilBERT, ELECTRA, DeBERTa
# and ModernBERT. They do not affect the last layer's hidden states.
_HARMLESS = re.compile(
    r"(pooler|cls|lm_head|lm_predictions|mask_predictions|classifier|decoder|head|qa_outputs|vocab_transform"
    r"|vocab_layer_norm|vocab_projector|generator_predictions|generator_lm_head|discriminator_predictions)\."
    r"|(.*\.)?(position_ids|token_type_ids|inv_freq)$"
)
_LAYER = re.compile(r"(?:^|\.)(?:layer|layers)\.(\d+)\.")


def read_json(path: Path) -> dict:
    """Read a JSON object from a checkpoint's folder.

    Raises:
        ArtifactError: the file is missing or holds no JSON object.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError("this file is missing; the checkpoint is incomplete", path=path) from error
    except OSError as error:
        raise ArtifactError(f"cannot be read: {error.strerror}", path=path) from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"not valid JSON: {error}", path=path) from error
    if not isinstance(found, dict):
        raise ArtifactError(f"expected a JSON object, found a {type(found).__name__}", path=path)
    return found


def inside(folder: Path, relative: str) -> Path:
    """Join a path that a checkpoint names; refuse it if it leads out of the checkpoint's folder."""
    path, below = folder / relative, Path(relative)
    # The hub's cache links the files of a snapshot to a store outside of its folder.
    cached = folder.parent.name == "snapshots" and ".." not in below.parts and not below.is_absolute()
    if not cached and not path.resolve().is_relative_to(folder.resolve()):
        raise ArtifactError(f"names the path {relative!r}, which is outside the checkpoint", path=folder)
    return path


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of `model.safetensors`, or of the files that its index lists.

    Raises:
        ArtifactError: there are none, or only pickles.
    """
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.is_file():
        return read_tensors(single)
    if index.is_file():
        named = read_json(index).get("weight_map")
        if not (isinstance(named, dict) and all(isinstance(file, str) for file in named.values())):
            raise ArtifactError("expected a table 'weight_map' from weights to files", path=index)
        files = sorted(set(named.values()))
        return {name: t for file in files for name, t in read_tensors(inside(folder, file)).items()}
    pickles = sorted(path.name for path in folder.glob("*.bin"))
    found = (
        f"found only {pickles[0]}, a pickle, which can run code when it is read" if pickles else "found none"
    )
    raise ArtifactError(
        f"needs weights in model.safetensors; {found}. If you trust them, convert them: "
        "AutoModel.from_pretrained(folder).save_pretrained(folder, safe_serialization=True)",
        path=folder,
    )


_OWN = ("dense_.weight", "dense_.bias", "norm_.weight", "norm_.bias", "bias_")  # in `Router`
# Names of the same layers, and of the decoder's bias, in masked-language models.
_LEXICAL = (
    ("cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions"),  # BERT
    ("vocab_transform", "vocab_layer_norm", "vocab_projector"),  # DistilBERT
    ("lm_head.dense", "lm_head.layer_norm", "lm_head"),  # RoBERTa
)


def lexical_head(tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> dict[str, Tensor]:
    """The masked-language-model head of a checkpoint, with the names of `Router`; empty if it has none.

    Also empty if the decoder is not the word-embedding table, or the activation is not GELU.
    """
    if not config.get("tie_word_embeddings", True):
        return {}
    if config.get("hidden_act", config.get("activation", "gelu")) != "gelu":
        return {}
    named = {_modern(name): tensor for name, tensor in tensors.items()}
    for dense, norm, decoder in _LEXICAL:
        theirs = [f"{layer}.{kind}" for layer in (dense, norm) for kind in ("weight", "bias")]
        theirs.append(f"{decoder}.bias")
        if all(name in named for name in theirs):
            return {own: named[name] for own, name in zip(_OWN, theirs, strict=True)}
    return {}


def rename_weights(
    tensors: Mapping[str, Tensor], wanted: Iterable[str], *, prefix: str, layers: Layers = None
) -> dict[str, Tensor]:
    """Rename weights to the `wanted` names of a bare model; drop those of other heads, and of other `layers`.

    `prefix` is that of the backbone in a model with a head ("bert").
    """
    wanted = set(wanted)
    kept = range(layers) if isinstance(layers, int) else layers
    renamed = {}
    for name, tensor in tensors.items():
        name = _modern(name.removeprefix(f"{prefix}."))
        layer = _LAYER.search(name)
        if kept is not None and layer is not None:
            if int(layer.group(1)) not in kept:
                continue
            name = f"{name[: layer.start(1)]}{kept.index(int(layer.group(1)))}{name[layer.end(1) :]}"
        if name in wanted or not _HARMLESS.match(name):
            renamed[name] = tensor
    return renamed


def _modern(name: str) -> str:
    """Rename layer norms of old checkpoints, which use TensorFlow's names from before 2019."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
