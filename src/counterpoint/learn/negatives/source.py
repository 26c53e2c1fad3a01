"""`Negatives`: what a source of negatives promises, and what it is given."""

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
from counterpoint.learn.seeds import seed_of

__all__ = ["Mining", "Negatives", "check_count", "checked", "pick"]

TRIED = 64  # examples looked at before a source is trusted


@dataclass(frozen=True)
class Mining:
    """What a source may use.

    Attributes:
        data: the training set; negatives come from its documents.
        model: the model as it is now; None where nothing needs one.
        folder: where mined lists are kept, so that a run that is taken up again finds them. Each stage has
            its own, since lists of another stage's model would fit.
        seed: of the run.
        step: of the stage at which the source is prepared, 0 at its beginning. A run that is taken up names
            the step of its last preparation, not the one it stopped at, since mined lists belong to that.
        on_progress: called with a text and the number of queries done, for a bar.
    """

    data: TrainingSet
    model: TextModel | None
    folder: Path
    seed: int
    step: int = 0
    on_progress: Callable[[str, int], None] = lambda what, done: None


class Negatives(Setting, ABC):
    """A source of negatives. Abstract.

    Documents known to be relevant are never among them, and none comes twice. Where fewer are available than
    asked for, fewer come; a source that has none for most examples is an error.
    """

    every: int | None = None
    """Steps after which the source is prepared anew (ANCE); never where None."""

    @abstractmethod
    def prepare(self, mining: Mining) -> Draw:
        """Mine what is needed (or read what was mined for this step) and return how to draw from it.

        Raises:
            DataError: there are no negatives for most examples.
        """


def checked(draw: Draw, mining: Mining, what: str) -> Draw:
    """The draw, once it has been tried on some examples.

    Raises:
        DataError: it has nothing for most of them.
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
    """Refuse numbers below what makes sense.

    Raises:
        ConfigError: listing every one.
    """
    faults = [
        f"{type(setting).__name__}: {name} must be at least {low}, found {value}"
        for name, low in least.items()
        if (value := getattr(setting, name)) is not None and value < low
    ]
    if faults:
        raise ConfigError(*faults)


def pick(pool: Sequence[str], count: int, rng: np.random.Generator) -> Sequence[str]:
    """`count` different members at random, or all where there are fewer."""
    chosen = rng.choice(len(pool), size=min(count, len(pool)), replace=False)
    return [pool[int(at)] for at in chosen]
