"""`Negatives`: the interface of a source of negatives. `Mining`: its input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterpoint.config import Setting
from counterpoint.errors import ConfigError, DataError
from counterpoint.index import TextModel
from counterpoint.learn.batches import Draw
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.limits import too_low
from counterpoint.learn.seeds import seed_of

__all__ = ["Mining", "Negatives", "check_count", "checked", "pick"]

TRIED = 64  # examples that a source is tried on


@dataclass(frozen=True)
class Mining:
    """The input of a source of negatives.

    Attributes:
        data: the training set. Negatives come from its documents.
        model: the model in its current state. None if nothing needs one.
        folder: where mined lists are stored, so that a resumed run finds them. Each stage has its own,
            because lists of another stage's model would be accepted, too.
        seed: of the run.
        step: the stage's step at which the source is prepared, 0 at its beginning. A resumed run passes the
            step of its last preparation, not the step where it stopped, because mined lists belong to that.
        on_progress: called with a text and the number of queries done.
    """

    data: TrainingSet
    model: TextModel | None
    folder: Path
    seed: int
    step: int = 0
    on_progress: Callable[[str, int], None] = lambda what, done: None


class Negatives(Setting, ABC):
    """A source of negatives. Abstract.

    It never returns documents known to be relevant, or a document twice. If fewer negatives are available
    than requested, it returns fewer. A source without negatives for most examples is an error.
    """

    every: int | None = None
    """Steps between preparations of the source (ANCE). None to prepare it only at the beginning."""

    @abstractmethod
    def prepare(self, mining: Mining) -> Draw:
        """Mine negatives, or read those mined for this step, and return how to draw from them.

        Raises:
            DataError: there are no negatives for most examples.
        """


def checked(draw: Draw, mining: Mining, what: str) -> Draw:
    """Try the draw on some examples, and return it.

    Raises:
        DataError: it finds nothing for most of them.
    """
    rng = np.random.default_rng(seed_of(mining.seed, "try", what))
    tried = rng.permutation(len(mining.data))[:TRIED].tolist()
    empty = [at for at in tried if not draw(at, rng)]
    if 2 * len(empty) > len(tried):
        raise DataError(
            f"{what} finds no negative for {len(empty)} of {len(tried)} examples that were tried, such as "
            f"that of query {mining.data.examples[empty[0]].query!r}; choose another source, a greater "
            "depth, or a weaker filter"
        )
    return draw


def check_count(setting: Negatives, **least: int) -> None:
    """Refuse numbers below their minimum with one ConfigError."""
    if faults := too_low(setting, type(setting).__name__, **least):
        raise ConfigError(*faults)


def pick(pool: Sequence[str], count: int, rng: np.random.Generator) -> Sequence[str]:
    """Draw `count` different members at random, or all if there are fewer."""
    chosen = rng.choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[int(at)] for at in chosen]
