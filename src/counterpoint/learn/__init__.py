"""Training: stages, objectives, negatives. Losses see a `Step` and nothing else."""

from counterpoint.learn.batches import Batch, Draw, RandomBatches, Sampler, make_batch
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.development import DevelopmentSet
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.loss import Loss, Objective
from counterpoint.learn.losses.contrastive import CachedContrastive, Contrastive
from counterpoint.learn.losses.distillation import KLDivergence, MarginMSE
from counterpoint.learn.losses.ranking import NegativeLogLikelihood, PairwiseCrossEntropy
from counterpoint.learn.negatives.source import Mining, Negatives
from counterpoint.learn.stages import Build, Fit, Stage, Train
from counterpoint.learn.step import Step, Targets
from counterpoint.learn.stop import NoImprovement, Situation, Stop
from counterpoint.learn.teachers import Grader, Teacher

__all__ = [
    "Batch",
    "Build",
    "CachedContrastive",
    "Contrastive",
    "DevelopmentSet",
    "Draw",
    "Example",
    "Fit",
    "Grader",
    "KLDivergence",
    "Loss",
    "MarginMSE",
    "Mining",
    "NegativeCache",
    "NegativeLogLikelihood",
    "Negatives",
    "NoImprovement",
    "Objective",
    "PairwiseCrossEntropy",
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
