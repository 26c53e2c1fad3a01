"""Random texts as sets of rows, and their vectors."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import torch

from counterpoint.vectors import Vectors

__all__ = ["DIM", "Text", "representation", "some_texts", "vectors"]

DIM = 3
Text = Sequence[tuple[Sequence[int], int]]
"""A text's rows with their ids. Products and sums of small whole numbers are exact in any order."""


def some_texts(random: Random, most: int = 3) -> list[list[tuple[list[int], int]]]:
    """One to `most` texts of up to four rows, some of them empty."""

    def row() -> tuple[list[int], int]:
        return [random.randint(-3, 3) for _ in range(DIM)], random.randint(1, 4)

    return [[row() for _ in range(random.randint(0, 4))] for _ in range(random.randint(1, most))]


def vectors(
    texts: Sequence[Text],
    *,
    extra: int = 0,
    filler: float = float("nan"),
    dtype: torch.dtype = torch.float32,
    holes: bool = False,
) -> Vectors:
    """Padded vectors of a batch.

    Args:
        texts: their rows.
        extra: number of padding positions after the longest text.
        filler: the value at padded positions.
        dtype: of the values.
        holes: put padding between the real rows.
    """
    step = 2 if holes else 1
    width = max([len(text) for text in texts], default=0) * step + extra
    values = torch.full((len(texts), width, DIM), filler, dtype=dtype)
    mask = torch.zeros(len(texts), width, dtype=torch.bool)
    ids = torch.zeros(len(texts), width, dtype=torch.int64)
    for i, text in enumerate(texts):
        for j, (row, id_) in enumerate(text):
            values[i, j * step] = torch.tensor(row, dtype=dtype)
            mask[i, j * step] = True
            ids[i, j * step] = id_
    return Vectors(values, mask, ids)


def representation(
    texts: Sequence[Text], *, extra: int = 0, filler: float = float("nan"), holes: bool = False
) -> dict[str, Vectors]:
    """Both kinds of set: `words`, and `cls`, whose pooled vector is a text's first row."""
    first = vectors([text[:1] for text in texts])
    if not first.mask.shape[1]:
        first = Vectors(torch.zeros(len(texts), 1, DIM), torch.zeros(len(texts), 1, dtype=torch.bool))
    return {"cls": first, "words": vectors(texts, extra=extra, filler=filler, holes=holes)}
