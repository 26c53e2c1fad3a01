"""The stored rows of one vector set of a segment, memory-mapped, and their products with a query.

<set>.values.npy    vectors, packed (and <set>.scales.npy for codecs with one scale per vector); or whatever
                    other arrays the codec's layout names
<set>.lengths.npy   number of vectors of each document (uint32); absent with one vector per document
<set>.ids.npy       id of each vector (uint32), if the set has ids; or
<set>.ranks.npy     the same as places in <set>.vocabulary.npy, in two bytes if these fit
<set>.means.npy     means of frequent words, from which rows are differences (see `counterpoint.index.means`)
<set>.centroids.npy the same for rows without ids (see `counterpoint.index.centroids`)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import cast, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError
from counterpoint.index.centres import Centres
from counterpoint.index.centroids import Centroids
from counterpoint.index.checked import CheckedArray, CheckedFolder
from counterpoint.index.codec import CODECS, Integral, Rounded
from counterpoint.index.kernels import Products, dot_scores
from counterpoint.index.layout import SetLayout
from counterpoint.index.means import Means
from counterpoint.index.paths import Kernels
from counterpoint.index.piece import Piece
from counterpoint.index.rotation import rotation
from counterpoint.index.store import Asked
from counterpoint.types import Ragged, rows_of_sets

__all__ = ["Rows", "offsets_of", "opened_rows"]

Where = slice | Int[np.ndarray, " k"]


@final
class Rows:
    """One vector set of a segment.

    Attributes:
        offsets: where each document's rows begin, and where the last end.
    """

    def __init__(self, files: CheckedFolder, name: str, layout: SetLayout, documents: int):
        self.layout, self._files, self._name = layout, files, name
        self._codec = CODECS[layout.codec]
        self._arrays = {key: files.array(f"{name}.{key}.npy") for key in self._codec.layout(layout.dim)}
        rows = len(next(iter(self._arrays.values())))
        self.offsets: Int[np.ndarray, " b1"] = (
            np.arange(documents + 1, dtype=np.int64) if layout.pooled else offsets_of(files, name, documents)
        )
        if self.offsets[-1] != rows:
            raise ArtifactError(
                f"vector set {name!r} has {rows} rows for {documents} documents and does not fit its lengths",
                path=files.folder,
            )
        ranked = f"{name}.ranks.npy" in files
        self._ids = files.array(f"{name}.{'ranks' if ranked else 'ids'}.npy") if layout.ids else None
        self._vocabulary = files.array(f"{name}.vocabulary.npy") if ranked else None
        has_centres = f"{name}.centres.npy" in files
        self._centres = Centres(files, name, layout.dim, documents) if has_centres else None
        has_centroids = f"{name}.centroids.npy" in files
        self.centroids = Centroids(files, name, layout.dim, rows) if has_centroids else None

    @cached_property
    def _means(self) -> Means | None:
        """Read at first use; the files are open."""
        kept = f"{self._name}.means.npy" in self._files
        return Means.open(self._files, self._name, self.layout.dim) if kept else None

    @property
    def words(self) -> tuple[Means, CheckedArray] | None:
        """The means of words, and the word of each row as its place in the vocabulary; None without means."""
        if self._means is None or self._ids is None or self._vocabulary is None:
            return None
        return self._means, self._ids

    @property
    def _bases(self) -> Means | Centroids | None:
        """The means or centroids from which rows are differences, in addition to their documents' centres."""
        return self._means if self.centroids is None else self.centroids

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.offsets[-1])

    def take(self, documents: Int[np.ndarray, " k"]) -> Ragged:
        """The rows of some documents, in the given order, decoded to float32."""
        where, offsets = rows_of_sets(self.offsets, documents)
        return Ragged(self.values(where), offsets, self.ids(where))

    def ids(self, where: Where) -> Int[np.ndarray, " k"] | None:
        """The ids of some rows, if the set has ids."""
        if self._ids is None:
            return None
        found = np.asarray(self._ids[where], dtype=np.int64)
        return found if self._vocabulary is None else self._vocabulary.all()[found].astype(np.int64)

    def values(self, where: Where) -> Float[np.ndarray, "k d"]:
        """Some rows, decoded to float32."""
        arrays = self.stored(where)
        values = self._codec.decode(arrays, self.layout.dim)
        base = np.zeros((1, self.layout.dim), np.float32)
        if self._bases is not None:
            base = base + self._bases.rows(self._places(where))
        if self._centres is not None:
            documents, of_rows = self._documents(where)
            base = base + self._centres.of(documents).decoded()[of_rows]
        return values + base @ rotation(self.layout.dim).T if len(base) == len(values) else values

    def against(self, query: Float[np.ndarray, "m d"], few: bool = False) -> Callable[[Where], Products]:
        """A function for products of stored rows with a query, as `kernels.maxsim_by` needs it.

        `few` means that it is called for few rows: then only their means or centroids are multiplied.
        """
        if self.integral is not None:
            return self._of_integers(query, self.integral, few)

        def load(where: Where) -> Products:
            stored = self.values(where)
            return lambda asked: dot_scores(query[asked], stored)

        return load

    def _of_integers(
        self, query: Float[np.ndarray, "m d"], codec: Integral, few: bool
    ) -> Callable[[Where], Products]:
        """Integer products, which are exact in any order; floats are only used once they are summed."""
        whole, bases = codec.asked(query), np.zeros((len(query), 1), np.float32)
        if self._bases is not None and not few:
            bases = self._bases.products(whole)

        def base_of(places: Int[np.ndarray, " n"]) -> Float[np.ndarray, "m n"]:
            if self._bases is not None and few:
                return self._bases.products(whole, places)
            return bases[:, places]

        def load(where: Where) -> Products:
            arrays = self.stored(where)
            integers = codec.integers(arrays["values"], self.layout.dim)
            factors, base = arrays["scales"].astype(np.float32), base_of(self._places(where))
            documents, of_rows = self._documents(where)
            centres = self.centre_products(whole, documents)

            def multiply(asked: slice) -> Float[np.ndarray, "m n"]:
                some = Rounded(whole.rows[asked], whole.scales[asked])
                found = some.times(integers, codec.top) * factors
                found += base[asked]
                found += centres[asked][:, of_rows]
                return found * some.scales[:, None]

            return multiply

        return load

    def scan(
        self, query: Float[np.ndarray, "q d"], kernels: Kernels, where: Int[np.ndarray, " k"] | None = None
    ) -> Float[np.ndarray, "q n"]:
        """Products with all 8-bit rows, or of a single query with some of them, by a compiled kernel."""
        firsts, ends = (np.zeros(1, np.int64), self.offsets[-1:]) if where is None else (where, where + 1)
        (rows, scales), (values, factors) = self.factors(query, firsts, ends)
        if where is None:
            return kernels.scan(rows, scales, values, factors, kernels.halves)
        return kernels.scan_some(rows, scales, values, factors, kernels.halves, where)[None]

    def stored_centres(self, documents: Int[np.ndarray, " k"]) -> Mapping[str, np.ndarray]:
        """The stored centres of some documents, by array; empty if the codec has none."""
        return {} if self._centres is None else self._centres.of(documents).arrays("centre")

    @property
    def intact(self) -> bool:
        """Whether all vectors have been checked."""
        return all(array.intact for array in self._arrays.values())

    @property
    def factored(self) -> bool:
        """Whether compiled kernels for exact matching support the codec, bit-identical to numpy."""
        return self.layout.codec == "int8" or (self.layout.codec, self.layout.dim) == ("float16", 1)

    def factors(
        self, query: Float[np.ndarray, "m d"], firsts: Int[np.ndarray, " k"], ends: Int[np.ndarray, " k"]
    ) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
        """The query's rows and all stored ones, as 8-bit integers and factors; needs `factored`.

        Numbers in float16 are factors only. Only the rows from each of `firsts` to its end are checked.
        """
        arrays = {key: array.checked(firsts, ends) for key, array in self._arrays.items()}
        values = arrays["values"]
        if self.integral is None:
            asked = np.zeros((len(query), 0), np.int8), query[:, 0].astype(np.float32)
            return asked, (np.zeros((len(values), 0), np.int8), values[:, 0].view(np.uint16))
        whole = self.integral.asked(query)
        return (whole.rows.astype(np.int8), whole.scales), (values, arrays["scales"].view(np.uint16))

    def matched(
        self, kernels: Kernels, query: Asked, documents: Int[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """MaxSim of a query with ids, by a compiled kernel; for sets with ids, needs `factored`."""
        assert query.ids is not None and self._ids is not None
        firsts, ends = self.offsets[documents], self.offsets[documents + 1]
        asked, stored = self.factors(query.rows, firsts, ends)
        ids = query.ids.astype(np.int64), self._ids.checked(firsts, ends)
        return kernels.matched(asked, (*stored, kernels.halves), ids, (firsts, ends), query.floor)

    def compiled(
        self, kernels: Kernels, query: Asked, documents: Int[np.ndarray, " k"]
    ) -> Float[np.ndarray, " k"]:
        """MaxSim with some documents, by a compiled kernel; only for integer codecs."""
        codec = cast(Integral, self._codec)
        asked = kernels.asked(codec.asked(query.rows, kernels.turn))
        firsts, ends, lanes = self.offsets[documents], self.offsets[documents + 1], len(asked[1])
        bases, centres = np.zeros((1, lanes), np.float32), np.zeros((len(documents), lanes), np.float32)
        words, places = np.zeros((0, 0), np.uint8), np.zeros(1, np.int64)
        if self.centroids is not None:
            clusters = self.centroids.places.checked(firsts, ends)
            bases, places = self.centroids.compiled_products(asked, kernels), self.centroids.numbers
            words = clusters.view(np.uint8).reshape(len(clusters), clusters.itemsize)
        elif self._means is not None and self._ids is not None:
            ranks = self._ids.checked(firsts, ends)
            words, places = (
                ranks.view(np.uint8).reshape(len(ranks), ranks.itemsize),
                self._means.place_of_rank,
            )
            bases = self._means.compiled_some(asked, kernels, words, (firsts, ends))
        if self._centres is not None:
            centres = self._centres.of(documents).compiled_products(asked, kernels)
        values, factors = (self._arrays[key].checked(firsts, ends) for key in ("values", "scales"))
        stored = values.view(np.uint8), factors.view(np.uint16), words, codec.bits
        return kernels.maxsim(
            asked, (bases, centres), stored, (places, firsts, ends), kernels.halves, query.floor
        )

    @property
    def integral(self) -> Integral | None:
        """The codec if it is an integer codec, which compiled kernels support; else None."""
        return self._codec if isinstance(self._codec, Integral) else None

    def centre_products(
        self, query: Rounded, documents: Int[np.ndarray, " k"], kernels: Kernels | None = None
    ) -> Float[np.ndarray, "m k"]:
        """Products of a query's rows with the centres of documents, without the rows' scales."""
        if self._centres is None:
            return np.zeros((len(query.rows), len(documents)), np.float32)
        centres = self._centres.of(documents)
        if kernels is None:
            return centres.products(query)
        return centres.compiled_products(kernels.asked(query), kernels).T[: len(query.rows)]

    def _documents(self, where: Where) -> tuple[Int[np.ndarray, " k"], Int[np.ndarray, " r"]]:
        """The documents of some rows, and for each row its number among these."""
        rows = np.arange(*where.indices(len(self))) if isinstance(where, slice) else where
        owners = np.searchsorted(self.offsets, rows, side="right") - 1
        return np.unique(owners, return_inverse=True)

    def stored(self, where: Where) -> Mapping[str, np.ndarray]:
        """Some stored rows, by array."""
        return {key: array[where] for key, array in self._arrays.items()}

    def _places(self, where: Where) -> Int[np.ndarray, " k"]:
        """For some rows, the place of their word's mean or their centroid; 0 if there is none."""
        if self.centroids is not None:
            return self.centroids.of(where)
        if self._ids is None or self._means is None:
            count = len(range(*where.indices(len(self)))) if isinstance(where, slice) else len(where)
            return np.zeros(count, np.int64)
        return self._means.place_of_rank[self._ids[where]]


def opened_rows(piece: Piece, name: str) -> Rows:
    """The rows of a set of a segment, opened once and shared by all commits with the segment."""
    return piece.files.once(("rows", name), lambda files: Rows(files, name, piece.layout, piece.documents))


def offsets_of(files: CheckedFolder, name: str, documents: int) -> Int[np.ndarray, " b1"]:
    """Where each document's vectors begin; indexes of format 1 store these offsets."""
    old = f"{name}.offsets.npy"
    if old in files:
        offsets = files.array(old).all().astype(np.int64)
    else:
        lengths = files.array(f"{name}.lengths.npy").all()
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    if len(offsets) != documents + 1:
        raise ArtifactError(
            f"vector set {name!r} has lengths of {len(offsets) - 1} documents, not {documents}",
            path=files.folder,
        )
    return offsets
