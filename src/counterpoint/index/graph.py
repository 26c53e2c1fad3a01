"""An approximate first stage for pooled vectors: a graph of neighbours (HNSW), by faiss.

    <set>.hnsw   in faiss' own format; checked and read whole when it is first searched

Malkov and Yashunin 2018. The graph only proposes; scores are taken from the stored vectors, so what it finds
is scored exactly and what it misses is missed.
"""

from __future__ import annotations

import errno
import importlib
import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError, MissingExtraError
from counterpoint.index.best import Among
from counterpoint.index.checked import CheckedFile

if TYPE_CHECKING:
    from counterpoint.index.rows import Rows

__all__ = ["Graph", "check_faiss", "write_graph"]

NEIGHBOURS = 32  # of a vector, on each level (M); twice as many on the lowest
BUILD_EFFORT = 200  # candidates held while a vector is linked (efConstruction)
SEARCH_EFFORT = 2  # candidates held while a query is answered (efSearch), for each document wanted
ROWS = 2**16  # vectors decoded at a time while a graph is built


def check_faiss() -> Any:
    """The library.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError("an approximate first stage", package="faiss-cpu", extra="faiss") from error


def write_graph(folder: Path, name: str, rows: Rows, documents: int) -> None:
    """Link the vectors of a pooled set, as they are stored, by inner product.

    The graph holds a float16 copy of them to find its way. Several threads link at once, so two builds may
    differ a little; with `OMP_NUM_THREADS=1` they do not.
    """
    faiss = check_faiss()
    quantizer = faiss.ScalarQuantizer.QT_fp16
    graph = faiss.IndexHNSWSQ(rows.layout.dim, quantizer, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_EFFORT
    graph.is_trained = True  # there is nothing to learn of halves
    for start in range(0, documents, ROWS):
        graph.add(rows.values(slice(start, min(start + ROWS, documents))))
    path = folder / f"{name}.hnsw"
    try:
        faiss.write_index(graph, str(path))
    except RuntimeError as error:  # faiss has no other word for a full or failing disk
        code = next((code for code in errno.errorcode if os.strerror(code) in str(error)), errno.EIO)
        raise OSError(code, os.strerror(code), str(path)) from error


@final
class Graph:
    """The graph of one pooled set of a segment.

    Attributes:
        documents: how many it links.
    """

    def __init__(self, file: CheckedFile, documents: int):
        self._file, self.documents = file, documents

    @cached_property
    def _graph(self) -> Any:
        faiss = check_faiss()
        # faiss trusts every number in the file: a damaged one can crash the process.
        content, at = self._file.whole(), 0

        def read(size: int) -> bytes:
            nonlocal at
            at += size
            return bytes(content[at - size : at])

        try:
            graph = faiss.read_index(faiss.PyCallbackIOReader(read))
        except RuntimeError as error:
            raise ArtifactError(
                f"faiss {faiss.__version__} cannot read this graph; build the index again",
                path=self._file.path,
            ) from error
        if graph.ntotal != self.documents:
            raise ArtifactError(
                f"has {graph.ntotal} vectors for {self.documents} documents", path=self._file.path
            )
        return graph

    def nearest(
        self, queries: Float[np.ndarray, "q d"], k: int, among: Among = None
    ) -> list[Int[np.ndarray, " c"]]:
        """For each query the positions of about the `k` vectors of highest inner product, in no order.

        Args:
            queries: a row each.
            k: how many.
            among: which of the documents may be found; None for all.

        Raises:
            MissingExtraError: faiss is not installed.
        """
        k = min(k, self.documents)
        faiss, kept = check_faiss(), None
        if among is not None:
            kept = faiss.IDSelectorBitmap(np.packbits(among, bitorder="little"))
        effort = faiss.SearchParametersHNSW(efSearch=max(SEARCH_EFFORT * k, BUILD_EFFORT), sel=kept)
        _, found = self._graph.search(np.ascontiguousarray(queries, np.float32), k, params=effort)
        return [row[row >= 0] for row in found]
