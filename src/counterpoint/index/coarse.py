"""Tables of rotated vectors in 4 bits: means, centres and centroids, from which rows are differences.

<set>.<kind>s.npy        the vectors, packed; the kind is mean, centre or centroid
<set>.<kind>_scales.npy  their scales, float16
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np
from jaxtyping import Float, Int, UInt8

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, Bits, Rounded

if TYPE_CHECKING:
    from counterpoint.index.paths import Kernels

__all__ = ["CODEC", "Table"]

CODEC = cast(Bits, CODECS["4-bit"])
Where = tuple[Int[np.ndarray, " words"], Int[np.ndarray, " k"], Int[np.ndarray, " k"]]


@final
@dataclass(frozen=True)
class Table:
    """Rotated vectors in 4 bits.

    Attributes:
        values: the vectors, packed.
        scales: one float16 per vector.
        dim: components of a vector.
    """

    values: UInt8[np.ndarray, "n b"]
    scales: Float[np.ndarray, " n"]
    dim: int

    @staticmethod
    def of(rotated: Float[np.ndarray, "n d"]) -> Table:
        """Encode rotated vectors."""
        return Table(**CODEC.packed(rotated), dim=rotated.shape[1])

    @staticmethod
    def read(files: CheckedFolder, name: str, kind: str, dim: int) -> Table:
        """Read the vectors of a kind of a set."""
        return Table(*(files.array(f"{name}.{kind}{end}.npy").all() for end in ("s", "_scales")), dim=dim)

    def write(self, folder: Path, name: str, kind: str) -> None:
        """Write them as the vectors of a kind of a set."""
        for key, array in self.arrays(kind).items():
            np.save(folder / f"{name}.{key}.npy", array)

    def arrays(self, kind: str) -> dict[str, np.ndarray]:
        """The arrays of the vectors of a kind, by name."""
        return {f"{kind}s": self.values, f"{kind}_scales": self.scales}

    def taken(self, places: Int[np.ndarray, " k"]) -> Table:
        """The vectors at some places."""
        return Table(self.values[places], self.scales[places], self.dim)

    def same(self, other: Table) -> bool:
        """Whether another table has the same bytes."""
        return np.array_equal(self.values, other.values) and np.array_equal(self.scales, other.scales)

    def decoded(self) -> Float[np.ndarray, "n d"]:
        """The vectors, still rotated."""
        return CODEC.integers(self.values, self.dim) * self.scales.astype(np.float32)[:, None]

    def products(self, query: Rounded) -> Float[np.ndarray, "m n"]:
        """Inner products with rounded query rows, without the rows' scales."""
        integers = CODEC.integers(self.values, self.dim)
        return query.times(integers, CODEC.top) * self.scales.astype(np.float32)

    def compiled_products(self, asked: Any, kernels: Kernels) -> Float[np.ndarray, "n lanes"]:
        """The same by a compiled kernel, transposed; `asked` is the query in the kernels' form."""
        return kernels.products(asked, self._packed(), kernels.halves)

    def compiled_some(
        self, asked: Any, kernels: Kernels, words: UInt8[np.ndarray, "r b"], where: Where
    ) -> Float[np.ndarray, "n lanes"]:
        """The same with the vectors of some documents' words alone; other rows of the result are not set.

        `words` and `where` are those of the kernel for MaxSim.
        """
        return kernels.products_of_words(asked, self._packed(), words, where, kernels.halves)

    def _packed(self) -> tuple[np.ndarray, np.ndarray, int]:
        return self.values, self.scales.view(np.uint16), CODEC.bits
