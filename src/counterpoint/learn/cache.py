"""DAFT's cache of document vectors: its settings, and the cache of a stage with its refresh and its draws."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, final

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from counterpoint.config import Setting, renames
from counterpoint.errors import ArtifactError, ConfigError, DataError, ShapeError
from counterpoint.index import VectorSet
from counterpoint.learn.batches import Drawn
from counterpoint.learn.limits import no_shares, too_low
from counterpoint.learn.seeds import seed_of
from counterpoint.vectors import Representation, Vectors

__all__ = ["NegativeCache", "RunningCache"]

Encode = Callable[[Sequence[str]], Float[Tensor, "n d"]]
"""Encodes documents by id into one vector each. Called in evaluation mode, without gradients."""

Score = Callable[[Representation], Float[Tensor, "q b"]]
"""Scores of the step's queries against a block of documents."""

BLOCK = 1 << 16  # vectors scored at a time
FILL = 1024  # documents encoded at a time when the cache is filled


@final
@renames(candidates="groups")
@dataclass(frozen=True)
class NegativeCache(Setting):
    """The size of the cache, how negatives are drawn from it, and how it is refreshed.

    Every step scores all cached vectors, splits the cache into groups, and takes each group's best document
    (DAFT has |D⁻| = 64 groups). It draws negatives among these with the softmax of their
    scores as probabilities (Lindgren et al. 2021, "Efficient training of retrieval models using negative
    cache").

    Args:
        size: number of cached documents, a multiple of `groups`. DAFT uses 512,000.
        groups: number of groups. Each gives its best document.
        draws: distinct negatives drawn per query.
        scale: factor of the scores before the softmax, as in `CachedContrastive`.
        refresh: share of the cache that is refreshed after a step, the oldest entries first (DAFT's ρ). At 0
            only the documents of the step are, as in the code that DAFT follows.
        replace: whether refreshed entries become other documents of the corpus. False encodes their own
            again.
        on: the vector set, with one vector per text. May be omitted if the model makes only one.
    """

    needs_vectors: ClassVar[bool] = True

    size: int = 4096
    groups: int = 64
    draws: int = 1
    scale: float = 1.0
    refresh: float = 0.0
    replace: bool = False
    on: str | None = None

    def __post_init__(self) -> None:
        faults = too_low(self, "NegativeCache", size=1, groups=1, draws=1)
        if not faults and self.size % self.groups:
            faults.append(f"NegativeCache: size ({self.size}) must be a multiple of groups ({self.groups})")
        if self.draws > self.groups:
            faults.append(f"NegativeCache: {self.draws} draws from {self.groups} groups")
        if self.scale <= 0:
            faults.append(f"NegativeCache: scale must be above 0, found {self.scale}")
        faults += no_shares(self, "NegativeCache", "refresh")
        if faults:
            raise ConfigError(*faults)

    def memory(self, dim: int) -> int:
        """Bytes of memory for the vectors."""
        return 4 * self.size * dim

    def faults(self, readers: Mapping[str, int | None]) -> Iterator[str]:
        """Reasons why a stage should not have this cache.

        Args:
            readers: by loss that uses cached negatives, how many it reads per query. None for all.
        """
        if not readers:
            yield "no loss of this stage uses it; omit it"
            return
        known = {name: count for name, count in readers.items() if count is not None}
        most = max(known.values(), default=0)
        if len(known) == len(readers) and self.draws > most:
            yield f"draws is {self.draws}, and {', '.join(known)} reads {most} per query; use {most}"


