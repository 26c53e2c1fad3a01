"""Training: stages, objectives, negatives. Losses see a `Step` and nothing else."""

from counterpoint.learn.batches import Batch, Draw, RandomBatches, Sampler, make_batch
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.development import DevelopmentSet
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.loss import Loss, Objective
from counterpoint.learn.negatives.source import Mining, Negatives
from counterpoint.learn.stages import Build, Fit, Stage, Train
from counterpoint.learn.step import Step, Targets
from counterpoint.learn.stop import NoImprovement, Situation, Stop
from counterpoint.learn.teachers import Grader, Teacher

__all__ = [
    "Batch",
    "Build",
    "DevelopmentSet",
    "Draw",
    "Example",
    "Fit",
    "Grader",
    "Loss",
    "Mining",
    "NegativeCache",
    "Negatives",
    "NoImprovement",
    "Objective",
    "RandomBatches",
    "Sampler",
    "Situation",
    "Stage",
    "Step",
    "Stop",
    "Targets",
    "Teacher",
    "Train",
    "TrainingSet",
    "make_batch",
]
