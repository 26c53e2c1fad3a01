"""`Glow`: actnorm, mixing and couplings in levels (Kingma and Dhariwal 2018), for vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, cast, final

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from counterpoint.errors import ConfigError
from counterpoint.transform.flow import Flow, FlowTraining

__all__ = ["ActNorm", "Coupling", "Glow", "Mixing"]

CouplingKind = Literal["additive", "affine"]
MixingKind = Literal["permutation", "linear"]
Mapped = tuple[Tensor, Tensor]


@final
class Glow(Flow):
    """Levels of steps. Each step is an actnorm, a mixing of the components and a coupling.

    After every level but the last, the first half of the components is final and goes to z unchanged. The
    other half continues. With additive couplings and permutations, only the actnorms contribute to the
    determinant. BERT-flow uses this design for vectors. The two levels of depth three of Jung et al. are
    `levels=(3, 3)`.

    Args:
        dim: components of a vector, divisible by 2 to the power of the number of levels.
        levels: number of steps of each level.
        width: hidden units of a coupling's network.
        coupling: "additive": y₂ = x₂ + t(x₁); "affine": y₂ = (x₂ + t(x₁))·σ(a(x₁) + 2).
        mixing: "permutation" is random and fixed. "linear" is a learnt invertible matrix, initialised as a
            rotation and stored as P·L·U.
        fitting: sample, steps and seed. None for `FlowTraining()`.
    """

    def __init__(
        self,
        dim: int,
        levels: Sequence[int] = (3, 3),
        width: int = 32,
        coupling: CouplingKind = "additive",
        mixing: MixingKind = "permutation",
        fitting: FlowTraining | None = None,
    ):
        super().__init__()
        faults = []
        if not levels or min(levels) < 1:
            faults.append(f"Glow: levels must name at least one step each, found {list(levels)}")
        halves = 2 ** len(levels)
        if dim < 1 or dim % halves:
            faults.append(
                f"Glow: dim must divide by {halves} for {len(levels)} levels, since each is cut into halves; "
                f"found {dim}"
            )
        if width < 1:
            faults.append(f"Glow: width must be at least 1, found {width}")
        if coupling not in ("additive", "affine"):
            faults.append(f"Glow: coupling must be 'additive' or 'affine', found {coupling!r}")
        if mixing not in ("permutation", "linear"):
            faults.append(f"Glow: mixing must be 'permutation' or 'linear', found {mixing!r}")
        if faults:
            raise ConfigError(*faults)
        self.dim, self.levels, self.width = dim, levels, width
        self.coupling: CouplingKind = coupling
        self.mixing: MixingKind = mixing
        self.fitting = fitting

    @property
    def divisor(self) -> int:
        """Each level halves the components."""
        return 2 ** len(self.levels)

    def latent(self, x: Float[Tensor, "n d"]) -> Mapped:
        """The latent rows, and the sum of the steps' log-determinants."""
        done, log_det = [], x.new_zeros(len(x))
        for number, level in enumerate(self._levels()):
            for step in level:
                x, more = step(x)
                log_det = log_det + more
            if number < len(self.levels) - 1:
                half, x = x.chunk(2, dim=1)
                done.append(half)
        return torch.cat([*done, x], dim=1), log_det

    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Invert the steps in reverse order."""
        sizes = [self.dim // 2 ** (number + 1) for number in range(len(self.levels) - 1)]
        *done, x = z.split([*sizes, self.dim - sum(sizes)], dim=1)
        for number, level in reversed(list(enumerate(self._levels()))):
            if number < len(self.levels) - 1:
                x = torch.cat([done[number], x], dim=1)
            for step in reversed(level):
                x = step.inverse(x)
        return x

    def _build(self) -> None:
        self.levels_ = nn.ModuleList(
            nn.ModuleList(_Step(self.dim // 2**number, self) for _ in range(steps))
            for number, steps in enumerate(self.levels)
        )

    def _start(self, sample: Float[Tensor, "n d"]) -> None:
        """Initialise every actnorm so that its output has mean 0 and deviation 1."""
        x = sample
        for number, level in enumerate(self._levels()):
            for step in level:
                step.actnorm.start(x)
                x = step(x)[0]
            if number < len(self.levels) - 1:
                x = x.chunk(2, dim=1)[1]

    def _levels(self) -> list[list[_Step]]:
        return [list(cast(Iterable[_Step], level)) for level in self.levels_]


class ActNorm(nn.Module):
    """y = scale·(x + loc), component by component."""

    def __init__(self, dim: int):
        super().__init__()
        self.loc_ = nn.Parameter(torch.zeros(dim))
        self.scale_ = nn.Parameter(torch.ones(dim))

    def forward(self, x: Float[Tensor, "n d"]) -> Mapped:
        """y, and Σ ln|scale|."""
        return self.scale_ * (x + self.loc_), self.scale_.abs().log().sum().expand(len(x))

    def inverse(self, y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Recover x from y."""
        return y / self.scale_ - self.loc_

    def start(self, x: Float[Tensor, "n d"]) -> None:
        """Initialise so that these rows get mean 0 and deviation 1."""
        self.loc_.copy_(-x.mean(0))
        self.scale_.copy_(1 / x.std(0))


