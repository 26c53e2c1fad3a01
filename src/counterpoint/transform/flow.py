"""`Flow`: an invertible map onto a standard Gaussian, fitted by maximum likelihood (a normalising flow)."""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self, final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from counterpoint.config import Setting
from counterpoint.errors import ConfigError, DataError
from counterpoint.transform.moments import Moments
from counterpoint.transform.sample import sample_rows
from counterpoint.transform.transform import FittedTransform, Rows
from counterpoint.vectors import Vectors

__all__ = ["HELD_OUT", "MOST_HELD_OUT", "Flow", "FlowBits", "FlowTraining"]

BLOCK = 2048
"""Rows mapped at a time. The intermediate values of more do not fit in a core's cache."""
FLAT = 1e-4
"""Share of the largest deviation below which a component or direction contains only rounding errors."""
ENOUGH = 10
"""Rows recommended per component."""
HELD_OUT = 20
"""One row in this many is held out."""
MOST_HELD_OUT = 1000


@final
@dataclass(frozen=True)
class FlowTraining(Setting):
    """How a flow is fitted: Adam on the mean negative log-likelihood of batches of rows.

    Attributes:
        sample: number of rows to keep in memory, drawn evenly from all. A flow sees them many times.
        batch: rows per step.
        steps: maximum number of steps.
        epochs: maximum number of passes over the sample.
        lr: Adam's learning rate.
        seed: of the sample, the initial weights and the order of the rows.
    """

    sample: int = 200_000
    batch: int = 512
    steps: int = 1000
    epochs: int = 50
    lr: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        least = {"sample": 2, "batch": 2, "steps": 1, "epochs": 1}
        faults = [
            f"FlowTraining: {name} must be at least {low}, found {getattr(self, name)}"
            for name, low in least.items()
            if getattr(self, name) < low
        ]
        if not self.lr > 0:
            faults.append(f"FlowTraining: lr must be positive, found {self.lr}")
        if faults:
            raise ConfigError(*faults)


@final
@dataclass(frozen=True)
class FlowBits:
    """How well a fitted flow describes rows, in bits per dimension. Lower is better.

    Attributes:
        training: of rows that it was fitted to (if rows are held out, of as many).
        held_out: of rows that it never saw. None if there were too few rows to hold any out. A value far
            above `training` means that the flow has overfitted.
        rows: number of rows it was fitted to, of those kept in memory.
        rows_held_out: number of rows held out.
    """

    training: float
    held_out: float | None
    rows: int
    rows_held_out: int

    def __str__(self) -> str:
        seen = f"{self.training:.3f} bits per component of {self.rows:,} rows that it was fitted to"
        if self.held_out is None:
            return f"{seen}; too few rows to hold some out"
        return f"{seen}, {self.held_out:.3f} of {self.rows_held_out:,} held out"


