"""Pooled vectors in one bit a component, which find who may be among the best without reading the others.

    <set>.signs.npy        signs after a rotation, packed, a row a document
    <set>.sign_scales.npy  their factors, float16

Gao and Long (2024, RaBitQ) estimate an inner product by such a code without bias, with an error that they
bound. So a scan reads an eighth of the bytes of `int8`, and only documents whose estimate comes near enough
to the best are compared by the vectors as they are stored.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast, final

import numpy as np
from jaxtyping import Float, UInt8

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.npy import NpyWriter
from counterpoint.index.rotation import rotation

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels
    from counterpoint.index.rows import Rows

__all__ = ["LEAST", "Sketch", "sketched", "write_sketch"]

LEAST = 100_000  # documents; fewer are compared by their vectors in the same time
ERRORS = 1.14
"""How far an estimate may be off, in a row's factor times the query's length.

The deviation of estimates of many components is 0.6 of that (√(1 − 2/π)); these are 1.9 deviations, as in the
paper (section 3.2.2).
"""
CODEC = cast(Bits, CODECS["1-bit"])
CHUNK = 2**14  # rows at a time


def write_sketch(folder: Path, name: str, rows: Rows, documents: int) -> None:
    """Write the codes of a pooled set's vectors, as they are stored."""
    dim, turn = rows.layout.dim, rotation(rows.layout.dim)
    kinds = CODEC.layout(dim)
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
    """The codes of one pooled set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, dim: int, documents: int):
        self._dim = dim
        self._signs, self._factors = (files.array(f"{name}.{key}.npy") for key in ("signs", "sign_scales"))
        if len(self._signs) != documents or len(self._factors) != documents:
            raise ArtifactError(f"the signs of {name!r} do not fit its documents", path=files.folder)

    def estimates(
        self, query: Float[np.ndarray, " d"], kernels: Kernels | None
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, " n"]]:
        """Of the inner product with every document, and how far each may be off."""
        whole = CODEC.asked(query[None], None if kernels is None else kernels.turn)
        signs, factors = self._signs.all(), self._factors.all().astype(np.float32)
        if kernels is None:
            pieces = [signs[at : at + CHUNK] for at in range(0, len(signs), CHUNK)]
            found = np.concatenate([sketched(whole.rows[0], piece) for piece in pieces])
        else:
            integers = np.zeros(64 * (1 + signs.shape[1] // 8), np.int8)
            integers[: self._dim] = whole.rows[0]
            found = kernels.sketched(integers, signs)
        return found * (factors * whole.scales[0]), factors * np.float32(ERRORS * np.linalg.norm(query))


def sketched(query: Float[np.ndarray, " d"], signs: UInt8[np.ndarray, "n b"]) -> Float[np.ndarray, " n"]:
    """Exact sums of a query's integers, each plus where a row has a bit and minus where it has none."""
    return CODEC.integers(signs, len(query)) @ query
