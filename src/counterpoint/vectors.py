"""`Vectors`: the padded torch layout of training and encoding, with conversion to `Ragged`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from counterpoint.errors import ShapeError
from counterpoint.types import Ragged

__all__ = ["Representation", "Vectors"]


@dataclass(frozen=True)
class Vectors:
    """One named set of vectors per text, padded to the longest.

    A pooled representation is the case t = 1.

    Attributes:
        values: the vectors; padded positions are never read.
        mask: True for real rows, False for padding.
        ids: the id of each row (a vocabulary id or a word hash), if rows have ids.
    """

    values: Float[Tensor, "b t d"]
    mask: Bool[Tensor, "b t"]
    ids: Int[Tensor, "b t"] | None = None

    def __post_init__(self) -> None:
        if self.values.dim() != 3 or self.values.shape[:2] != self.mask.shape:
            raise ShapeError(
                f"values of shape {tuple(self.values.shape)} do not match a mask of {tuple(self.mask.shape)}"
            )
        if self.ids is not None and self.ids.shape != self.mask.shape:
            raise ShapeError(f"ids of shape {tuple(self.ids.shape)} do not match {tuple(self.mask.shape)}")

    def __len__(self) -> int:
        """Number of texts."""
        return len(self.mask)

    def with_values(self, values: Float[Tensor, "b t d2"]) -> Vectors:
        """The same rows with other values, such as after a map."""
        return replace(self, values=values)

    def rows(self) -> Float[Tensor, "n d"]:
        """The real rows of all texts, in order (float32, on the CPU)."""
        return self.values.detach().cpu()[self.mask.cpu()].float()

    def ragged(self, rows: Float[Tensor, "n d2"] | None = None) -> Ragged:
        """Convert to numpy without padding.

        Args:
            rows: the result of `rows()`, perhaps mapped; None for the rows themselves.
        """
        mask = self.mask.cpu()
        offsets = np.concatenate([[0], np.cumsum(mask.sum(1).numpy())]).astype(np.int64)
        ids = None if self.ids is None else self.ids.cpu()[mask].numpy()
        return Ragged((self.rows() if rows is None else rows).numpy(), offsets, ids)

    def first(self, count: int) -> Vectors:
        """The sets of the first texts, without a copy."""
        ids = None if self.ids is None else self.ids[:count]
        return Vectors(self.values[:count], self.mask[:count], ids)

    def take(self, texts: Int[Tensor, " k"]) -> Vectors:
        """The sets of the texts at these positions, in this order."""
        ids = None if self.ids is None else self.ids[texts]
        return Vectors(self.values[texts], self.mask[texts], ids)

    @staticmethod
    def concatenate(parts: Sequence[Vectors]) -> Vectors:
        """Concatenate the texts of all parts, padded to the longest; gradients pass."""
        if not parts:
            raise ShapeError("nothing to concatenate")
        width = max(part.mask.shape[1] for part in parts)
        missing = [width - part.mask.shape[1] for part in parts]
        values = [pad(part.values, (0, 0, 0, m)) for part, m in zip(parts, missing, strict=True)]
        masks = [pad(part.mask, (0, m)) for part, m in zip(parts, missing, strict=True)]
        ids = [pad(part.ids, (0, m)) for part, m in zip(parts, missing, strict=True) if part.ids is not None]
        packed = torch.cat(ids) if len(ids) == len(parts) else None
        return Vectors(torch.cat(values), torch.cat(masks), packed)

    @staticmethod
    def pad(packed: Ragged) -> Vectors:
        """Pad packed sets to the longest; the inverse of `ragged`."""
        lengths = torch.from_numpy(np.asarray(packed.lengths))
        mask = torch.arange(int(lengths.max()) if len(lengths) else 0)[None] < lengths[:, None]
        values = torch.zeros(*mask.shape, packed.dim)
        values[mask] = torch.from_numpy(np.asarray(packed.values, dtype=np.float32))
        ids = None
        if packed.ids is not None:
            ids = torch.zeros(mask.shape, dtype=torch.int64)
            ids[mask] = torch.from_numpy(packed.ids.astype(np.int64))
        return Vectors(values, mask, ids)


Representation = Mapping[str, Vectors]
"""Vector sets of a batch of texts, by name."""
