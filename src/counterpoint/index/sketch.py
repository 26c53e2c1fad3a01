"""Pooled vectors in one bit per component, to find candidates without reading the other vectors.

    <set>.signs.npy        signs after a rotation, packed, one row per document
    <set>.sign_scales.npy  their scales, float16

Gao and Long (2024, RaBitQ) estimate an inner product from such a code without bias and with a bounded error.
So a scan reads an eighth of the bytes of `int8`. Only documents whose estimate is near enough to the best are
then compared by their stored vectors.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, final

import numpy as np
from jaxtyping import Float

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import rounded
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NpyWriter
from counterpoint.index.rotation import rotated, rotation
from counterpoint.index.rows import Rows
from counterpoint.index.signs import CODEC, ERRORS, TOP, sketched

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["LEAST", "Sketch", "write_sketch"]

LEAST = 100_000  # documents; with fewer, comparing the vectors takes no longer
CHUNK = 2**14  # rows at a time


def write_sketch(folder: Path, name: str, layout: SetLayout, documents: int) -> None:
    """Write the one-bit codes of a pooled set's vectors; none if a scale is too large for a float16."""
    rows, turn = Rows(CheckedFolder(folder), name, layout, documents), rotation(layout.dim)
    kinds = CODEC.layout(layout.dim)
    with (
        NpyWriter(folder / f"{name}.signs.npy", *kinds["values"]) as signs,
        NpyWriter(folder / f"{name}.sign_scales.npy", *kinds["scales"]) as factors,
    ):
        for start in range(0, documents, CHUNK):
            with np.errstate(over="ignore"):
                made = CODEC.packed(rows.values(slice(start, min(start + CHUNK, documents))) @ turn)
            if not np.isfinite(made["scales"]).all():
                for writer in (signs, factors):
                    writer.abandon()
                    writer.path.unlink()
                return
            signs.append(made["values"])
            factors.append(made["scales"])


@final
class Sketch:
    """The one-bit codes of one pooled set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, dim: int, documents: int):
        self._dim = dim
        self._signs, self._factors = (files.array(f"{name}.{key}.npy") for key in ("signs", "sign_scales"))
        if len(self._signs) != documents or len(self._factors) != documents:
            raise ArtifactError(f"the signs of {name!r} do not fit its documents", path=files.folder)

    def bounds(self, query: Float[np.ndarray, " d"], kernels: Kernels | None) -> Float[np.ndarray, " n"]:
        """Upper bounds of the inner product with every document: its estimate plus the error bound."""
        turned = rotated(query[None], None if kernels is None else kernels.turn)
        whole = rounded(turned.astype(np.float32), TOP)
        scale, error = whole.scales[0], np.float32(ERRORS * np.linalg.norm(query))
        signs, factors = self._signs.all(), self._factors.all()
        if kernels is None:
            pieces = (slice(at, at + CHUNK) for at in range(0, len(signs), CHUNK))
            found = [sketched((whole.rows[0], scale, error), signs[some], factors[some]) for some in pieces]
            return np.concatenate([np.zeros(0, np.float32), *found])
        integers = np.zeros(8 * signs.shape[1], np.int8)
        integers[: self._dim] = whole.rows[0]
        return kernels.sketched((integers, scale, error), signs, factors.view(np.uint16))
