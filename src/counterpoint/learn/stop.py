"""`Stop`: when a stage ends before its last step."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from counterpoint.config import Setting

if TYPE_CHECKING:
    from counterpoint.encode import InteractiveEncoder
    from counterpoint.learn.development import DevelopmentSet
    from counterpoint.model import Model

__all__ = ["NoImprovement", "Situation", "Stop"]


@dataclass(frozen=True)
class Situation:
    """What a stop rule may look at.

    Attributes:
        model: as it is now.
        development: queries, judgements and documents that are not trained on; None where there are none.
        measures: what the last evaluation on it found, by name; empty before the first.
    """

    model: Model | InteractiveEncoder
    development: DevelopmentSet | None
    measures: Mapping[str, float]


class Stop(Setting, ABC):
    """Looks every so often, remembers only numbers, and decides by them.

    The trainer calls `look` before the first step, after the last, and every `every` steps between (with
    every evaluation where None), keeps what it returns in the checkpoint, and asks `decide`.
    """

    every: int | None = None
    by_measures: ClassVar[bool] = False
    """Whether it looks at measures, so that the model must be evaluated first. Retrieval takes its time."""

    @abstractmethod
    def look(self, situation: Situation) -> dict[str, float]:
        """Numbers that describe the model now; they are logged under their names."""

    @abstractmethod
    def decide(self, history: Sequence[Mapping[str, float]]) -> str | None:
        """Why to stop, or None to go on; `history` holds every look so far, the newest last."""

    def is_failure(self, reason: str) -> bool:
        """Whether a stage that ended for this reason missed what it is for; it is warned of then."""
        return False


@final
@dataclass(frozen=True)
class NoImprovement(Stop):
    """Stop when a measure on the development set has not risen for `patience` looks.

    With a retrieval measure this is the ANN-retrieval criterion that DAFT compares with its own.

    Args:
        measure: one of those the recipe evaluates.
        patience: looks without a new best.
        every: steps between looks; None for every evaluation.
    """

    by_measures: ClassVar[bool] = True
    measure: str = "nDCG@10"
    patience: int = 3
    every: int | None = None

    def look(self, situation: Situation) -> dict[str, float]:
        """The measure, where it has been evaluated."""
        found = situation.measures.get(self.measure)
        return {} if found is None else {self.measure: found}

    def decide(self, history: Sequence[Mapping[str, float]]) -> str | None:
        """Stop if the best is `patience` looks old."""
        values = [found[self.measure] for found in history if self.measure in found]
        if len(values) <= self.patience or max(values[-self.patience :]) > max(values[: -self.patience]):
            return None
        return f"{self.measure} has not risen above {max(values):.4f} for {self.patience} looks"
