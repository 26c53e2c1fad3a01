"""`Negatives`: what a source of negatives promises, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from counterpoint.config import Setting
from counterpoint.index import TextModel
from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import TrainingSet

__all__ = ["Mining", "Negatives"]


@dataclass(frozen=True)
class Mining:
    """What a source may use.

    Attributes:
        data: the training set; negatives come from its documents.
        model: the model as it is now.
        folder: where mined lists are kept, so that a run that is taken up again finds them.
        seed: of the run.
        step: of the stage, 0 at its beginning; lists mined with the model belong to it.
        on_progress: called with a text and the number of queries done, for a bar.
    """

    data: TrainingSet
    model: TextModel
    folder: Path
    seed: int
    step: int = 0
    on_progress: Callable[[str, int], None] = lambda what, done: None


class Negatives(Setting, ABC):
    """A source of negatives. Documents known to be relevant are never among them."""

    every: int | None = None
    """Steps after which the source is prepared anew (ANCE); never where None."""

    @abstractmethod
    def prepare(self, mining: Mining) -> Draw:
        """Mine what is needed (or read what was mined for this step) and return how to draw from it."""
