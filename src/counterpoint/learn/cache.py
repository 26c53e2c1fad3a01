"""`NegativeCache`: DAFT's cache of document vectors as a recipe declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from counterpoint.config import Setting
from counterpoint.errors import ConfigError

__all__ = ["NegativeCache"]


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

    needs_vectors: ClassVar[bool] = True

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
