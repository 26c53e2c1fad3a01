"""A `Fit` stage: what is learnt from documents in closed form, with the encoder frozen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import nn

from counterpoint.encode import DualEncoder, Encoder, Head, Linear
from counterpoint.errors import ConfigError
from counterpoint.index.kernels import idf_of
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Fit
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.score import MaxSim
from counterpoint.transform import Transform, Whitening
from counterpoint.vectors import Vectors

if TYPE_CHECKING:
    from counterpoint.learn.trainer import Run

__all__ = ["fit", "linear_of"]

PIECE = 512  # documents encoded at a time


def fit(run: Run, stage: Fit, model: Model) -> None:
    """Carry out the stage.

    Raises:
        ConfigError: the set has no transform, or no projection that principal directions could be put into,
            or no scorer weighs it by idf.
    """
    names, data = list(run.job.data.documents), run.job.data
    rng = np.random.default_rng(seed_of(run.job.seed, "fit", stage.name))
    count = len(names) if stage.documents is None else min(stage.documents, len(names))
    texts = [data.documents[names[at]] for at in rng.permutation(len(names))[:count].tolist()]
    if stage.what == "projection":
        return _fit_projection(run, stage, model, texts)
    if stage.what == "idf":
        return _fit_idf(run, stage, model, texts)
    if stage.on not in model.transforms:
        known = ", ".join(model.transforms) or "none"
        raise ConfigError(
            f"{stage.name}: the model has no transform on {stage.on!r}; it has them on: {known}"
        )
    steps = [cast(Transform, step) for step in cast(nn.ModuleList, model.transforms[stage.on])]
    run.reporter.stage(stage.name, len(texts) * len(steps), 0)
    for place, step in enumerate(steps):
        step.fit(_rows(run, model.encoder, texts, steps[:place], stage.on))


@torch.no_grad()
def _fit_projection(run: Run, stage: Fit, model: Model, texts: Sequence[str]) -> None:
    """Put the principal directions of what the projection is fed into it.

    Of all linear maps to so few components, the leading eigenvectors of the second moment (not centred,
    since scores are inner products) keep the rows' inner products best.
    """
    linear = linear_of(model.encoder, stage.on)
    if linear is None:
        raise ConfigError(
            f"{stage.name}: {stage.on!r} needs one encoder for both sides and a head with "
            "projection=Linear(...) alone, without activation or residual"
        )
    encoder = model.encoder.query
    said = _heads(encoder)[stage.on].to_dict()
    head = Part.from_dict({name: said[name] for name in said.keys() - {"projection", "normalise"}})
    heads = {stage.on: cast(Head, head)}
    bare = DualEncoder(Encoder(encoder.backbone, heads, encoder.query, encoder.document))
    dim, rank = bare.sets[stage.on], linear.dim
    run.reporter.stage(stage.name, len(texts), 0)
    found = Whitening(dim, rank=rank, power=0.0, centre=False).fit(_rows(run, bare, texts, (), stage.on))
    linear.linear_.weight.copy_(found.matrix_.T)
    if linear.bias:
        linear.linear_.bias.zero_()


def _fit_idf(run: Run, stage: Fit, model: Model, texts: Sequence[str]) -> None:
    """Give every scorer that weighs the set by idf that of the documents; special tokens have none."""
    inside = (part for module in run.modules().values() for part in module.modules())
    scorers = [part for part in inside if isinstance(part, MaxSim) and part.idf and part.on == stage.on]
    if not scorers:
        raise ConfigError(f"{stage.name}: no scorer weighs {stage.on!r} by idf; leave the stage out")
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


def linear_of(encoder: DualEncoder, on: str) -> Linear | None:
    """The projection of a set's head, if it is a plain linear one that both sides share."""
    projection = getattr(_heads(encoder.query)[on], "projection", None)
    plain = isinstance(projection, Linear) and projection.activation == "none" and not projection.residual
    return projection if plain and encoder.document is None else None


def _heads(encoder: Encoder) -> dict[str, Head]:
    return {name: cast(Head, head) for name, head in encoder.heads.items()}


@torch.no_grad()
def _rows(
    run: Run, encoder: DualEncoder, texts: Sequence[str], before: Sequence[Transform], on: str
) -> Iterator[torch.Tensor]:
    """The rows of a set for many texts, behind some of its transforms, piece by piece."""
    for start in range(0, len(texts), PIECE):
        packed = encoder.encode_document(texts[start : start + PIECE])[on]
        rows = torch.from_numpy(packed.values).unsqueeze(0).to(run.accelerator.device)
        vectors = Vectors(rows, torch.ones(rows.shape[:2], dtype=torch.bool, device=rows.device))
        for step in before:
            vectors = step(vectors)
        run.reporter.step(len(before) * len(texts) + min(start + PIECE, len(texts)), {})
        yield vectors.values[0].cpu()
