"""Learners: turn a batch into a step, for models that make vectors and for cross-encoders."""

from __future__ import annotations

from counterpoint.encode import InteractiveEncoder
from counterpoint.learn.learners.learner import Learner, Made
from counterpoint.learn.learners.pairs import PairLearner
from counterpoint.learn.learners.vectors import VectorLearner
from counterpoint.learn.stages import Train
from counterpoint.learn.training_run import TrainingRun

__all__ = ["Learner", "Made", "PairLearner", "VectorLearner", "learner_of"]


def learner_of(run: TrainingRun, stage: Train) -> Learner:
    """The learner for the run's model in a stage.

    Raises:
        ConfigError: the stage has a setting that this kind of model cannot use, or lacks one that it needs.
    """
    model = run.job.model
    if isinstance(model, InteractiveEncoder):
        return PairLearner(model, run, stage)
    return VectorLearner(model, run, stage)
