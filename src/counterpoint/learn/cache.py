"""`NegativeCache`: DAFT's streaming cache of document vectors, from which hard negatives are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from counterpoint.config import Setting

__all__ = ["NegativeCache"]


@final
@dataclass(frozen=True)
class NegativeCache(Setting):
    """How large the cache is and how it is kept fresh."""

    size: int = 4096
