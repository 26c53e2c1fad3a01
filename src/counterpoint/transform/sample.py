"""A bounded sample of a stream of vectors, for transforms that must see them more than once."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from counterpoint.errors import DataError, ShapeError
from counterpoint.transform.transform import Rows

__all__ = ["sample_rows"]


def sample_rows(rows: Rows, dim: int, size: int, seed: int) -> tuple[Float[Tensor, "k d"], int]:
    """Sample at most `size` of the rows as float32, in their order. Returns them and the number of all rows.

    Every row draws a number, and those with the smallest are kept. All rows have the same chance, whatever
    their batches. At most twice `size` rows and one batch are held.

    Raises:
        ShapeError: they are not rows of `dim` components.
        DataError: a component is NaN or infinite.
    """
    draw = np.random.default_rng(seed)
    kept, keys, count = torch.zeros(0, dim), torch.zeros(0, dtype=torch.float64), 0
    highest = 2.0
    waiting: list[tuple[Tensor, Tensor]] = []
    held = 0
    for piece in rows:
        found = torch.as_tensor(piece).detach().cpu()
        if found.dim() != 2 or found.shape[1] != dim:
            raise ShapeError(f"expected rows of {dim} components, found shape {tuple(found.shape)}")
        if not torch.isfinite(found).all():
            raise DataError(
                "a vector has a component that is NaN or infinite; find the text that it came from"
            )
        count += len(found)
        drawn = torch.from_numpy(draw.random(len(found)))
        chosen = drawn < highest
        waiting.append((found[chosen].float(), drawn[chosen]))
        held += int(chosen.sum())
        if held > size:
            kept, keys = _smallest(kept, keys, waiting, size)
            highest = float(keys.max()) if len(keys) == size else highest
            waiting, held = [], 0
    kept, keys = _smallest(kept, keys, waiting, size)
    return kept, count


def _smallest(
    kept: Tensor, keys: Tensor, more: list[tuple[Tensor, Tensor]], size: int
) -> tuple[Tensor, Tensor]:
    """The `size` rows with the smallest numbers, in their order."""
    kept = torch.cat([kept, *(rows for rows, _ in more)])
    keys = torch.cat([keys, *(drawn for _, drawn in more)])
    if len(keys) <= size:
        return kept, keys
    best = torch.topk(keys, size, largest=False).indices.sort().values
    return kept[best], keys[best]
