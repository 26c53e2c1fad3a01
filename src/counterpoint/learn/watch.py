"""`Watch`: monitors the vectors during training, and warns of collapse before the measures show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.config import Setting
from counterpoint.encode import BY_LOAD, BY_ROUTER
from counterpoint.errors import ConfigError
from counterpoint.learn.limits import no_shares, too_low
from counterpoint.learn.step import Step, Targets
from counterpoint.measure.alignment import Profile, kl_divergence, profile
from counterpoint.types import Side
from counterpoint.vectors import Vectors

__all__ = ["Observation", "Watch", "WatchSettings"]

REMEDY = (
    "If the two encoders differ, align the query side first (freeze the document encoder and a shared "
    "projection, stop by AlignmentStop); otherwise lower the learning rate or lengthen the warm-up."
)


@final
@dataclass(frozen=True)
class WatchSettings(Setting):
    """How often to check the vectors, and what to warn about.

    Attributes:
        every: steps between looks.
        rows: number of the latest vectors of each set and side to check, 2 or more.
        room: warn of one direction if 1 − mean cosine is below this share of its highest value so far.
        rank: warn of few dimensions if the effective rank (participation ratio) is below this share of its
            highest value so far.
        chance: warn if the loss is within this share of ln(1 + |D⁻|), the loss of equal scores (DAFT,
            equation 7), on average between looks and for `stuck` looks in a row.
        stuck: see `chance`.
        calm: number of looks without a problem before its warning is repeated.
    """

    every: int = 20
    rows: int = 256
    room: float = 0.25
    rank: float = 0.25
    chance: float = 0.02
    stuck: int = 5
    calm: int = 3

    def __post_init__(self) -> None:
        faults = too_low(self, "WatchSettings", every=1, rows=2, stuck=1, calm=1)
        faults += no_shares(self, "WatchSettings", "room", "rank", "chance")
        if faults:
            raise ConfigError(*faults)


@dataclass(frozen=True)
class Observation:
    """The result of a look.

    Attributes:
        numbers: for the log, by name. Empty between looks.
        warnings: sentences that describe the problem and a remedy.
    """

    numbers: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@final
class Watch:
    """Keeps a few hundred of the latest vectors of each set and side, and describes them at intervals.

    Numbers are named `watch.SET.SIDE.MEASURE`, with the measures `cosine`, `spread`, `rank` and `first_share`
    of `counterpoint.measure.alignment`. In addition, `watch.SET.kl` is KL₁(documents ‖ queries) of the
    sample. These are different texts, so it need not approach 0. `AlignmentStop` compares equal texts.
    """

    def __init__(self, settings: WatchSettings | None = None):
        self.settings = settings or WatchSettings()
        self._recent: dict[str, Tensor] = {}  # by set and side, as SET.SIDE
        self._highest: dict[str, float] = {}  # by the name of a number
        self._quiet: dict[str, int] = {}  # looks since a warned problem was last seen
        self._ratios: list[float] = []  # loss divided by the loss of equal scores, since the last look
        self._stuck = 0  # looks in a row with a ratio near 1

    def see(self, step: Step, at: int, loss: float | None = None) -> Observation:
        """Record a step, and check the vectors if a look is due.

        Args:
            step: copies of some of its vectors are kept, without gradients.
            at: the step's number in the stage. A look is due if `every` divides it.
            loss: value of an unweighted −ln softmax term over the step's documents. None if there is none.

        Raises:
            DataError: a vector is not finite.
        """
        sides: tuple[tuple[Side, Mapping[str, Vectors]], ...] = (("query", step.q), ("document", step.d))
        for side, sets in sides:
            for name, vectors in sets.items():
                # Single numbers have no direction: one-dimensional sets, gates, a router's weights and loads.
                if vectors.values.shape[2] > 1 and not name.endswith((BY_LOAD, BY_ROUTER)):
                    self._remember(f"{name}.{side}", vectors)
        level = _equal_scores(step.targets)
        if loss is not None and level > 0:
            self._ratios.append(loss / level)
        if at % self.settings.every:
            return Observation()
        recent = sorted(self._recent.items())
        profiles = {key: profile(_array(rows)) for key, rows in recent if len(rows) > 1}
        found = [warning for key, seen in profiles.items() for warning in self._of_side(key, seen)]
        return Observation(self._numbers(profiles), (*found, *self._of_loss(level)))

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The part of a checkpoint: tensors, and JSON values."""
        numbers = {
            "highest": dict(self._highest),
            "quiet": dict(self._quiet),
            "ratios": list(self._ratios),
            "stuck": self._stuck,
        }
        return dict(self._recent), numbers

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Continue from the result of `state`."""
        self._recent = dict(tensors)
        self._highest, self._quiet = dict(numbers["highest"]), dict(numbers["quiet"])
        self._ratios, self._stuck = list(numbers["ratios"]), numbers["stuck"]

    def _remember(self, key: str, vectors: Vectors) -> None:
        """Add real rows (a sample spread over the batch if there are too many), and drop the oldest."""
        limit = self.settings.rows
        rows = vectors.values.detach()[vectors.mask].float()
        if len(rows) > limit:
            rows = rows[torch.linspace(0, len(rows) - 1, limit, device=rows.device).long()]
        if key in self._recent:
            rows = torch.cat([self._recent[key].to(rows.device), rows])
        self._recent[key] = rows[-limit:].clone()  # not a view of the batch

    def _numbers(self, profiles: Mapping[str, Profile]) -> dict[str, float]:
        numbers: dict[str, float] = {
            f"watch.{key}.{name}": getattr(seen, name)
            for key, seen in profiles.items()
            for name in ("cosine", "spread", "rank", "first_share")
        }
        for key in profiles:
            name, _, side = key.rpartition(".")
            other = f"{name}.query"
            if side == "document" and other in profiles and profiles[key].spread:
                documents, queries = _array(self._recent[key]), _array(self._recent[other])
                numbers[f"watch.{name}.kl"] = kl_divergence(documents, queries)
        return numbers

    def _of_side(self, key: str, seen: Profile) -> Iterator[str]:
        name, _, side = key.rpartition(".")
        who = f"{'documents' if side == 'document' else 'queries'} ({name})"
        room = self._highest_of(f"{key}.room", 1 - seen.cosine)
        if self._warns(f"{key}.direction", 1 - seen.cosine < self.settings.room * room):
            yield (
                f"{who} point in one direction: mean cosine {seen.cosine:.2f}, was {1 - room:.2f}. "
                f"The vectors are collapsing. {REMEDY}"
            )
        rank = self._highest_of(f"{key}.rank", seen.rank)
        if self._warns(f"{key}.dimensions", seen.rank < self.settings.rank * rank):
            yield (
                f"{who} use few dimensions: effective rank {seen.rank:.1f} of {seen.dimension}, "
                f"was {rank:.1f}; "
                f"{seen.first_share:.0%} of the variance in one. The vectors are collapsing. {REMEDY}"
            )

    def _of_loss(self, level: float) -> Iterator[str]:
        """A warning about a loss that stays near that of equal scores."""
        ratios, self._ratios = self._ratios, []
        near = bool(ratios) and abs(sum(ratios) / len(ratios) - 1) <= self.settings.chance
        self._stuck = self._stuck + 1 if near else 0
        if self._warns("loss", self._stuck >= self.settings.stuck):
            yield (
                f"the loss has been near {level:.2f}, the loss of equal scores, for {self._stuck} looks: the "
                "model does not tell documents apart. This alone is no proof of a collapse: an untrained "
                f"model may begin there. See the mean cosines. {REMEDY}"
            )

    def _highest_of(self, name: str, value: float) -> float:
        self._highest[name] = max(value, self._highest.get(name, value))
        return self._highest[name]

    def _warns(self, name: str, trouble: bool) -> bool:
        """Whether to warn: at the first sign of a problem, and again only after `calm` looks without it."""
        if trouble:
            fresh = name not in self._quiet
            self._quiet[name] = 0
            return fresh
        if name in self._quiet:
            self._quiet[name] += 1
            if self._quiet[name] >= self.settings.calm:
                del self._quiet[name]
        return False


def _equal_scores(targets: Targets) -> float:
    """The loss of equal scores: the mean of ln(1 + |D⁻|) over queries. 0 if there are no negatives."""
    if targets.cached is not None:
        negatives = targets.cached.isfinite().sum(1)
    else:
        negatives = targets.allowed.sum(1) - 1
    return float(negatives.float().log1p().mean())


def _array(rows: Float[Tensor, "n d"]) -> Any:
    return rows.cpu().numpy()
