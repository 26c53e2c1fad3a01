"""The stages of a recipe: `Train`, `Fit` and `Build`. Each is a setting that `trainer` executes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, final, get_args

from counterpoint.config import Setting
from counterpoint.errors import ConfigError
from counterpoint.index import CodecName
from counterpoint.learn.batches import RandomBatches, Sampler
from counterpoint.learn.cache import NegativeCache
from counterpoint.learn.lexical import BM25Terms
from counterpoint.learn.limits import no_numbers, no_shares, too_low
from counterpoint.learn.loss import Loss, Objective
from counterpoint.learn.negatives.source import Negatives
from counterpoint.learn.stop import Stop
from counterpoint.learn.teachers import Teacher
from counterpoint.learn.watch import WatchSettings
from counterpoint.score import Scorer
from counterpoint.typed import hints_of

__all__ = ["Build", "Fit", "Stage", "Train"]

Schedule = Literal["linear", "constant", "cosine"]


class Stage(Setting):
    """One step of a recipe. Its name must be unique in the recipe."""

    name: str


@final
@dataclass(frozen=True)
class Train(Stage):
    """Gradient descent on an objective.

    Attributes:
        objective: the loss to minimise.
        scorer: scores queries against documents. Its weights are trained, too. None for the recipe's scorer.
        name: the stage's name in logs.
        epochs: passes over the data. Ignored if `steps` is given.
        steps: optimiser steps.
        batch: queries per step and process.
        chunk: texts (for a cross-encoder, pairs) encoded at a time with gradients. A batch's vectors are kept
            and its activations are not (gradient cache), so memory does not grow with `batch`. None keeps the
            activations.
        accumulate: batches per step. Queries of different batches do not give each other negatives.
        negatives: sources of negatives, in addition to the other queries' documents.
        mirror: make every query its own document, so that one encoder learns from the other's vectors of the
            same text. The examples' documents, negatives, teacher and cache are not used.
        mask_matches: probability of replacing a document's word-piece by [MASK] if its query contains it, too
            (input-level orthogonality). Applies in training only, to positives and negatives alike, and is
            drawn per position at every step. A document of several queries is encoded once for each.
        hide: "mask" replaces the word-piece (the paper's text). "drop" removes it (its equation 10), so that
            the model does not learn from [MASK].
        sampler: chooses the examples of each batch.
        teacher: scores each query's own documents if the data have no scores.
        cache: the negative cache (DAFT).
        lexical: BM25 vectors of every text, for losses that compare the model with BM25 (RoC, CLEAR).
        lr: highest learning rate of AdamW.
        lr_factors: learning rate multipliers by parameter pattern. The first matching pattern applies.
        weight_decay: AdamW's weight decay. Not applied to biases and layer norms.
        warmup: steps in which the rate rises from 0. Below 1, a share of all steps.
        schedule: how the rate falls after the warm-up.
        clip: largest gradient norm. None for no limit.
        precision: "bf16" runs the backbones under autocast. "auto" does so where it is faster.
        learn: patterns (as for file names) of the parameters to train, such as "query.*" or "scorer.*".
        freeze: patterns of parameters that are not trained. Takes precedence over `learn`.
        alternate: patterns of parameters that are trained in turn, those of the first pattern at the first
            step. Parameters that match none are trained at every step. DAFT's alternating training (section
            4) is ("query.*", "document.*"). Parameters whose turn it is not get no momentum or decay, and
            their modules no dropout.
        stop: rule that ends the stage early.
        evaluate_every: steps between evaluations on the development set. None for once per epoch.
        checkpoint_every: steps between checkpoints. None for one at every evaluation.
        remember: GiB of hidden states to keep of frozen backbones. Each text then passes through them once,
            and heads train many times faster.
        watch: how often to check the vectors, and what to warn about.
        keep: end with the model that evaluated best, or with the last one.
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

    @property
    def losses(self) -> list[Loss]:
        """The terms of the objective."""
        objective = self.objective
        return cast(list[Loss], list(objective.losses)) if isinstance(objective, Objective) else [objective]

    def faults(self) -> Iterator[str]:
        """What the losses need and the stage lacks, and what no loss uses. For models with vectors."""
        for loss in self.losses:
            if "batch" in loss.needs and self.batch < 2:
                yield f"{loss.label} needs other queries in the batch; batch is {self.batch}, use 2 or more"
            # A teacher has no scores of drawn negatives.
            drawn = self.cache is not None and "teacher" not in loss.needs
            if "negatives" in loss.needs and not self.negatives and not drawn:
                yield f"{loss.label} compares a query's own documents; give the stage negatives"
            if "cache" in loss.needs and self.cache is None:
                yield f"{loss.label} draws from a negative cache; give the stage cache=NegativeCache(...)"
            if "lexical" in loss.needs and self.lexical is None:
                yield f"{loss.label} compares the model with BM25; give the stage lexical=BM25Terms()"
        if self.lexical is not None and not any("lexical" in loss.needs for loss in self.losses):
            yield "lexical: no loss of this stage uses it; omit it"
        if self.cache is not None:
            readers = {loss.label: loss.drawn for loss in self.losses if "teacher" not in loss.needs}
            yield from (f"cache: {fault}" for fault in self.cache.faults(readers))

    def __post_init__(self) -> None:
        counts = ("epochs", "steps", "batch", "chunk", "accumulate", "evaluate_every", "checkpoint_every")
        faults = too_low(self, self.name, **dict.fromkeys(counts, 1))
        faults += too_low(self, self.name, lr=0, weight_decay=0, warmup=0, clip=0, remember=0)
        factors = {f"lr_factors[{pattern!r}]": factor for pattern, factor in self.lr_factors.items()}
        faults += no_numbers(self.name, factors) or [
            f"{self.name}: {name} must be at least 0, found {factor}"
            for name, factor in factors.items()
            if factor < 0
        ]
        faults += no_shares(self, self.name, "mask_matches")
        if self.mask_matches and self.cache is not None:
            faults.append(
                f"{self.name}: mask_matches hides words of a document from its own query only, and the cache "
                "keeps one vector of a document for all queries; leave one of them out"
            )
        if len(self.alternate) == 1:
            faults.append(f"{self.name}: alternate needs at least two patterns to take turns, found one")
        given = [name for name in ("negatives", "teacher", "cache", "mask_matches") if getattr(self, name)]
        if self.mirror and given:
            faults.append(
                f"{self.name}: mirror: every query is its own document, so {', '.join(given)} are not used; "
                "leave them out"
            )
        for name in ("hide", "schedule", "precision", "keep"):
            known, found = get_args(hints_of(Train)[name]), getattr(self, name)
            if found not in known:
                faults.append(f"{self.name}: {name} must be one of {', '.join(known)}, found {found!r}")
        if faults:
            raise ConfigError(*faults)


@final
@dataclass(frozen=True)
class Fit(Stage):
    """Fit part of the model to the training documents, with the encoder frozen.

    Stages before a set's first `Fit` bypass the set's maps.

    Attributes:
        on: the vector set.
        what: what to fit. "transforms" and the "tokenwise" maps of a `Mean` head are fitted in order, each to
            the output of the one before. "projection" sets the projection of the set's head to the principal
            directions of its input, a far better start than random weights. "idf" counts the document
            frequency of each id, for every `MaxSim` of the recipe that weights by it.
        name: the stage's name in logs.
        documents: number of documents to encode, drawn at random. None for all.
        queries: also fit maps to the vectors of all training queries.
    """

    on: str
    what: Literal["transforms", "tokenwise", "projection", "idf"] = "transforms"
    name: str = "fit"
    documents: int | None = 10_000
    queries: bool = False


@final
@dataclass(frozen=True)
class Build(Stage):
    """Build an index of the collection with the model, in the folder `index` of the run.

    Attributes:
        name: the stage's name in logs.
        codec: how vectors are stored. None for the model's own choice.
        lexical: also store BM25 postings.
    """

    name: str = "build"
    codec: CodecName | None = None
    lexical: bool = True
