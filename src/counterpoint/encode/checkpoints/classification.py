"""Published cross-encoders: a transformer with a one-label classification head, as transformers saves it.

The format: `config.json` with `model_type`, the tokenizer, and `model.safetensors` with the backbone (under
its prefix) and the head's layers. sentence-transformers adds a `modules.json` with one Transformer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from torch import Tensor

from counterpoint.encode.checkpoints.modules import A_TEXT, TRIAL, Module, PublishedModel
from counterpoint.encode.checkpoints.sentence import longest
from counterpoint.encode.interactive import InteractiveEncoder
from counterpoint.encode.layers import Activation, Layer, Linear, Stack
from counterpoint.encode.saved import saved_model
from counterpoint.encode.sources import locate
from counterpoint.encode.weights import read_json, read_weights
from counterpoint.errors import ArtifactError
from counterpoint.foreign import reading
from counterpoint.part import Part

__all__ = ["load_interactive"]

_DENSE: tuple[tuple[str, Activation], ...] = (("classifier.dense", "tanh"), ("classifier.out_proj", "none"))
_HEADS: Mapping[str, tuple[tuple[str, Activation], ...]] = MappingProxyType(
    {
        "albert": (("albert.pooler", "tanh"), ("classifier", "none")),
        "bert": (("bert.pooler.dense", "tanh"), ("classifier", "none")),
        "deberta-v2": (("pooler.dense", "gelu"), ("classifier", "none")),
        "distilbert": (("pre_classifier", "relu"), ("classifier", "none")),
        "electra": (("classifier.dense", "gelu"), ("classifier.out_proj", "none")),
        "roberta": _DENSE,
        "xlm-roberta": _DENSE,
    }
)
"""By model type, the layers on the hidden state of [CLS]: their names in the file, and their activations."""


def load_interactive(source: str | Path, revision: str | None = None) -> InteractiveEncoder:
    """Read a cross-encoder: a published one, a run's, or a folder that `InteractiveEncoder.save` wrote.

    Its scores are the logits of `AutoModelForSequenceClassification`, before any activation.

    Args:
        source: a folder, or a hub id.
        revision: for a hub id, the commit, tag or branch.

    Raises:
        ArtifactError: there is nothing, or it cannot be reproduced exactly: unknown head of the model type,
            more than one label, or a missing or unused weight.
    """
    folder = locate(str(source), revision)
    if (own := saved_model(folder)) is not None:
        part = Part.load(own)
        if not isinstance(part, InteractiveEncoder):
            raise ArtifactError(f"holds a {type(part).__name__}, not an InteractiveEncoder", path=own)
        with reading(own):
            _try(part)
        return part
    with reading(folder):
        found = _read(PublishedModel(folder, str(source), revision)).setup().eval()
        _try(found)
    return found


def _try(judge: InteractiveEncoder) -> None:
    """Score one text, because some settings fail only then."""
    if not judge.scores([A_TEXT], [A_TEXT], TRIAL).isfinite().all():
        raise ArtifactError(
            "the score of a test text is NaN or infinite, because of a setting or damaged weights"
        )


def _read(checkpoint: PublishedModel) -> InteractiveEncoder:
    folder = checkpoint.folder
    config = read_json(folder / "config.json")
    _check(checkpoint, config)
    layers = _HEADS[config["model_type"]]
    tensors = read_weights(folder)
    own = tuple(f"{name}.{kind}" for name, _ in layers for kind in ("weight", "bias"))
    faults = [f"weight {name!r} is missing" for name in own if name not in tensors]
    faults += [
        f"weight {name!r} is not used by a head of this type"
        for name in tensors
        if name.split(".")[0] in ("classifier", "pooler", "pre_classifier") and name not in own
    ]
    if faults:
        raise ArtifactError(f"{'; '.join(faults)}. This is not a supported cross-encoder")
    labels = len(tensors[own[-1]])
    if labels != 1:
        raise ArtifactError(f"classifies into {labels} labels, but a cross-encoder gives one score")
    backbone = checkpoint.backbone(unused=own)
    module = Module("Transformer", folder)
    settings = module.config("sentence_bert_config.json")
    head = _head(layers, tensors, backbone.dim, folder)
    return InteractiveEncoder(backbone, head, longest(module, settings, backbone), _gives_segments(folder))


def _check(checkpoint: PublishedModel, config: Mapping[str, Any]) -> None:
    """Refuse settings that Counterpoint would treat differently from the format's own library."""
    kind = config.get("model_type")
    if kind not in _HEADS:
        raise ArtifactError(f"unsupported classification head on {kind!r}; supported are {', '.join(_HEADS)}")
    if kind == "deberta-v2" and config.get("pooler_hidden_act", "gelu") != "gelu":
        raise ArtifactError(f"pools with {config['pooler_hidden_act']!r}; only 'gelu' is supported")
    if checkpoint.lists_modules:
        kinds = [module.kind for module in checkpoint.modules("query")]
        if kinds != ["Transformer"]:
            raise ArtifactError(f"modules.json lists {kinds}; expected one Transformer")
    if checkpoint.settings.get("default_prompt_name"):
        raise ArtifactError("puts a prompt before every pair, which is not supported")


def _gives_segments(folder: Path) -> bool:
    """Whether transformers' tokenizer of this folder passes segment ids on; not every class does."""
    from transformers import AutoTokenizer

    found = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    return "token_type_ids" in found.model_input_names


def _head(
    layers: tuple[tuple[str, Activation], ...], tensors: Mapping[str, Tensor], dim: int, folder: Path
) -> Layer:
    made = []
    for name, activation in layers:
        out_dim = len(tensors[f"{name}.bias"])
        layer = Linear(out_dim, activation=activation, in_dim=dim).setup()
        weights = {f"linear_.{kind}": tensors[f"{name}.{kind}"].float() for kind in ("weight", "bias")}
        layer._load_strictly(weights, folder)
        made.append(layer)
        dim = out_dim
    return Stack(made).setup()
