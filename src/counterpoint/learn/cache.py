"""`NegativeCache`: DAFT's cache of document vectors as a recipe declares it, and its negatives in a batch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import torch

from counterpoint.config import Setting
from counterpoint.errors import ConfigError
from counterpoint.index import VectorSet
from counterpoint.learn.batches import Batch
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.running_cache import Drawn, RunningCache

__all__ = ["NegativeCache", "join_drawn"]


@final
@dataclass(frozen=True)
class NegativeCache(Setting):
    """How large the cache is, how negatives are drawn from it, and how it is kept fresh.

    Every step scores all cached vectors, splits the cache into groups, takes each group's best document as a
    candidate (DAFT's |D⁻| = 64), and draws negatives among the candidates with the probabilities of a softmax
    over their scores (Lindgren et al. 2021, "Efficient training of retrieval models using negative cache").

    Args:
        size: documents it holds, a multiple of `candidates`. DAFT's holds 512,000.
        candidates: groups, each giving one candidate.
        draws: negatives drawn for a query, all different.
        scale: what scores are multiplied by before the softmax; as in `CachedContrastive`.
        refresh: share of the cache, the oldest first, that is renewed after a step (DAFT's ρ). At 0 only
            the documents of a step are, as in the code that DAFT follows.
        replace: renewed entries become other documents of the corpus; else their own are encoded again.
        on: the vector set, which has one vector a text; may be left out where the model makes one only.
    """

    size: int = 4096
    candidates: int = 64
    draws: int = 1
    scale: float = 1.0
    refresh: float = 0.0
    replace: bool = False
    on: str | None = None

    def __post_init__(self) -> None:
        faults = [
            f"NegativeCache: {name} must be at least 1, found {getattr(self, name)}"
            for name in ("size", "candidates", "draws")
            if getattr(self, name) < 1
        ]
        if not faults and self.size % self.candidates:
            faults.append(
                f"NegativeCache: size ({self.size}) must be a multiple of candidates ({self.candidates})"
            )
        if self.draws > self.candidates:
            faults.append(f"NegativeCache: {self.draws} draws from {self.candidates} candidates")
        if self.scale <= 0:
            faults.append(f"NegativeCache: scale must be above 0, found {self.scale}")
        if not 0 <= self.refresh <= 1:
            faults.append(f"NegativeCache: refresh is a share between 0 and 1, found {self.refresh}")
        if faults:
            raise ConfigError(*faults)

    def memory(self, dim: int) -> int:
        """Bytes that the vectors take."""
        return 4 * self.size * dim

    def start(
        self,
        sets: Mapping[str, VectorSet],
        documents: Sequence[str],
        seed: int,
        device: torch.device | str = "cpu",
    ) -> RunningCache:
        """An empty cache; fill it before the first step.

        Args:
            sets: those of the model.
            documents: ids of the corpus, in an order that is the same in every run.
            seed: of the run, the same on every process, since all must draw alike.
            device: where the vectors are kept and scored.

        Raises:
            ConfigError: it is not clear which set is meant, or it has many vectors a text.
        """
        name = next(iter(sets)) if self.on is None and len(sets) == 1 else self.on
        if name is None or name not in sets:
            raise ConfigError(f"NegativeCache: the model makes the sets {', '.join(sets)}; on={self.on!r}")
        if not sets[name].pooled:
            raise ConfigError(f"NegativeCache: {name!r} has many vectors a text; the cache keeps one of each")
        return RunningCache(replace(self, on=name), sets[name].dim, documents, seed, device)


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
