"""Negatives that were drawn from a cache, and how they join a batch."""

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
    """Negatives of a step.

    Attributes:
        documents: for each query the ids drawn, best perturbed score first; fewer than `draws` only where all
            other candidates are ruled out.
        scores: of every candidate, not scaled, −∞ where a group has none; what `Targets.cached` wants.
    """

    documents: list[list[str]]
    scores: Float[Tensor, "q k"]


def join_drawn(batch: Batch, drawn: Drawn, data: TrainingSet) -> Batch:
    """The batch with each query's drawn negatives directly behind its positive, and the cached scores."""
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
            candidates=torch.cat([targets.candidates, extra], 1),
            teacher=teacher,
            cached=drawn.scores,
        ),
    )