@final
class RunningCache:
    """The negative cache of one stage. It starts empty and must be filled before the first step.

    Each document occurs at most once. An entry without a vector (not filled yet, or encoded as zeros) is
    never drawn.

    Args:
        settings: the cache's settings.
        sets: the model's vector sets.
        documents: ids of the corpus, in the same order in every run.
        seed: the run's seed, the same on every process, because all must draw alike.
        device: where the vectors are kept and scored.

    Raises:
        ConfigError: the vector set is unknown or ambiguous, or it has several vectors per text.
    """

    def __init__(
        self,
        settings: NegativeCache,
        sets: Mapping[str, VectorSet],
        documents: Sequence[str],
        seed: int,
        device: torch.device | str = "cpu",
    ):
        name = next(iter(sets)) if settings.on is None and len(sets) == 1 else settings.on
        if name is None or name not in sets:
            raise ConfigError(
                f"NegativeCache: the model makes the sets {', '.join(sets)}; on={settings.on!r}"
            )
        if not sets[name].pooled:
            raise ConfigError(f"NegativeCache: {name!r} has several vectors per text; the cache keeps one")
        self.settings, dim = replace(settings, on=name), sets[name].dim
        self.vectors = torch.zeros(settings.size, dim, device=device)
        self._usable = torch.zeros(settings.size, dtype=torch.bool, device=device)
        self._slots: OrderedDict[str, int] = OrderedDict()  # document id -> slot, the oldest first
        self._documents: list[str] = []  # by slot
        self._seed = seed
        self._stream = _Stream(documents, seed)

    def __len__(self) -> int:
        """Number of cached documents."""
        return len(self._slots)

    def fill(self, encode: Encode, on_progress: Callable[[int], None] = lambda held: None) -> None:
        """Fill free entries with documents of the corpus in random order, as far as there are any."""
        while ids := self._stream.take(min(FILL, self.settings.size - len(self)), self._slots):
            self.write_back(ids, encode(ids))
            on_progress(len(self))

    @torch.no_grad()
    def draw(self, score: Score, excluded: Sequence[Collection[str]], step: int) -> Drawn:
        """Draw negatives with the Gumbel-max trick: take the largest of scale · score + Gumbel noise.

        Args:
            score: scores the step's queries against some of the cached vectors.
            excluded: documents that each query must not get: those known to be relevant, and those that the
                query already has.
            step: number of the step in its stage. It seeds the noise.

        Raises:
            DataError: a score is not a number.
            ShapeError: scores whose shape is not queries × documents.
        """
        scores, slots = self._best_of_groups(score, excluded)
        if scores.isnan().any():
            raise DataError("the negative cache: a score is not a number; has the training diverged?")
        generator = torch.Generator().manual_seed(seed_of(self._seed, "negative cache", step))
        noise = -torch.empty(scores.shape, dtype=torch.float64).exponential_(generator=generator).log()
        perturbed, chosen = (self.settings.scale * scores.double().cpu() + noise).topk(self.settings.draws)
        found = slots.cpu().gather(1, chosen)
        documents = [
            [self._documents[slot] for slot, value in zip(*row, strict=True) if value > -math.inf]
            for row in zip(found.tolist(), perturbed.tolist(), strict=True)
        ]
        return Drawn(documents, scores)

    def write_back(self, ids: Sequence[str], vectors: Float[Tensor, "n d"]) -> None:
        """Store new vectors. Cached documents are updated in place, others replace the oldest entries.

        Raises:
            ConfigError: more documents than the cache holds.
            DataError: a vector is not finite.
            ShapeError: the number of vectors or their dimension does not fit.
        """
        vectors = vectors.detach().to(self.vectors)
        if vectors.shape != (len(ids), self.vectors.shape[1]):
            raise ShapeError(
                f"the negative cache: {len(ids)} documents with vectors of {tuple(vectors.shape)}; "
                f"expected {self.vectors.shape[1]} components each"
            )
        rows = {document: row for row, document in enumerate(ids)}
        if len(rows) > self.settings.size:
            raise ConfigError(
                f"NegativeCache: size {self.settings.size} is below the {len(rows)} documents of a step"
            )
        if not vectors.isfinite().all():
            raise DataError("the negative cache: a vector is not finite; has the training diverged?")
        slots = torch.tensor([self._slot_for(document) for document in rows], device=self.vectors.device)
        self.vectors[slots] = vectors[list(rows.values())]
        self._usable[slots] = self.vectors[slots].any(1)

    def refresh(self, encode: Encode) -> None:
        """Refresh the ⌈`refresh` · cached documents⌉ oldest entries."""
        count = math.ceil(round(self.settings.refresh * len(self), 9))
        ids = self._stream.take(count, self._slots) if self.settings.replace else []
        # New documents replace the oldest entries, so the entries to encode again come after those.
        ids += islice(self._slots, len(ids), count)
        if ids:
            self.write_back(ids, encode(ids))

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The cache's part of a checkpoint: tensors, and JSON values."""
        return {"vectors": self.vectors}, {"held": list(self._slots.items()), "stream": self._stream.place}

    def restore(self, tensors: Mapping[str, Tensor], numbers: Mapping[str, Any]) -> None:
        """Continue from the result of `state`.

        Raises:
            ArtifactError: it is the state of a cache with other settings.
        """
        vectors, held = tensors["vectors"], numbers["held"]
        if vectors.shape != self.vectors.shape:
            raise ArtifactError(
                f"the checkpoint's negative cache has the shape {tuple(vectors.shape)}, this run's "
                f"{tuple(self.vectors.shape)}; the settings have changed"
            )
        self.vectors.copy_(vectors)
        self._usable.copy_(self.vectors.any(1))
        self._slots = OrderedDict((document, slot) for document, slot in held)
        self._documents = [document for document, _ in sorted(held, key=lambda entry: entry[1])]
        self._stream.place = tuple(numbers["stream"])

    def _best_of_groups(
        self, score: Score, excluded: Sequence[Collection[str]]
    ) -> tuple[Float[Tensor, "q k"], Int[Tensor, "q k"]]:
        """The score and the slot of each group's best document."""
        groups, on = self.settings.groups, str(self.settings.on)
        width = self.settings.size // groups
        banned = [
            (query, self._slots[document])
            for query, ids in enumerate(excluded)
            for document in ids
            if document in self._slots
        ]
        ruled_out = torch.tensor(banned, dtype=torch.int64, device=self.vectors.device).view(-1, 2)
        found = []
        block = max(1, BLOCK // width) * width
        for start in range(0, self.settings.size, block):
            usable = self._usable[start : start + block]
            mine = Vectors(self.vectors[start : start + block, None], usable[:, None])
            scores = score({on: mine}).float()
            if scores.shape != (len(excluded), len(usable)):
                raise ShapeError(
                    f"the negative cache: expected scores of {len(excluded)} queries and {len(usable)} "
                    f"documents, found {tuple(scores.shape)}"
                )
            scores = scores.masked_fill(~usable, -math.inf)
            here = ruled_out[(ruled_out[:, 1] >= start) & (ruled_out[:, 1] < start + len(usable))]
            scores[here[:, 0], here[:, 1] - start] = -math.inf
            values, at = scores.unflatten(1, (-1, width)).max(2)
            first = start + width * torch.arange(at.shape[1], device=at.device)
            found.append((values, at + first))
        return torch.cat([values for values, _ in found], 1), torch.cat([at for _, at in found], 1)

    def _slot_for(self, document: str) -> int:
        """The slot for a document, which becomes the newest: its own slot, a free one, or the oldest's."""
        slot = self._slots.pop(document, None)
        if slot is None and len(self._documents) < self.settings.size:
            slot = len(self._documents)
            self._documents.append(document)
        elif slot is None:
            _, slot = self._slots.popitem(last=False)
            self._documents[slot] = document
        self._slots[document] = slot
        return slot


class _Stream:
    """Cycles through the corpus, in a new random order each time. `place` is the current position."""

    def __init__(self, documents: Sequence[str], seed: int):
        self._documents, self._seed = documents, seed
        self.place: tuple[int, int] = (0, 0)  # pass over the corpus, position in it
        self._order: tuple[int, np.ndarray] | None = None

    def take(self, count: int, held: Collection[str]) -> list[str]:
        """The next `count` documents that are not cached, or as many as there are."""
        taken: dict[str, None] = {}
        count = min(count, len(self._documents) - len(held))
        turn, at = self.place
        while len(taken) < count:
            if at == len(self._documents):
                turn, at = turn + 1, 0
            document = self._documents[int(self._permutation(turn)[at])]
            at += 1
            if document not in held:
                taken[document] = None
        self.place = (turn, at)
        return list(taken)

    def _permutation(self, turn: int) -> np.ndarray:
        if self._order is None or self._order[0] != turn:
            rng = np.random.default_rng(seed_of(self._seed, "negative cache", "stream", turn))
            self._order = turn, rng.permutation(len(self._documents))
        return self._order[1]
