"""Training: stages, losses, negatives, teachers and stop rules. A loss sees a `Step` and nothing else."""

from counterpoint.learn.alignment import AlignmentStop
from counterpoint.learn.batches import (
    Batch,
    Draw,
    Drawn,
    RandomBatches,
    Sampler,
    join_drawn,
    make_batch,
    own_pairs,
)
from counterpoint.learn.cache import NegativeCache, RunningCache
from counterpoint.learn.development import DevelopmentSet, first_stage, rerank, retrieve
from counterpoint.learn.examples import Example, TrainingSet
from counterpoint.learn.fit import FitTexts
from counterpoint.learn.fit_transform import Level, fit_transform, fitted_dim, raw_length, recentre_transform
from counterpoint.learn.formats import open_training_data
from counterpoint.learn.job import Job, Metrics, Reporter, Silent
from counterpoint.learn.lexical import BM25Terms, RunningTerms, bm25_scores, lexical_set
from counterpoint.learn.loss import Loss, Objective
from counterpoint.learn.losses.complementarity import Orthogonality, ResidualMargin, squared_cosines
from counterpoint.learn.losses.contrastive import CachedContrastive, Contrastive, MultiLabelMargin
from counterpoint.learn.losses.distillation import KLDivergence, MarginMSE, PositiveDistance
from counterpoint.learn.losses.isotropy import CosReg, InterIso, IStar
from counterpoint.learn.losses.ranking import NegativeLogLikelihood, PairwiseCrossEntropy, PairwiseSoftmax
from counterpoint.learn.losses.sparsity import GateSparsity, RouterBalance, RouterSparsity, TermSparsity
from counterpoint.learn.negatives.filtered import Filtered, WithoutAnswers
from counterpoint.learn.negatives.given import FromData, RandomNegatives
from counterpoint.learn.negatives.graded import drawn_lists, graded_lists
from counterpoint.learn.negatives.mined import BM25Negatives, ModelNegatives
from counterpoint.learn.negatives.source import Mining, Negatives
from counterpoint.learn.stages import Build, Fit, Stage, Train
from counterpoint.learn.step import Step, Targets, cross_step
from counterpoint.learn.stop import NoImprovement, Situation, Stop
from counterpoint.learn.teachers import CrossEncoderTeacher, Grader, ModelTeacher, RunTeacher, Teacher, taught
from counterpoint.learn.topics import TopicBatches
from counterpoint.learn.trainer import train
from counterpoint.learn.watch import Observation, Watch, WatchSettings

__all__ = [
    "AlignmentStop",
    "BM25Negatives",
    "BM25Terms",
    "Batch",
    "Build",
    "CachedContrastive",
    "Contrastive",
    "CosReg",
    "CrossEncoderTeacher",
    "DevelopmentSet",
    "Draw",
    "Drawn",
    "Example",
    "Filtered",
    "Fit",
    "FitTexts",
    "FromData",
    "GateSparsity",
    "Grader",
    "IStar",
    "InterIso",
    "Job",
    "KLDivergence",
    "Level",
    "Loss",
    "MarginMSE",
    "Metrics",
    "Mining",
    "ModelNegatives",
    "ModelTeacher",
    "MultiLabelMargin",
    "NegativeCache",
    "NegativeLogLikelihood",
    "Negatives",
    "NoImprovement",
    "Objective",
    "Observation",
    "Orthogonality",
    "PairwiseCrossEntropy",
    "PairwiseSoftmax",
    "PositiveDistance",
    "RandomBatches",
    "RandomNegatives",
    "Reporter",
    "ResidualMargin",
    "RouterBalance",
    "RouterSparsity",
    "RunTeacher",
    "RunningCache",
    "RunningTerms",
    "Sampler",
    "Silent",
    "Situation",
    "Stage",
    "Step",
    "Stop",
    "Targets",
    "Teacher",
    "TermSparsity",
    "TopicBatches",
    "Train",
    "TrainingSet",
    "Watch",
    "WatchSettings",
    "WithoutAnswers",
    "bm25_scores",
    "cross_step",
    "drawn_lists",
    "first_stage",
    "fit_transform",
    "fitted_dim",
    "graded_lists",
    "join_drawn",
    "lexical_set",
    "make_batch",
    "open_training_data",
    "own_pairs",
    "raw_length",
    "recentre_transform",
    "rerank",
    "retrieve",
    "squared_cosines",
    "taught",
    "train",
]
