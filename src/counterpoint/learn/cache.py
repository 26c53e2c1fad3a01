"""`NegativeCache`: the settings of DAFT's cache of document vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, final

from counterpoint.config import Setting
from counterpoint.errors import ConfigError
from counterpoint.learn.limits import no_shares, too_low

__all__ = ["NegativeCache"]


@final
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
    renamed: ClassVar[Mapping[str, str]] = {"candidates": "groups"}

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
