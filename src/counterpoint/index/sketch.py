"""Pooled vectors in one bit per component, to find candidates without reading the other vectors.

    <set>.signs.npy        signs after a rotation, packed, one row per document
    <set>.sign_scales.npy  their scales, float16

Gao and Long (2024, RaBitQ) estimate an inner product from such a code without bias and with a bounded error.
So a scan reads an eighth of the bytes of `int8`. Only documents whose estimate is near enough to the best are
then compared by their stored vectors.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast, final

import numpy as np
from jaxtyping import Float, UInt8

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NpyWriter
from counterpoint.index.rotation import rotation
from counterpoint.index.rows import Rows

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["LEAST", "Sketch", "sketched", "write_sketch"]

LEAST = 100_000  # documents; with fewer, comparing the vectors takes no longer
ERRORS = 1.14
"""The error bound of an estimate, relative to the row's scale times the query's length.

With many components, the standard deviation of an estimate is 0.6 of that (√(1 − 2/π)). So this is 1.9
standard deviations, as in the paper (section 3.2.2).
"""
CODEC = cast(Bits, CODECS["1-bit"])
CHUNK = 2**14  # rows at a time


def write_sketch(folder: Path, name: str, layout: SetLayout, documents: int) -> None:
    """Write the one-bit codes of a pooled set's stored vectors."""
    rows, turn = Rows(CheckedFolder(folder), name, layout, documents), rotation(layout.dim)
    kinds = CODEC.layout(layout.dim)
    signs = NpyWriter(folder / f"{name}.signs.npy", *kinds["values"])
    factors = NpyWriter(folder / f"{name}.sign_scales.npy", *kinds["scales"])
    for start in range(0, documents, CHUNK):
        made = CODEC.packed(rows.values(slice(start, min(start + CHUNK, documents))) @ turn)
        signs.append(made["values"])
        factors.append(made["scales"])
    signs.close()
    factors.close()


@final
class Sketch:
    """The one-bit codes of one pooled set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, dim: int, documents: int):
        self._dim = dim
        self._signs, self._factors = (files.array(f"{name}.{key}.npy") for key in ("signs", "sign_scales"))
        if len(self._signs) != documents or len(self._factors) != documents:
            raise ArtifactError(f"the signs of {name!r} do not fit its documents", path=files.folder)

    def estimates(
        self, query: Float[np.ndarray, " d"], kernels: Kernels | None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Estimates of the inner product with every document, and the error bound of each."""
        whole = CODEC.asked(query[None], None if kernels is None else kernels.turn)
        signs, factors = self._signs.all(), self._widened
        if kernels is None:
            pieces = [signs[at : at + CHUNK] for at in range(0, len(signs), CHUNK)]
            found = np.concatenate([sketched(whole.rows[0], piece) for piece in pieces])
        else:
            integers = np.zeros(64 * (1 + signs.shape[1] // 8), np.int8)
            integers[: self._dim] = whole.rows[0]
            found = kernels.sketched(integers, signs)
        return found * (factors * whole.scales[0]), factors * np.float32(ERRORS * np.linalg.norm(query))

    @cached_property
    def _widened(self) -> Float[np.ndarray, " n"]:
        return self._factors.all().astype(np.float32)  # takes 2 ms for a million, so not for each query


def sketched(query: Float[np.ndarray, " d"], signs: UInt8[np.ndarray, "n b"]) -> Float[np.ndarray, " n"]:
    """Exact sums of a query's integers, added where a row's bit is set and subtracted where not."""
    return CODEC.integers(signs, len(query)) @ query
