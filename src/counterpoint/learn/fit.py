"""The `Fit` stage: learns from vectors alone, with the encoder frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import nn

from counterpoint.encode import DualEncoder, Encoder, Head, Linear, Mean, Routed, TokenVectors
from counterpoint.errors import ConfigError
from counterpoint.index.kernels import idf_of
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Fit
from counterpoint.learn.training_run import TrainingRun
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import MaxSim
from counterpoint.transform import Flow, Transform, Whitening
from counterpoint.transform.flow import HELD_OUT, MOST_HELD_OUT
from counterpoint.vectors import Vectors

__all__ = ["FitTexts", "fit", "fit_faults", "linear_of", "rows_of_set", "token_rows", "tokenwise_of"]

PIECE = 512  # texts encoded at a time
NEEDS_MEAN = "needs one encoder for both sides and a head Mean(tokenwise=[...])"
NEEDS_LINEAR = (
    "needs one encoder for both sides and a head with projection=Linear(...) alone, without activation or "
    "residual"
)


@dataclass(frozen=True)
class FitTexts:
    """The texts whose vectors a map is fitted to. Every row has the same weight, whichever side it is from.

    Attributes:
        documents: document texts.
        queries: query texts.
        on_progress: called with the number of texts encoded.
    """

    documents: Sequence[str]
    queries: Sequence[str] = ()
    on_progress: Callable[[int], object] = lambda done: None

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.documents) + len(self.queries)

    def divided(self) -> tuple[FitTexts, FitTexts]:
        """Return the texts to fit to, and a held-out part: 1 in 20 of each side, at most 1000."""
        (documents, other_documents), (queries, other_queries) = map(_apart, (self.documents, self.queries))
        fitted = FitTexts(documents, queries, self.on_progress)
        others = FitTexts(other_documents, other_queries, lambda done: self.on_progress(len(fitted) + done))
        return fitted, others


def _apart(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the kept texts and the held-out texts, each in their order."""
    order = np.random.default_rng(seed_of("held out")).permutation(len(texts))
    held = set(order[: min(len(texts) // HELD_OUT, MOST_HELD_OUT)].tolist())
    sides: tuple[list[str], list[str]] = ([], [])
    for at, text in enumerate(texts):
        sides[at in held].append(text)
    return sides


def fit(run: TrainingRun, stage: Fit, model: Model) -> None:
    """Run the stage.

    Raises:
        ConfigError: the set has no such maps, or its projection cannot be set to principal directions.
    """
    names, data = list(run.job.data.documents), run.job.data
    rng = np.random.default_rng(seed_of(run.job.seed, "fit", stage.name))
    count = len(names) if stage.documents is None else min(stage.documents, len(names))
    documents = [data.documents[names[at]] for at in rng.permutation(len(names))[:count].tolist()]
    if stage.what == "idf":
        return _fit_idf(run, stage, model, documents)
    queries = list(data.queries.values()) if stage.queries else []
    steps, encoder = _steps(stage, model)
    total = count + len(queries)
    run.reporter.stage(stage.name, total * len(steps), 0)
    for place, step in enumerate(steps):
        texts = FitTexts(
            documents, queries, lambda done, first=total * place: run.reporter.step(first + done, {})
        )
        step.fit(rows_of_set(encoder, stage.on, texts, steps[:place], run.accelerator.device))
        if isinstance(step, Flow) and step.bits is not None:
            run.reporter.note(f"{stage.name}: {type(step).__name__} describes rows with {step.bits}")
    if stage.what == "projection":
        _into_projection(cast(Whitening, steps[0]), cast(Linear, linear_of(model.encoder, stage.on)))


def _fit_idf(run: TrainingRun, stage: Fit, model: Model, texts: Sequence[str]) -> None:
    """Give every scorer that weights the set by idf the documents' idf. Special tokens get 0."""
    inside = (part for module in run.modules().values() for part in module.modules())
    scorers = [part for part in inside if isinstance(part, MaxSim) and part.idf and part.on == stage.on]
    if not scorers:
        return run.reporter.note(f"{stage.name}: no scorer weights {stage.on!r} by idf; nothing is counted")
    run.reporter.stage(stage.name, len(texts), 0)
    counts: Counter[int] = Counter()
    for start in range(0, len(texts), PIECE):
        for ids in model.row_ids(texts[start : start + PIECE], stage.on, "document"):
            counts.update(np.unique(ids).tolist())
        run.reporter.step(min(start + PIECE, len(texts)), {})
    special = model.sets[stage.on].special
    words = sorted(counts.keys() | set(special))
    idf = idf_of(np.array([counts[word] for word in words]), len(texts))
    idf[np.isin(words, special)] = 0
    for scorer in scorers:
        unseen = float(idf_of(np.zeros(1), len(texts))[0])
        scorer.set_idf(torch.tensor(words), torch.from_numpy(idf), unseen)


def fit_faults(stage: Fit, model: Model) -> Iterator[str]:
    """Reasons why a stage cannot fit this model, which has the stage's vector set."""
    if stage.what == "transforms" and stage.on not in model.transforms:
        yield f"fits the transforms of {stage.on!r}, and the model has none on that set"
    if stage.what == "tokenwise" and not getattr(tokenwise_of(model.encoder, stage.on), "tokenwise", ()):
        yield f"fits the tokenwise maps of {stage.on!r}, which {NEEDS_MEAN}"
    if stage.what == "projection" and linear_of(model.encoder, stage.on) is None:
        yield f"fits the projection of {stage.on!r}, which {NEEDS_LINEAR}"


def linear_of(encoder: DualEncoder, on: str) -> Linear | None:
    """The projection of a set's head, if it is plain, linear and shared by both sides."""
    projection = getattr(_heads(encoder.query)[on], "projection", None)
    plain = isinstance(projection, Linear) and projection.activation == "none" and not projection.residual
    return projection if plain and encoder.document is None else None


def tokenwise_of(encoder: DualEncoder, on: str) -> Mean | None:
    """The set's `Mean` head, if mean and projection commute, so that tokens can be mapped before the mean."""
    head = _heads(encoder.query)[on]
    if not isinstance(head, Mean) or encoder.document is not None or on in encoder.shared:
        return None
    return head if head.projection is None or linear_of(encoder, on) is not None else None


def _steps(stage: Fit, model: Model) -> tuple[list[Transform], DualEncoder]:
    """Return the maps to fit, in order, and the encoder that makes the rows for the first."""
    if stage.what == "projection":
        linear = linear_of(model.encoder, stage.on)
        if linear is None:
            raise ConfigError(f"{stage.name}: {stage.on!r} {NEEDS_LINEAR}")
        bare = _bare(model.encoder, stage.on)
        found: Transform = Whitening(bare.sets[stage.on], rank=linear.dim, power=0.0, centre=False)
        return [found], bare
    if stage.what == "tokenwise":
        head = tokenwise_of(model.encoder, stage.on)
        if head is None or not head.tokenwise:
            raise ConfigError(f"{stage.name}: {stage.on!r} {NEEDS_MEAN}")
        return [cast(Transform, step) for step in head.tokenwise], token_rows(model.encoder, stage.on)
    if stage.on not in model.transforms:
        known = ", ".join(model.transforms) or "none"
        raise ConfigError(
            f"{stage.name}: the model has no transform on {stage.on!r}; it has them on: {known}"
        )
    return [cast(Transform, s) for s in cast(nn.ModuleList, model.transforms[stage.on])], model.encoder


@torch.no_grad()
def _into_projection(found: Whitening, linear: Linear) -> None:
    """Set the projection's weights to the principal directions of its input.

    Among all linear maps to this many components, the leading eigenvectors of the second moment preserve the
    rows' inner products best. The moment is not centred, because scores are inner products.
    """
    linear.linear_.weight.copy_(found.matrix_.T)
    if linear.bias:
        linear.linear_.bias.zero_()


def _bare(encoder: DualEncoder, on: str) -> DualEncoder:
    """An encoder of the rows that a set's projection reads. For a routed set, each token's state once."""
    if isinstance(_heads(encoder.query)[on], Routed):
        return _alone(encoder.query, on, TokenVectors())
    said = _heads(encoder.query)[on].to_dict()
    head = Part.from_dict({name: said[name] for name in said.keys() - {"projection", "normalise"}})
    return _alone(encoder.query, on, cast(Head, head))


def token_rows(encoder: DualEncoder, on: str) -> DualEncoder:
    """An encoder of the token rows that a `Mean` head averages."""
    return _alone(encoder.query, on, TokenVectors(projection=_heads(encoder.query)[on].projection))


def _alone(encoder: Encoder, on: str, head: Head) -> DualEncoder:
    return DualEncoder(Encoder(encoder.backbone_of(on), {on: head}, encoder.query, encoder.document))


def _heads(encoder: Encoder) -> dict[str, Head]:
    return {name: cast(Head, head) for name, head in encoder.heads.items()}


@torch.no_grad()
def rows_of_set(
    encoder: DualEncoder, on: str, texts: FitTexts, before: Sequence[Transform], device: torch.device
) -> Iterator[torch.Tensor]:
    """Yield the rows of a set for many texts, after the maps in `before`, batch by batch."""
    done = 0
    for encode, some in ((encoder.encode_document, texts.documents), (encoder.encode_query, texts.queries)):
        for start in range(0, len(some), PIECE):
            part = some[start : start + PIECE]
            rows = torch.from_numpy(encode(part)[on].values).unsqueeze(0).to(device)
            vectors = Vectors(rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device))
            for step in before:
                vectors = step(vectors)
            done += len(part)
            texts.on_progress(done)
            yield vectors.values[0].cpu()
