"""`Loss`, and weighted sums of losses: `MarginMSE() + 0.1 * Contrastive()`."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, final, get_args

from jaxtyping import Float
from torch import Tensor, nn

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.step import Step
from counterpoint.part import Part
from counterpoint.score import Scorer
from counterpoint.weighted import Summand, check_weights

__all__ = ["Loss", "Need", "Objective", "SetTraits", "not_pooled"]

Need = Literal["batch", "negatives", "teacher", "cache", "lexical"]
"""Other queries in the batch; a query's own negatives; a teacher's scores; a negative cache; BM25 vectors."""


@dataclass(frozen=True)
class SetTraits:
    """Properties of a vector set, for losses that do not support every kind of set.

    Attributes:
        pooled: one row per text.
        ids: every row has an id.
        gated: a gate weights the rows of documents.
        routed: a router decides the rows.
    """

    pooled: bool = False
    ids: bool = True
    gated: bool = False
    routed: bool = False


class Loss(Summand["Loss", "Objective"], Part, ABC):
    """A scalar to minimise. Abstract.

    A loss with an argument `scorer` uses that scorer's scores, or the stage's if it is None. One objective
    can therefore hold a loss on the final score and another on a part of it.

    Args:
        name: the loss's name in logs. None for its class name.
        scorer: the scorer whose scores the loss uses.

    Example:
        >>> from counterpoint.learn import Contrastive, MarginMSE
        >>> objective = MarginMSE() + 0.1 * Contrastive(name="dense")
        >>> objective.names
        ('margin_mse', 'dense')
    """

    needs: frozenset[Need] = frozenset()
    """What the stage must provide for this loss. Checked by `counterpoint.recipe.check`."""
    drawn: int | None = None
    """How many of a query's drawn cache negatives the loss uses. None for all."""

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse an unknown name in `needs`: nothing would check it."""
        super().__init_subclass__(**more)
        if isinstance(cls.needs, str):
            raise ConfigError(f'{cls.__name__}.needs is a text; write frozenset({{"{cls.needs}"}})')
        if unknown := sorted(set(cls.needs) - set(get_args(Need))):
            known = ", ".join(get_args(Need))
            raise ConfigError(f"{cls.__name__}.needs: unknown {', '.join(unknown)}; there are {known}")

    # Not a class attribute: torch stores submodules elsewhere, and a class default would hide them.
    def __init__(self, name: str | None = None, scorer: Scorer | None = None):
        super().__init__()
        self.name = name
        self.scorer = scorer

    @abstractmethod
    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The loss of one step, averaged over its queries."""

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """Reasons why the loss cannot train a model.

        `counterpoint.recipe.check` says itself if there is no set `on`, and then does not ask.

        Args:
            sets: the model's vector sets by name, including what its routers produce.
            cache: the stage's negative cache.
        """
        yield from ()

    def faults_of_pairs(self) -> Iterator[str]:
        """Reasons why the loss cannot train a cross-encoder, which scores a query's own documents only."""
        yield from ()

    @property
    def label(self) -> str:
        """Name in progress and logs: `name`, or else the class name in snake case."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(self).__name__)
        return self.name or words.lower()

    def scores(self, step: Step) -> Float[Tensor, "q d"]:
        """Scores of the loss's own scorer, or else of the stage's."""
        if self.scorer is None:
            return step.scores
        return self.scorer.batch_scores(step.q, step.d, step.targets.own)

    @staticmethod
    def _sum(terms: Sequence[Loss], weights: Sequence[float]) -> Objective:
        return Objective(terms, weights)


def _checked(loss: Loss, found: object) -> Float[Tensor, ""]:
    """What a loss returned, if it is a number that can be learnt from."""
    if not isinstance(found, Tensor):
        wrong = f"a {type(found).__name__}; return a tensor, not a number of Python"
    elif found.shape != ():
        wrong = f"a tensor of shape {tuple(found.shape)}; return the mean over the queries"
    else:
        return found
    raise ShapeError(f"the loss {type(loss).__name__} returned {wrong}")


def not_pooled(loss: str, on: str, sets: Mapping[str, SetTraits]) -> Iterator[str]:
    """A fault of a loss (its label) that takes one vector per text, if the set `on` has several."""
    if not sets[on].pooled:
        yield f"{loss} takes one vector per text, and {on!r} has several; name a pooled set"


@final
class Objective(Loss):
    """A weighted sum of losses. Nested sums are flattened, and every term has a unique name.

    Args:
        losses: the terms.
        weights: one number per loss. None for 1 each.
    """

    def __init__(self, losses: Sequence[Loss], weights: Sequence[float] | None = None):
        super().__init__()
        check_weights("Objective", "loss", losses, weights)
        self.losses = nn.ModuleList(losses)
        self.weights = weights

    @property
    def names(self) -> tuple[str, ...]:
        """The terms' names, numbered where they repeat."""
        labels = [loss.label for loss, _ in self._summands()]
        return tuple(
            label if labels.count(label) == 1 else f"{label}_{labels[: at + 1].count(label)}"
            for at, label in enumerate(labels)
        )

    def terms(self, step: Step) -> dict[str, Float[Tensor, ""]]:
        """Every weighted term by name. They sum to the loss."""
        weighted = [weight * _checked(loss, loss(step)) for loss, weight in self._summands()]
        return dict(zip(self.names, weighted, strict=True))

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The weighted sum."""
        return sum(self.terms(step).values(), start=step.scores.new_zeros(()))

    def _summands(self) -> list[tuple[Loss, float]]:
        weights = self.weights or [1.0] * len(self.losses)
        return list(zip(cast(Sequence[Loss], self.losses), weights, strict=True))
