"""Dense modules: the projections of sentence-transformers and PyLate.

The format: a folder with `config.json` (`in_features`, `out_features`, `bias`, `activation_function` by the
name of a torch class, `use_residual`) and `model.safetensors` (`linear.weight`, `linear.bias`,
`residual.weight`).
"""

from __future__ import annotations

from typing import Literal

from counterpoint.encode.checkpoints.modules import Module
from counterpoint.encode.layers import Activation, Layer, Linear, Stack
from counterpoint.encode.weights import read_json, read_weights
from counterpoint.errors import ArtifactError

__all__ = ["projection"]

_ACTIVATIONS: dict[str, Activation] = {
    "torch.nn.modules.linear.Identity": "none",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.GELU": "gelu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
}


def projection(modules: list[Module], in_dim: int, *, on: Literal["token", "sentence"]) -> Layer | None:
    """Combine the Dense modules among `modules` into one layer of `on` embeddings, with its weights.

    The first of them maps `in_dim` components.
    """
    layers = []
    for module in modules:
        if module.kind == "Dense":
            layers.append(_linear(module, in_dim, f"{on}_embeddings" if on == "token" else f"{on}_embedding"))
            in_dim = layers[-1].dim
    if not layers:
        return None
    return layers[0] if len(layers) == 1 else Stack(layers).setup()


def _linear(module: Module, in_dim: int, feature: str) -> Linear:
    config = read_json(module.folder / "config.json")
    if config.get("in_features") != in_dim:
        raise ArtifactError(
            f"in_features is {config.get('in_features')}, but the input has {in_dim} components",
            path=module.folder,
        )
    read = config.get("module_input_name") or feature
    if {read, config.get("module_output_name") or read} != {feature}:
        raise ArtifactError(f"maps {read!r}; only {feature!r} is supported here", path=module.folder)
    # The libraries always save this setting; the default is that of sentence-transformers.
    name = config.get("activation_function", "torch.nn.modules.activation.Tanh")
    if name not in _ACTIVATIONS:
        raise ArtifactError(f"unsupported activation {name!r}", path=module.folder)
    bias, residual = config.get("bias", True), config.get("use_residual", False)
    layer = Linear(config["out_features"], bias, _ACTIVATIONS[name], residual, in_dim)
    renamed = {
        name.replace("linear.", "linear_.").replace("residual.", "residual_."): t
        for name, t in read_weights(module.folder).items()
    }
    layer._setup_with(renamed, module.folder / "model.safetensors")
    return layer
