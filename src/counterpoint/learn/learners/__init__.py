"""Learners: how a batch becomes a step, for models that make vectors and for those that read pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.encode import InteractiveEncoder
from counterpoint.learn.learners.learner import Learner, Made
from counterpoint.learn.learners.pairs import PairLearner
from counterpoint.learn.learners.vectors import VectorLearner

if TYPE_CHECKING:
    from counterpoint.learn.run import Run
    from counterpoint.learn.stages import Train

__all__ = ["Learner", "Made", "PairLearner", "VectorLearner", "learner_of"]


def learner_of(run: Run, stage: Train) -> Learner:
    """What trains the run's model in a stage.

    Raises:
        ConfigError: the stage has what a model of that kind cannot use, or lacks what it needs.
    """
    model = run.job.model
    if isinstance(model, InteractiveEncoder):
        return PairLearner(model, run, stage)
    return VectorLearner(model, run, stage)
