"""Negatives drawn from a cache, and how they are added to a batch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.learn.batches import Batch
from counterpoint.learn.examples import TrainingSet

__all__ = ["Drawn", "join_drawn"]


@dataclass(frozen=True)
class Drawn:
    """The negatives of a step that were drawn from the cache.

    Attributes:
        documents: the ids drawn for each query, best perturbed score first. Fewer than `draws` only if all
            other documents are excluded.
        scores: of every candidate, not scaled, −∞ where a group has none. Used for `Targets.cached`.
    """

    documents: list[list[str]]
    scores: Float[Tensor, "q k"]


def join_drawn(batch: Batch, drawn: Drawn, data: TrainingSet) -> Batch:
    """Insert each query's drawn negatives directly after its positive, and add the cached scores."""
    targets = batch.targets
    columns = {document: column for column, document in enumerate(batch.document_ids)}
    place = [[columns.setdefault(document, len(columns)) for document in ids] for ids in drawn.documents]
    width = max(map(len, place))
    added = torch.tensor([[*row, *[-1] * (width - len(row))] for row in place], dtype=torch.int64)
    own = torch.cat([targets.own[:, :1], added.to(targets.own), targets.own[:, 1:]], 1)
    new = list(columns)[len(batch.document_ids) :]
    relevant = [data.relevant.get(query, frozenset()) for query in batch.query_ids]
    allowed = [[document not in known for document in new] for known in relevant]
    extra = torch.tensor(allowed, dtype=torch.bool, device=own.device).view(len(relevant), len(new))
    teacher = targets.teacher
    if teacher is not None:
        unknown = teacher.new_full((len(teacher), width), math.nan)
        teacher = torch.cat([teacher[:, :1], unknown, teacher[:, 1:]], 1)
    return replace(
        batch,
        document_ids=tuple(columns),
        documents=(*batch.documents, *(data.documents[document] for document in new)),
        targets=replace(
            targets,
            own=own,
            allowed=torch.cat([targets.allowed, extra], 1),
            teacher=teacher,
            cached=drawn.scores,
        ),
    )
