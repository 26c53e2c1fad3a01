"""`Stop`: rules for early stopping of a stage."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, final

from counterpoint.config import Setting
from counterpoint.encode import InteractiveEncoder
from counterpoint.learn.development import DevelopmentSet
from counterpoint.model import Model

__all__ = ["NoImprovement", "Situation", "Stop"]


@dataclass(frozen=True)
class Situation:
    """What a stop rule may read.

    Attributes:
        model: the model in its current state.
        development: queries, judgements and documents that are not trained on. None if there are none.
        measures: results of the last evaluation on it by name. Empty before the first.
    """

    model: Model | InteractiveEncoder
    development: DevelopmentSet | None
    measures: Mapping[str, float]


class Stop(Setting, ABC):
    """A rule that measures the model at intervals and decides from the numbers whether to stop.

    The trainer calls `look` before the first step, after the last, and every `every` steps (None: at every
    evaluation). It keeps the result in the checkpoint and then calls `decide`.
    """

    every: int | None = None
    by_measures: ClassVar[bool] = False
    """Whether the rule needs evaluation measures. The model is then evaluated first, which takes time."""

    @abstractmethod
    def look(self, situation: Situation) -> dict[str, float]:
        """Numbers that describe the current model. They are logged under their names."""

    @abstractmethod
    def decide(self, history: Sequence[Mapping[str, float]]) -> str | None:
        """The reason to stop, or None to continue. `history` holds all results of `look`, the newest last."""

    def is_failure(self, reason: str) -> bool:
        """Whether a stage that ended for this reason missed its purpose. A warning then follows."""
        return False


@final
@dataclass(frozen=True)
class NoImprovement(Stop):
    """Stop when a measure on the development set has not risen for `patience` looks.

    With a retrieval measure, this is the ANN-retrieval criterion that DAFT compares with its own.

    Args:
        measure: one of the measures that the recipe evaluates.
        patience: number of looks without a new best value.
        every: steps between looks. None for every evaluation.
    """

    by_measures: ClassVar[bool] = True
    measure: str = "nDCG@10"
    patience: int = 3
    every: int | None = None

    def look(self, situation: Situation) -> dict[str, float]:
        """The measure, if it has been evaluated."""
        found = situation.measures.get(self.measure)
        return {} if found is None else {self.measure: found}

    def decide(self, history: Sequence[Mapping[str, float]]) -> str | None:
        """Stop if the best is `patience` looks old."""
        values = [found[self.measure] for found in history if self.measure in found]
        if len(values) <= self.patience or max(values[-self.patience :]) > max(values[: -self.patience]):
            return None
        return f"{self.measure} has not risen above {max(values):.4f} for {self.patience} looks"
