"""Distillation from a teacher's scores of each query's own documents, or from another encoder's vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import final

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from counterpoint.errors import ConfigError
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.loss import Loss, SetTraits, not_pooled
from counterpoint.learn.losses.entries import own_entries, wide
from counterpoint.learn.step import Step
from counterpoint.score import Scorer

__all__ = ["KLDivergence", "MarginMSE", "PositiveDistance"]


@final
class MarginMSE(Loss):
    """((s₊ − s₋) − (t₊ − t₋))², averaged over pairs of a positive and an own negative.

    Hofstätter et al. 2020; ColBERTer, eq. 16, with one negative per query. A pair counts if the teacher
    scores both documents.

    Args: as `Loss`.
    """

    needs = frozenset({"negatives", "teacher"})

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over the step's pairs.

        Raises:
            ConfigError: the teacher scored no pair.
        """
        own, teacher, known = _taught(self, step)
        pairs = known & known[:, :1]
        pairs[:, 0] = False
        if not pairs.any():
            raise _no_scores(self)
        margins = (own[:, :1] - own) - (teacher[:, :1] - teacher)
        return margins[pairs].square().mean()


@final
class KLDivergence(Loss):
    """KL(softmax(t / τ) ‖ softmax(s / τ)) over the query's own documents that the teacher scored.

    Queries with fewer than two such documents are left out of the mean. There is no factor τ² (Hinton et al.
    2015 have one). Give it as the loss's weight if you need it.

    Args:
        name: the loss's name in logs.
        scorer: the scorer of s. None for the stage's.
        temperature: τ.
    """

    needs = frozenset({"negatives", "teacher"})

    def __init__(self, name: str | None = None, scorer: Scorer | None = None, temperature: float = 1.0):
        super().__init__(name, scorer)
        if temperature <= 0:
            raise ConfigError(f"KLDivergence: temperature must be above 0, found {temperature}")
        self.temperature = temperature

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries with at least two documents scored by the teacher.

        Raises:
            ConfigError: there is no such query.
        """
        own, teacher, known = _taught(self, step)
        lists = known.sum(1) >= 2
        if not lists.any():
            raise _no_scores(self)
        unknown = ~known[lists]
        student, target = (
            (scores[lists] / self.temperature).masked_fill(unknown, -torch.inf).log_softmax(1)
            for scores in (own, teacher)
        )
        divergence = target.exp() * (target - student).masked_fill(unknown, 0)
        return divergence.sum(1).mean()


@final
class PositiveDistance(Loss):
    """‖q − d₊‖², averaged over queries. For unit vectors this is 2 − 2·cos(q, d₊).

    The loss has no negatives, so use it only if the document side does not learn. Otherwise all vectors move
    to one point. With `Train(mirror=True)` both sides read the same text, and the query encoder becomes a
    smaller copy of the document encoder. (Campos et al. 2023, "Quick Dense Retrievers Consume KALE", align a
    pruned query encoder with the vectors that the full one gives the same queries. They use a KL divergence.)

    Args:
        on: a pooled vector set.
        name: the loss's name in logs.
    """

    def __init__(self, on: str, name: str | None = None):
        super().__init__(name)
        self.on = on

    def faults(self, sets: Mapping[str, SetTraits], cache: NegativeCache | None) -> Iterator[str]:
        """The set has several vectors per text."""
        yield from not_pooled(self.label, self.on, sets)

    def forward(self, step: Step) -> Float[Tensor, ""]:
        """The mean over queries.

        Raises:
            ConfigError: the set has several vectors per text.
        """
        queries, documents = step.q[self.on], step.d[self.on]
        if queries.values.shape[1] != 1 or documents.values.shape[1] != 1:
            raise ConfigError(f"{self.label}: takes one vector per text, and {self.on!r} has several")
        positives = documents.values[step.targets.positive, 0]
        return (wide(queries.values[:, 0]) - wide(positives)).square().sum(1).mean()


def _taught(loss: Loss, step: Step) -> tuple[Float[Tensor, "q n"], Float[Tensor, "q n"], Bool[Tensor, "q n"]]:
    """Student's and teacher's scores of the own documents, and which of them the teacher scored."""
    if step.targets.teacher is None:
        raise _no_scores(loss)
    own, there = own_entries(loss.scores(step), step.targets.own)
    known = there & ~step.targets.teacher.isnan()
    return own, wide(step.targets.teacher).masked_fill(~known, 0), known


def _no_scores(loss: Loss) -> ConfigError:
    return ConfigError(
        f"{loss.label}: no query of this step has two documents with a teacher's score to compare; give the "
        "stage a teacher=... that scores its negatives=... (of a file, draw those that it has: "
        "negatives=(Filtered(...),)), or examples with scores, drawn by negatives=(FromData(...),)"
    )
