"""`Batch`: the texts and targets of one step, and `Sampler`: which examples a batch holds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.config import Setting
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.step import Targets

__all__ = [
    "Batch",
    "Draw",
    "Drawn",
    "RandomBatches",
    "Sampler",
    "join_drawn",
    "make_batch",
    "mirrored",
    "one_owner_each",
    "own_pairs",
    "own_places",
]


@dataclass(frozen=True)
class Batch:
    """The texts and targets of one step, not encoded yet.

    Every document occurs once, unless `one_owner_each` has copied it.

    Attributes:
        query_ids: ids in the training set.
        queries: texts.
        document_ids: ids in the training set.
        documents: texts.
        targets: refer to positions in `queries` and `documents`.
    """

    query_ids: tuple[str, ...]
    queries: tuple[str, ...]
    document_ids: tuple[str, ...]
    documents: tuple[str, ...]
    targets: Targets


class Draw(Protocol):
    """Draws negatives for one example: distinct document ids, none relevant. Made by a `Negatives`."""

    def __call__(self, example: int, rng: np.random.Generator, /) -> Sequence[str]:
        """Draw for the example at position `example`."""
        ...


class Sampler(Setting, ABC):
    """The order of the examples. It depends on seed and epoch alone, so that a run can be resumed."""

    @abstractmethod
    def batches(self, data: TrainingSet, size: int, epoch: int, seed: int) -> Iterator[list[int]]:
        """Positions of examples in batches, for one epoch. A last batch smaller than `size` is dropped."""


@final
@dataclass(frozen=True)
class RandomBatches(Sampler):
    """Examples in random order."""

    def batches(self, data: TrainingSet, size: int, epoch: int, seed: int) -> Iterator[list[int]]:
        """A new order every epoch."""
        order = np.random.default_rng(seed_of(seed, "order", epoch)).permutation(len(data)).tolist()
        for start in range(0, len(order) - size + 1, size):
            yield order[start : start + size]


def make_batch(
    data: TrainingSet, positions: Sequence[int], draws: Sequence[Draw], rng: np.random.Generator
) -> Batch:
    """Draw a positive and negatives for every example, and join them into one batch.

    Args:
        data: the training set.
        positions: of the examples, at least one.
        draws: sources of negatives. Their draws are joined, each document once.
        rng: source of all draws.

    Returns:
        A batch. `own` of its targets holds each query's positive and the negatives drawn for it. `allowed`
        is False for every other document known to be relevant. `teacher` is None if no document has a score.
    """
    examples = [data.examples[at] for at in positions]
    columns: dict[str, int] = {}
    own: list[list[int]] = []
    teacher: list[list[float]] = []
    for at, example in zip(positions, examples, strict=True):
        positive = example.positives[int(rng.integers(len(example.positives)))]
        drawn = dict.fromkeys([positive, *(document for draw in draws for document in draw(at, rng))])
        own.append([columns.setdefault(document, len(columns)) for document in drawn])
        teacher.append([float(example.scores.get(document, math.nan)) for document in drawn])
    relevant = [data.relevant_to(example) for example in examples]
    allowed = [
        [document not in known or column == columns_of[0] for document, column in columns.items()]
        for known, columns_of in zip(relevant, own, strict=True)
    ]
    scored = any(score == score for row in teacher for score in row)
    return Batch(
        query_ids=tuple(example.query for example in examples),
        queries=tuple(data.queries[example.query] for example in examples),
        document_ids=tuple(columns),
        documents=tuple(data.documents[document] for document in columns),
        targets=Targets(
            own=_table(own, -1),
            allowed=torch.tensor(allowed),
            teacher=_table(teacher, math.nan) if scored else None,
        ),
    )


def own_places(targets: Targets) -> list[tuple[int, int]]:
    """Rows and columns of each query with each of its own documents, query by query."""
    return [(row, column) for row, own in enumerate(targets.own.tolist()) for column in own if column >= 0]


def own_pairs(batch: Batch) -> tuple[list[str], list[str]]:
    """The texts of `own_places`: a list of queries and a list of documents."""
    places = own_places(batch.targets)
    return [batch.queries[row] for row, _ in places], [batch.documents[column] for _, column in places]


def one_owner_each(batch: Batch) -> tuple[Batch, list[int]]:
    """Copy shared documents so that each belongs to one query. Returns the batch and each document's query.

    A query still sees every document once: its own copy or, of another query's document, the first copy.
    """
    own = torch.full_like(batch.targets.own, -1)
    copies: dict[int, list[int]] = {}  # old column -> its new columns
    sources: list[int] = []
    owners: list[int] = []
    for row, columns in enumerate(batch.targets.own.tolist()):
        for at, column in enumerate(columns):
            if column >= 0:
                own[row, at] = len(sources)
                copies.setdefault(column, []).append(len(sources))
                sources.append(column)
                owners.append(row)
    allowed = batch.targets.allowed[:, sources]
    mine = torch.tensor(owners) == torch.arange(len(own))[:, None]
    for held in copies.values():
        shown = mine[:, held]
        shown[:, 0] |= ~shown.any(1)
        allowed[:, held] &= shown
    copied = replace(
        batch,
        document_ids=tuple(batch.document_ids[at] for at in sources),
        documents=tuple(batch.documents[at] for at in sources),
        targets=replace(batch.targets, own=own, allowed=allowed),
    )
    return copied, owners


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
    added = _table(place, -1).to(targets.own)
    own = torch.cat([targets.own[:, :1], added, targets.own[:, 1:]], 1)
    new = list(columns)[len(batch.document_ids) :]
    relevant = [data.relevant.get(query, frozenset()) for query in batch.query_ids]
    allowed = [[document not in known for document in new] for known in relevant]
    extra = torch.tensor(allowed, dtype=torch.bool, device=own.device).view(len(relevant), len(new))
    teacher = targets.teacher
    if teacher is not None:
        unknown = teacher.new_full(added.shape, math.nan)
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


def mirrored(batch: Batch) -> Batch:
    """Make each query its own document, so that both sides encode the same text.

    Queries with equal texts share a document, so that they are not negatives of each other.
    """
    columns: dict[str, int] = {}
    own = [columns.setdefault(text, len(columns)) for text in batch.queries]
    first = {
        text: query for query, text in zip(reversed(batch.query_ids), reversed(batch.queries), strict=True)
    }
    return Batch(
        query_ids=batch.query_ids,
        queries=batch.queries,
        document_ids=tuple(first[text] for text in columns),
        documents=tuple(columns),
        targets=Targets(torch.tensor(own)[:, None], torch.ones(len(own), len(columns), dtype=torch.bool)),
    )


def _table(rows: Sequence[Sequence[float]], fill: float) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([[*row, *[fill] * (width - len(row))] for row in rows])
