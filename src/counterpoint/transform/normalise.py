"""`Normalise`: rows of length 1."""

from __future__ import annotations

from typing import Self, final

import torch
from torch.nn import functional

from counterpoint.transform.transform import Rows, Transform
from counterpoint.vectors import Vectors

__all__ = ["Normalise"]


@final
class Normalise(Transform):
    """Divides every row by its Euclidean length. A zero row stays zero."""

    def __init__(self):  # needed because a part's signature is its settings, and torch's accepts anything
        super().__init__()

    def fit(self, rows: Rows) -> Self:
        """Do nothing. `rows` is not read."""
        return self

    def forward(self, vectors: Vectors) -> Vectors:
        """Unit rows, in the input's type."""
        values = vectors.values.masked_fill(~vectors.mask[:, :, None], 0)
        wide = values.to(torch.promote_types(values.dtype, torch.float32))
        return vectors.with_values(functional.normalize(wide, dim=-1).to(values.dtype))
