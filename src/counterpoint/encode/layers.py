"""Layers between the hidden states and a vector set."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from counterpoint.errors import ConfigError
from counterpoint.part import Part

__all__ = ["Activation", "Layer", "Linear", "Stack", "Unit"]

Activation = Literal["none", "tanh", "relu", "gelu", "sigmoid"]
ACTIVATIONS: Mapping[Activation, Callable[[Tensor], Tensor]] = MappingProxyType(
    {
        "none": lambda x: x,
        "tanh": torch.tanh,
        "relu": torch.relu,
        "gelu": nn.functional.gelu,
        "sigmoid": torch.sigmoid,
    }
)


class Layer(Part, ABC):
    """Abstract base: a map of every vector by itself."""

    in_dim: int | None

    @property
    @abstractmethod
    def out_dim(self) -> int:
        """Number of components of the output."""

    def fill(self, in_dim: int) -> None:
        """Set the number of input components, or check that it is the declared one."""
        if self.in_dim is None:
            self.in_dim = in_dim
        if self.in_dim != in_dim:
            raise ConfigError(
                f"{type(self).__name__}: in_dim is {self.in_dim}, but the input has {in_dim} components"
            )


@final
class Linear(Layer):
    """Linear layer: act(x W^T + b), plus x (or a projection of it) with `residual`.

    Args:
        dim: components of the output.
        bias: whether there is a b.
        activation: act.
        residual: add the input, through a second matrix if the numbers of components differ (PyLate).
        in_dim: components of the input; filled in by the encoder.
    """

    def __init__(
        self,
        dim: int,
        bias: bool = True,
        activation: Activation = "none",
        residual: bool = False,
        in_dim: int | None = None,
    ):
        super().__init__()
        self.dim = dim
        self.bias = bias
        self.activation: Activation = activation
        self.residual = residual
        self.in_dim = in_dim

    @property
    def out_dim(self) -> int:
        """Number of components of the output."""
        return self.dim

    def _allocate(self) -> None:
        if self.in_dim is None:
            raise ConfigError("Linear: in_dim is unknown; give it, or put the layer into an encoder")
        if self.activation not in ACTIVATIONS:
            raise ConfigError(
                f"Linear: unknown activation {self.activation!r}; use none, tanh, relu, gelu or sigmoid"
            )
        self.linear_ = nn.Linear(self.in_dim, self.dim, bias=self.bias)
        if self.residual and self.in_dim != self.dim:
            self.residual_ = nn.Linear(self.in_dim, self.dim, bias=False)

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        """Map every vector."""
        mapped = ACTIVATIONS[self.activation](self.linear_(x))
        if not self.residual:
            return mapped
        return mapped + (self.residual_(x) if self.in_dim != self.dim else x)


@final
class Unit(Layer):
    """Scale every vector to length 1; zero stays zero."""

    def __init__(self, in_dim: int | None = None):
        super().__init__()
        self.in_dim = in_dim

    @property
    def out_dim(self) -> int:
        """Number of components, same as of the input."""
        if self.in_dim is None:
            raise ConfigError("Unit: in_dim is unknown; give it, or put the layer into an encoder")
        return self.in_dim

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b i"]:
        """Scale every vector."""
        return nn.functional.normalize(x, dim=-1)


@final
class Stack(Layer):
    """Several layers, one after the other."""

    def __init__(self, layers: Sequence[Layer], in_dim: int | None = None):
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.in_dim = in_dim

    @property
    def out_dim(self) -> int:
        """Number of components of the output."""
        return self._layers()[-1].out_dim

    def fill(self, in_dim: int) -> None:
        """Pass the number of components from layer to layer."""
        super().fill(in_dim)
        for layer in self._layers():
            layer.fill(in_dim)
            in_dim = layer.out_dim

    def setup(self) -> Stack:
        """Allocate the layers; a declared `in_dim` is passed on first."""
        if not self.layers:
            raise ConfigError("Stack: needs at least one layer")
        if self.in_dim is not None:
            self.fill(self.in_dim)
        super().setup()
        return self

    def forward(self, x: Float[Tensor, "*b i"]) -> Float[Tensor, "*b o"]:
        """Map every vector."""
        for layer in self._layers():
            x = layer(x)
        return x

    def _layers(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]
