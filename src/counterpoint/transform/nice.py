"""`Nice`: additive couplings and a diagonal scale (Dinh, Krueger and Bengio 2014)."""

from __future__ import annotations

from typing import Literal, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from counterpoint.errors import ConfigError
from counterpoint.transform.flow import Flow, FlowTraining

__all__ = ["Nice", "couple"]

Start = Literal["data", "released"]


@final
class Nice(Flow):
    """z = exp(s)·h, where h is the output of additive couplings that change odd and even components in turn.

    A coupling adds m(one half) to the other half. Its inverse subtracts it, and its determinant is 1, so
    log|det| is Σs. m is a linear map to `width` units, then `layers` times a linear map, ReLU and batch
    normalisation, then a linear map back. The defaults are the "five layers of 1000 units" of Jung et al. as
    in their code.

    Args:
        dim: components of a vector, even.
        couplings: number of couplings.
        layers: of m, without the first and the last map.
        width: units of each layer.
        start: "data" standardises the components permanently by the sample's mean and deviation, and starts
            with m = 0 and s = 0, which is a diagonal Gaussian. "released" is the paper's code: no
            standardisation, random m, and s = 1. Adam changes s by little more than its learning rate per
            step, so from there, vectors whose spread is far from 1/e take tens of thousands of steps.
        fitting: sample, steps and seed. None for `FlowTraining()`.
    """

    mean_: Tensor
    deviation_: Tensor
    log_scale_: Tensor

    def __init__(
        self,
        dim: int,
        couplings: int = 4,
        layers: int = 5,
        width: int = 1000,
        start: Start = "data",
        fitting: FlowTraining | None = None,
    ):
        super().__init__()
        faults = [
            f"Nice: {name} must be at least 1, found {value}"
            for name, value in (("couplings", couplings), ("layers", layers), ("width", width))
            if value < 1
        ]
        if dim < 2 or dim % 2:
            faults.append(f"Nice: dim must be even, since it is cut into halves; found {dim}")
        if start not in ("data", "released"):
            faults.append(f"Nice: start must be 'data' or 'released', found {start!r}")
        if faults:
            raise ConfigError(*faults)
        self.dim, self.couplings, self.layers, self.width = dim, couplings, layers, width
        self.start: Start = start
        self.fitting = fitting

    @property
    def divisor(self) -> int:
        """2, for the halves."""
        return 2

    def latent(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """The latent rows, and Σs plus the standardisation's −Σ ln σ."""
        h = (x - self.mean_) / self.deviation_
        for number, net in enumerate(self.nets_):
            h = couple(h, net, odd=number % 2 == 0)
        log_det = self.log_scale_.sum() - self.deviation_.log().sum()
        return h * self.log_scale_.exp(), log_det.expand(len(x))

    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Invert the couplings in reverse order."""
        h = z * (-self.log_scale_).exp()
        for number, net in reversed(list(enumerate(self.nets_))):
            h = couple(h, net, odd=number % 2 == 0, sign=-1)
        return h * self.deviation_ + self.mean_

    def _build(self) -> None:
        self.register_buffer("mean_", torch.zeros(self.dim))
        self.register_buffer("deviation_", torch.ones(self.dim))
        self.log_scale_ = nn.Parameter(torch.full((self.dim,), float(self.start == "released")))
        self.nets_ = nn.ModuleList(self._net() for _ in range(self.couplings))

    def _net(self) -> nn.Sequential:
        half, width = self.dim // 2, self.width
        inner: list[nn.Module] = []
        for _ in range(self.layers):
            inner += [nn.Linear(width, width), nn.ReLU(), nn.BatchNorm1d(width)]
        last = nn.Linear(width, half)
        if self.start == "data":
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
        return nn.Sequential(nn.Linear(half, width), *inner, last)

    def _start(self, sample: Float[Tensor, "n d"]) -> None:
        if self.start == "data":
            self.mean_.copy_(sample.mean(0))
            self.deviation_.copy_(sample.std(0))


def couple(h: Float[Tensor, "n d"], net: nn.Module, odd: bool, sign: int = 1) -> Float[Tensor, "n d"]:
    """Additive coupling: h₂ + sign·m(h₁), where h₂ are the components at odd (or even) positions, from 0."""
    even_half, odd_half = h[:, 0::2], h[:, 1::2]
    if odd:
        odd_half = odd_half + sign * net(even_half)
    else:
        even_half = even_half + sign * net(odd_half)
    return torch.stack([even_half, odd_half], dim=2).flatten(1)