class Flow(FittedTransform):
    """z = f(x) with log p(x) = log N(z; 0, I) + log|det ∂f/∂x|. The rows of the new set are z. Abstract.

    Jung et al. (Isotropic Representation Can Improve Dense Retrieval), equation 5. A flow always runs in
    evaluation mode, so no row depends on another, even while the surrounding model is trained. Its weights
    are not parameters of that model. A row that is exactly zero means nothing and stays zero.

    `fit` holds out 1 row in 20, at most 1000, drawn with the seed, and evaluates the flow on them: `bits`. It
    warns of fewer than 10 rows per component, and of rows that do not vary in all directions, because a
    density is infinite along the others.
    """

    fitting: FlowTraining | None
    bits: FlowBits | None = None
    """The result of this object's last `fit`. It is not saved."""

    @property
    @abstractmethod
    def divisor(self) -> int:
        """The dimension must be a multiple of this number."""

    @abstractmethod
    def _build(self) -> None:
        """Allocate the layers again. The random generator is already seeded."""

    @abstractmethod
    def _start(self, sample: Float[Tensor, "n d"]) -> None:
        """Initialise what depends on the data, before the first step."""

    @abstractmethod
    def latent(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """The latent row of each row, and the log-determinant of its Jacobian."""

    @abstractmethod
    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The inverse of `latent`."""

    def log_likelihood(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Natural logarithm of each row's density."""
        z, log_det = self.latent(x)
        return log_det - 0.5 * (z.square().sum(1) + self.dim * math.log(2 * math.pi))

    def bits_per_dimension(self, x: Float[Tensor, "n d"]) -> float:
        """Mean negative log-likelihood over rows and components, to base 2. It may be negative."""
        with torch.no_grad():
            total = sum(self.log_likelihood(piece).double().sum().item() for piece in x.split(BLOCK))
        return -total / (len(x) * self.dim * math.log(2))

    def fit(
        self,
        rows: Rows,
        on_step: Callable[[int, int, float], object] | None = None,
        held_out: Rows | None = None,
    ) -> Self:
        """Learn from a sample of the rows, which are read once, and set `bits`.

        Args:
            rows: vectors in batches.
            on_step: called after every step with its number, the total number, and the batch's bits per
                dimension.
            held_out: rows to evaluate on, of which at most 1000 are drawn. By default some of `rows` are held
                out. Those are not unseen if the maps before the flow were fitted to them.

        Raises:
            ShapeError: rows of another length.
            DataError: components that are not finite or equal in every row, or fewer than two rows.
        """
        said = self._fitting
        sample, count = sample_rows(rows, self.dim, said.sample, said.seed)
        self._check_sample(sample)
        self._report(sample)
        device = self.setup().count_.device
        self._rebuild()
        self.to(device)
        if held_out is None:
            sample, other = self._divided(sample)
        else:
            other, _ = sample_rows(held_out, self.dim, MOST_HELD_OUT, said.seed)
        sample, other = sample.to(device), other.to(device)
        with torch.no_grad():
            self._start(sample)
        # An outer autocast would compute batch statistics in bfloat16, which spoils the fit.
        with torch.enable_grad(), torch.autocast(device.type, enabled=False):
            self._learn(sample, on_step)
        _freeze(self)
        self.count_.fill_(count)
        self.bits = self._measured(sample, other)
        return self

    def forward(self, vectors: Vectors) -> Vectors:
        """The latent rows, in the input's type."""
        self.check_fitted(vectors.values.shape[2])
        real = vectors.mask & (vectors.values != 0).any(-1)
        layers = (tensor for tensor in self.buffers() if tensor.is_floating_point())
        x = vectors.values[real].to(next(layers).dtype)
        mapped = [self.latent(piece)[0] for piece in x.split(BLOCK)] or [x]
        values = torch.zeros_like(vectors.values)
        values[real] = torch.cat(mapped).to(values.dtype)
        return vectors.with_values(values)

    def train(self, mode: bool = True) -> Self:
        """Stay in evaluation mode: only `fit` uses batch statistics, whatever the surrounding model does."""
        return super().train(False)

    # -- fitting -----------------------------------------------------------------------------------------

    @property
    def _fitting(self) -> FlowTraining:
        return self.fitting or FlowTraining()

    def _allocate(self) -> None:
        self.register_buffer("count_", torch.zeros((), dtype=torch.int64))
        self._rebuild()
        _freeze(self)

    def _rebuild(self) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self._fitting.seed)
            self._build()
        self.eval()

    def _learn(
        self, sample: Float[Tensor, "n d"], on_step: Callable[[int, int, float], object] | None
    ) -> None:
        said = self._fitting
        adam = torch.optim.Adam(self.parameters(), lr=said.lr, fused=True)
        total = min(said.steps, said.epochs * max(1, len(sample) // said.batch))
        super().train(True)
        for step, batch in zip(range(1, total + 1), self._batches(sample), strict=False):
            loss = -self.log_likelihood(batch).mean() / self.dim
            if not torch.isfinite(loss):
                raise DataError(
                    f"{type(self).__name__}: the likelihood is not finite at step {step}; try a lower lr"
                )
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
            if on_step is not None:
                on_step(step, total, loss.item() / math.log(2))
        self.eval()

    def _batches(self, sample: Float[Tensor, "n d"]) -> Iterator[Float[Tensor, "b d"]]:
        """Endless batches, in a new order each pass. A remainder is dropped until the next pass."""
        draw = torch.Generator().manual_seed(self._fitting.seed)
        size = min(self._fitting.batch, len(sample))
        while True:
            order = torch.randperm(len(sample), generator=draw).to(sample.device)
            for start in range(0, len(sample) - size + 1, size):
                yield sample[order[start : start + size]]

    def _check_sample(self, sample: Float[Tensor, "n d"]) -> None:
        name = type(self).__name__
        if len(sample) < 2:
            raise DataError(f"{name} needs at least two different vectors, found {len(sample)}")
        spread = sample.std(0)
        flat = torch.nonzero(spread <= FLAT * spread.max())[:, 0].tolist()
        if flat:
            rank = min(self.dim - len(flat), len(sample) - 1) // self.divisor * self.divisor
            what = f"{name}: component {flat[0]} is the same in all {len(sample)} vectors ({len(flat)} such "
            if not rank:
                raise DataError(
                    f"{what}components); they vary too little for a density: fit it to more texts"
                )
            raise DataError(
                f"{what}components), where a density is infinite; first rotate them to the leading "
                f"directions: Whitening({self.dim}, rank={rank}, power=0.0) or counterpoint fit --rank {rank}"
            )

    def _report(self, sample: Float[Tensor, "n d"]) -> None:
        name, count, rank = type(self).__name__, len(sample), _rank(sample)
        if rank < self.dim:
            least = rank // self.divisor * self.divisor
            turned = f"Whitening({self.dim}, rank={least}, power=0.0) or counterpoint fit --rank {least}"
            remedy = f"first rotate them to the leading directions: {turned}, or " if least else ""
            warnings.warn(
                f"{name}: the {count:,} vectors vary in {rank} of {self.dim} directions, and in the others a "
                f"density is infinite; {remedy}fit on more texts",
                stacklevel=3,
            )
        if count < ENOUGH * self.dim:
            warnings.warn(
                f"{name}: fitted on {count:,} vectors of {self.dim} components; for a density that holds for "
                f"other vectors, fit on at least {ENOUGH * self.dim:,}",
                stacklevel=3,
            )

    def _divided(self, sample: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "t d"], Float[Tensor, "h d"]]:
        """Return the rows to learn from and the rows held out, each in their order."""
        held = torch.zeros(len(sample), dtype=torch.bool)
        draw = torch.Generator().manual_seed(self._fitting.seed)
        size = min(len(sample) // HELD_OUT, MOST_HELD_OUT)
        held[torch.randperm(len(sample), generator=draw)[:size]] = True
        return sample[~held], sample[held]

    def _measured(self, sample: Float[Tensor, "t d"], held_out: Float[Tensor, "h d"]) -> FlowBits:
        size = min(len(sample), len(held_out) or MOST_HELD_OUT)
        seen = sample[torch.linspace(0, len(sample) - 1, size, device=sample.device).long()]
        unseen = self.bits_per_dimension(held_out) if len(held_out) else None
        return FlowBits(self.bits_per_dimension(seen), unseen, len(sample), len(held_out))


def _rank(sample: Float[Tensor, "n d"]) -> int:
    """Number of directions in which the rows vary by more than rounding."""
    dim = sample.shape[1]
    for rows in (sample[: ENOUGH * dim], sample):  # the first rows suffice, unless they lack some directions
        moments = Moments(dim)
        moments.update(rows)
        variances = torch.linalg.eigvalsh(moments.covariance())
        rank = int((variances > FLAT**2 * variances[-1]).sum())
        if rank == dim or len(rows) == len(sample):
            return rank
    raise AssertionError("the last of the two is the sample")


def _freeze(module: nn.Module) -> None:
    """Turn parameters into buffers, so that training the surrounding model does not change them."""
    for child in module.modules():
        for name, parameter in list(child.named_parameters(recurse=False)):
            delattr(child, name)
            child.register_buffer(name, parameter.detach())