class Mixing(nn.Module):
    """A permutation or an invertible linear map of the components."""

    order_: Int[Tensor, " d"]
    sign_: Float[Tensor, " d"]

    def __init__(self, dim: int, kind: MixingKind):
        super().__init__()
        self.kind: MixingKind = kind
        if kind == "permutation":
            self.register_buffer("order_", torch.randperm(dim))
            return
        rotation = torch.linalg.qr(torch.randn(dim, dim))[0]
        permutation, lower, upper = torch.linalg.lu(rotation)
        diagonal = upper.diagonal()
        self.register_buffer("order_", permutation.argmax(0))  # row i of L·U is row order[i] of P·L·U
        self.register_buffer("sign_", diagonal.sign())
        self.lower_ = nn.Parameter(lower.tril(-1))
        self.upper_ = nn.Parameter(upper.triu(1))
        self.log_diagonal_ = nn.Parameter(diagonal.abs().log())

    def forward(self, x: Float[Tensor, "n d"]) -> Mapped:
        """y, and ln|det|."""
        if self.kind == "permutation":
            return x[:, self.order_], x.new_zeros(len(x))
        lower, upper = self._factors()
        return x[:, self.order_] @ lower @ upper, self.log_diagonal_.sum().expand(len(x))

    def inverse(self, y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Recover x from y."""
        if self.kind == "linear":
            lower, upper = self._factors()
            y = torch.linalg.solve_triangular(upper, y, upper=True, left=False)
            y = torch.linalg.solve_triangular(lower, y, upper=False, left=False, unitriangular=True)
        return y[:, self.order_.argsort()]

    def _factors(self) -> tuple[Float[Tensor, "d d"], Float[Tensor, "d d"]]:
        unit = torch.eye(len(self.sign_), dtype=self.sign_.dtype, device=self.sign_.device)
        diagonal = torch.diag(self.sign_ * self.log_diagonal_.exp())
        return self.lower_.tril(-1) + unit, self.upper_.triu(1) + diagonal


class Coupling(nn.Module):
    """Changes one half of the components by a network of the other half, which stays the same."""

    def __init__(self, dim: int, width: int, kind: CouplingKind):
        super().__init__()
        self.kind: CouplingKind = kind
        half = dim // 2
        last = nn.Linear(width, half if kind == "additive" else 2 * half)
        nn.init.zeros_(last.weight)  # so that the coupling starts as the identity
        nn.init.zeros_(last.bias)
        self.net_ = nn.Sequential(nn.Linear(half, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), last)

    def forward(self, x: Float[Tensor, "n d"]) -> Mapped:
        """y, and Σ ln of the second half's factors."""
        first, second = x.chunk(2, dim=1)
        shift, logit = self._of(first)
        if logit is None:
            return torch.cat([first, second + shift], dim=1), x.new_zeros(len(x))
        scaled = (second + shift) * torch.sigmoid(logit)
        return torch.cat([first, scaled], dim=1), functional.logsigmoid(logit).sum(1)

    def inverse(self, y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """Recover x from y."""
        first, second = y.chunk(2, dim=1)
        shift, logit = self._of(first)
        second = second if logit is None else second / torch.sigmoid(logit)
        return torch.cat([first, second - shift], dim=1)

    def _of(self, first: Float[Tensor, "n h"]) -> tuple[Tensor, Tensor | None]:
        """t, and a + 2 for an affine coupling."""
        made = self.net_(first)
        if self.kind == "additive":
            return made, None
        shift, logit = made.chunk(2, dim=1)
        return shift, logit + 2


class _Step(nn.Module):
    def __init__(self, dim: int, flow: Glow):
        super().__init__()
        self.actnorm, self.mixing = ActNorm(dim), Mixing(dim, flow.mixing)
        self.coupling = Coupling(dim, flow.width, flow.coupling)

    def forward(self, x: Float[Tensor, "n d"]) -> Mapped:
        log_det = x.new_zeros(len(x))
        for part in (self.actnorm, self.mixing, self.coupling):
            x, more = part(x)
            log_det = log_det + more
        return x, log_det

    def inverse(self, y: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        for part in (self.coupling, self.mixing, self.actnorm):
            y = part.inverse(y)
        return y
