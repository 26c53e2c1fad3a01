"""An approximate first stage for pooled vectors: a graph of neighbours (HNSW), by faiss.

    <set>.hnsw   in faiss' own format; checked and read whole at the first search

Malkov and Yashunin 2018. The graph only proposes candidates. These are scored exactly with the stored
vectors; documents that the graph misses are not found.
"""

from __future__ import annotations

import errno
import importlib
import os
from functools import cached_property
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Bool, Float, Int

from counterpoint.errors import ArtifactError, MissingExtraError
from counterpoint.index.checked import CheckedFile, CheckedFolder
from counterpoint.index.layout import SetLayout
from counterpoint.index.rows import Rows

__all__ = ["Graph", "check_faiss", "write_graph"]

NEIGHBOURS = 32  # per vector and level (M); twice as many on the lowest level
BUILD_EFFORT = 200  # candidates held while a vector is linked (efConstruction)
SEARCH_EFFORT = 2  # candidates held during a search (efSearch), per document wanted
ROWS = 2**16  # vectors decoded at a time while a graph is built


def check_faiss() -> Any:
    """Import faiss.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        return importlib.import_module("faiss")
    except ImportError as error:
        raise MissingExtraError("an approximate first stage", package="faiss-cpu", extra="faiss") from error


def write_graph(folder: Path, name: str, layout: SetLayout, documents: int) -> None:
    """Build the graph of a pooled set's stored vectors, by inner product.

    The graph contains a float16 copy of them. Several threads build it, so two builds may differ slightly;
    with `OMP_NUM_THREADS=1` they do not.
    """
    faiss, rows = check_faiss(), Rows(CheckedFolder(folder), name, layout, documents)
    quantizer = faiss.ScalarQuantizer.QT_fp16
    graph = faiss.IndexHNSWSQ(layout.dim, quantizer, NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = BUILD_EFFORT
    graph.is_trained = True  # float16 needs no training
    for start in range(0, documents, ROWS):
        graph.add(rows.values(slice(start, min(start + ROWS, documents))))
    path = folder / f"{name}.hnsw"
    try:
        faiss.write_index(graph, str(path))
    except RuntimeError as error:  # faiss has no other error for a full or failing disk
        code = next((code for code in errno.errorcode if os.strerror(code) in str(error)), errno.EIO)
        raise OSError(code, os.strerror(code), str(path)) from error


@final
class Graph:
    """The graph of one pooled set of a segment.

    Attributes:
        documents: number of documents in it.
    """

    def __init__(self, file: CheckedFile, documents: int):
        self._file, self.documents = file, documents

    @cached_property
    def _graph(self) -> Any:
        faiss = check_faiss()
        # faiss does not validate the file: a damaged one can crash the process.
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
        self, queries: Float[np.ndarray, "q d"], k: int, allowed: Bool[np.ndarray, " n"] | None = None
    ) -> list[Int[np.ndarray, " c"]]:
        """For each query, approximately the `k` allowed vectors of highest inner product, unordered.

        Raises:
            MissingExtraError: faiss is not installed.
        """
        if not self.documents:
            return [np.zeros(0, np.int64) for _ in queries]
        k = min(k, self.documents)
        faiss, kept = check_faiss(), None
        if allowed is not None:
            kept = faiss.IDSelectorBitmap(np.packbits(allowed, bitorder="little"))
        effort = faiss.SearchParametersHNSW(efSearch=max(SEARCH_EFFORT * k, BUILD_EFFORT), sel=kept)
        _, found = self._graph.search(np.ascontiguousarray(queries, np.float32), k, params=effort)
        return [row[row >= 0] for row in found]
