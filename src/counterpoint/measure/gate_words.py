"""Words that a gate drops: a model's learnt stop words (ColBERTer, sections 3.3 and 5.2)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float, Int

__all__ = ["GateWord", "gate_words"]


@dataclass(frozen=True)
class GateWord:
    """What a gate does to one word, over all its rows in some texts.

    Attributes:
        word: most frequent spelling, in lower case; rows with one id are one word.
        rows: number of its rows.
        mean: mean of the gate's values r, dropped rows included.
        dropped: share of its rows that the gate drops.
    """

    word: str
    rows: int
    mean: float
    dropped: float

    def to_dict(self) -> dict[str, str | int | float]:
        """All values by name."""
        return asdict(self)


def gate_words(
    texts: Iterable[tuple[Sequence[str], Int[np.ndarray, " n"], Float[np.ndarray, " n"]]],
    threshold: float,
    least: int = 1,
) -> list[GateWord]:
    """The words of texts, most often dropped first; ties by falling number of rows, then by name.

    Args:
        texts: for each text the spans, ids and gate values of its rows.
        threshold: rows with a value at or below it are dropped.
        least: leave out words with fewer rows.
    """
    values: dict[int, list[float]] = defaultdict(list)
    written: dict[int, Counter[str]] = defaultdict(Counter)
    for pieces, ids, weights in texts:
        for piece, number, weight in zip(pieces, ids.tolist(), weights.tolist(), strict=True):
            values[number].append(weight)
            written[number][piece.lower()] += 1
    words = [
        GateWord(
            word=min(written[number], key=lambda form: (-written[number][form], form)),
            rows=len(found),
            mean=sum(found) / len(found),
            dropped=sum(value <= threshold for value in found) / len(found),
        )
        for number, found in values.items()
        if len(found) >= least
    ]
    return sorted(words, key=lambda word: (-word.dropped, -word.rows, word.word))
