"""The stages of a recipe: `Train`, `Fit`, `Build`. Each is a setting; `trainer` carries them out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, final

from counterpoint.config import Setting
from counterpoint.errors import ConfigError
from counterpoint.index import CodecName
from counterpoint.learn.batches import RandomBatches, Sampler
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.lexical import BM25Terms
from counterpoint.learn.loss import Loss
from counterpoint.learn.negatives.source import Negatives
from counterpoint.learn.stop import Stop
from counterpoint.learn.teachers import Teacher
from counterpoint.learn.watch import WatchSettings
from counterpoint.score import Scorer

__all__ = ["Build", "Fit", "Stage", "Train"]

Schedule = Literal["linear", "constant", "cosine"]


class Stage(Setting):
    """What a recipe does in one go, under a name that is unique in it."""

    name: str


@final
@dataclass(frozen=True)
class Train(Stage):
    """Gradient descent on an objective.

    Attributes:
        objective: what is minimised.
        scorer: scores queries against documents; its own weights are trained, too. The recipe's where None.
        name: of the stage, in logs.
        epochs: passes over the data; ignored where `steps` is given.
        steps: optimiser steps.
        batch: queries a step and process.
        chunk: texts encoded at a time with gradients (of a cross-encoder, pairs); vectors of a batch are
            kept, activations are not (gradient cache), so memory does not grow with `batch`. None keeps them.
        accumulate: batches a step; unlike a larger `batch` they are no negatives of each other.
        negatives: sources of negatives, beside the other queries' documents.
        mirror: every query is its own document, so that an encoder learns from the other one's vectors of the
            same text; the examples' documents are not read, and negatives, teacher and cache not used.
        mask_matches: the probability with which [MASK] takes the place of a word-piece of a document that its
            query has, too: in training only, drawn for each position anew at every step, in positives and
            negatives alike (input-level orthogonality). A document of several queries is encoded for each.
        hide: "mask" is that (the paper's text); "drop" takes the word-piece out instead (its equation 10), so
            that there is no [MASK] to learn from.
        sampler: which examples stand together.
        teacher: scores each query's own documents where the data have no scores.
        cache: the negative cache (DAFT).
        lexical: BM25's vectors of every text, for losses that compare the model with BM25 (RoC, CLEAR).
        lr: highest learning rate of AdamW.
        lr_factors: by patterns of parameters, what the rate is multiplied by; the first that fits counts.
        weight_decay: not applied to biases and layer norms.
        warmup: steps over which the rate rises from 0; a share of all steps where below 1.
        schedule: how it falls afterwards.
        clip: largest norm of the gradient; None for no limit.
        precision: "bf16" runs the backbones under autocast; "auto" does where that is faster.
        learn: patterns (as file names have) of the parameters that are trained; "query.*", "scorer.*".
        freeze: patterns of those that are not, whatever `learn` says.
        alternate: patterns of parameters that learn in turn, those of the first one at the first step; what
            none of them matches learns at every step. DAFT's alternating variant (section 4) is
            ("query.*", "document.*"). Each turn passes over the other's memory of gradients, too.
        stop: ends the stage earlier.
        evaluate_every: steps between evaluations on the development set; once an epoch where None.
        checkpoint_every: steps between checkpoints; with every evaluation where None.
        remember: GiB of hidden states to keep of backbones that do not learn. A text then passes them once,
            and heads are trained many times faster.
        watch: how often the vectors are looked at, and what is warned of.
        keep: whether the stage ends with the model that evaluated best, or with the last.
    """

    objective: Loss
    scorer: Scorer | None = None
    name: str = "train"
    epochs: int = 1
    steps: int | None = None
    batch: int = 32
    chunk: int | None = None
    accumulate: int = 1
    negatives: tuple[Negatives, ...] = ()
    mirror: bool = False
    mask_matches: float = 0.0
    hide: Literal["mask", "drop"] = "mask"
    sampler: Sampler = RandomBatches()
    teacher: Teacher | None = None
    cache: NegativeCache | None = None
    lexical: BM25Terms | None = None
    lr: float = 2e-5
    lr_factors: Mapping[str, float] = field(default_factory=dict)
    weight_decay: float = 0.01
    warmup: float = 0.1
    schedule: Schedule = "linear"
    clip: float | None = 1.0
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    learn: tuple[str, ...] = ("*",)
    freeze: tuple[str, ...] = ()
    alternate: tuple[str, ...] = ()
    stop: Stop | None = None
    evaluate_every: int | None = None
    checkpoint_every: int | None = None
    remember: float = 0.0
    watch: WatchSettings = WatchSettings()
    keep: Literal["best", "last"] = "best"

    def __post_init__(self) -> None:
        least = {
            "epochs": 1,
            "steps": 1,
            "batch": 1,
            "chunk": 1,
            "accumulate": 1,
            "evaluate_every": 1,
            "checkpoint_every": 1,
        }
        faults = [
            f"{self.name}: {name} must be at least {low}, found {value}"
            for name, low in least.items()
            if (value := getattr(self, name)) is not None and value < low
        ]
        faults += [
            f"{self.name}: {name} must not be negative, found {value}"
            for name in ("lr", "weight_decay", "warmup", "clip", "remember")
            if (value := getattr(self, name)) is not None and value < 0
        ]
        faults += [
            f"{self.name}: lr_factors[{pattern!r}] must not be negative, found {factor}"
            for pattern, factor in self.lr_factors.items()
            if factor < 0
        ]
        if not 0 <= self.mask_matches <= 1:
            faults.append(
                f"{self.name}: mask_matches is a probability, from 0 to 1, found {self.mask_matches}"
            )
        if self.mask_matches and self.cache is not None:
            faults.append(
                f"{self.name}: mask_matches hides words of a document from its own query only, and the cache "
                "keeps one vector of a document for all queries; leave one of them out"
            )
        if len(self.alternate) == 1:
            faults.append(f"{self.name}: alternate: one pattern has nobody to take turns with; name two")
        given = [name for name in ("negatives", "teacher", "cache", "mask_matches") if getattr(self, name)]
        if self.mirror and given:
            faults.append(
                f"{self.name}: mirror: every query is its own document, so {', '.join(given)} are not used; "
                "leave them out"
            )
        for name, known in (
            ("hide", ("mask", "drop")),
            ("schedule", ("linear", "constant", "cosine")),
            ("precision", ("auto", "fp32", "bf16")),
            ("keep", ("best", "last")),
        ):
            if getattr(self, name) not in known:
                faults.append(
                    f"{self.name}: {name} must be one of {', '.join(known)}, found {getattr(self, name)!r}"
                )
        if faults:
            raise ConfigError(*faults)


@final
@dataclass(frozen=True)
class Fit(Stage):
    """Learn from the training documents alone, with the encoder frozen.

    Until a set's maps have been fitted for the first time, the stages before pass over them.

    Attributes:
        on: the vector set.
        what: "transforms" are fitted in order, each behind the one before, and so are the "tokenwise" maps of
            a `Mean` head; the "projection" of the set's head becomes the principal directions of what it is
            fed, a far better start than a random one. "idf" counts in how many documents each id stands, for
            every `MaxSim` of the recipe that weighs by it.
        name: of the stage, in logs.
        documents: how many documents are encoded for it, drawn at random; all where None.
        queries: fit maps to the training queries' vectors, too, all of them.
    """

    on: str
    what: Literal["transforms", "tokenwise", "projection", "idf"] = "transforms"
    name: str = "fit"
    documents: int | None = 10_000
    queries: bool = False


@final
@dataclass(frozen=True)
class Build(Stage):
    """Build an index of the collection with the model, in the run's folder under `index`.

    Attributes:
        name: of the stage, in logs.
        codec: how vectors are stored; the model's own choice where None.
        lexical: keep BM25 postings beside.
    """

    name: str = "build"
    codec: CodecName | None = None
    lexical: bool = True
