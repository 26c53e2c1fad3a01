"""`Dot`: the dot product or cosine of pooled vectors."""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from counterpoint.errors import ShapeError
from counterpoint.score.scorer import Scorer, one_pair, vector_sets
from counterpoint.types import Explanation
from counterpoint.vectors import Representation, Vectors

__all__ = ["Dot"]


@final
class Dot(Scorer):
    """Dot product of pooled vectors, q·d. A text without a vector scores 0.

    Args:
        on: name of the vector set, which has one row per text.
        normalise: divide both vectors by their length first (cosine). A zero vector stays zero.
    """

    def __init__(self, on: str, normalise: bool = False):
        super().__init__()
        self.on, self.normalise = on, normalise

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """Every query against every document, accumulated in at least float32."""
        queries, documents = vector_sets(q, d, self.on)
        # Autocast would reduce the product to half precision.
        with torch.autocast(queries.values.device.type, enabled=False):
            left, right = self._pooled(queries), self._pooled(documents)
            dtype = torch.promote_types(left.dtype, right.dtype)
            return left.to(dtype) @ right.to(dtype).T

    def explain(self, q: Representation, d: Representation) -> Explanation:
        """A single leaf, because a pooled vector represents the whole text."""
        one_pair(q, d, self.on)
        return Explanation(f"{'Cosine' if self.normalise else 'Dot'}({self.on})", self(q, d).item())

    def _pooled(self, vectors: Vectors) -> Float[Tensor, "b d"]:
        """The one row of each text, zero if it is masked."""
        rows = vectors.values.shape[1]
        if rows != 1:
            raise ShapeError(
                f"Dot takes one vector per text, the set {self.on!r} has {rows}; pool it or use MaxSim"
            )
        values = vectors.values[:, 0].masked_fill(~vectors.mask, 0)
        values = values.to(torch.promote_types(values.dtype, torch.float32))
        return functional.normalize(values, dim=-1) if self.normalise else values
