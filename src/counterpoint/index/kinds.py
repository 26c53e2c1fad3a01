"""Kinds of stores: the reader and the writer of each. To add a kind, add a module and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import numpy as np
from jaxtyping import Int

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.deletes import Counts
from counterpoint.index.dense import DenseStore
from counterpoint.index.layout import Kind, SetLayout
from counterpoint.index.lists import ListsStore
from counterpoint.index.npy import Kept
from counterpoint.index.piece import Piece
from counterpoint.index.rows_writer import RowsWriter
from counterpoint.index.several import ExactStore, SeveralStore
from counterpoint.index.static import StaticStore, StaticWriter
from counterpoint.index.store import VectorStore, VectorWriter

__all__ = ["KINDS", "StoreKind", "counts_in"]


@dataclass(frozen=True)
class StoreKind:
    """How to open and to write a kind of store.

    Attributes:
        open: takes the set's name, its layout, and its piece of each segment.
        write: takes the folder of a new segment or of an interrupted build, the set's name and layout, and
            how much of each file is valid.
    """

    open: Callable[[str, SetLayout, Sequence[Piece]], VectorStore]
    write: Callable[[Path, str, SetLayout, Kept], VectorWriter]


KINDS: Mapping[Kind, StoreKind] = MappingProxyType(
    {
        "dense": StoreKind(DenseStore, RowsWriter),
        "graph": StoreKind(DenseStore, RowsWriter),
        "several": StoreKind(SeveralStore, RowsWriter),
        "lists": StoreKind(ListsStore, RowsWriter),
        "exact": StoreKind(ExactStore, RowsWriter),
        "static": StoreKind(StaticStore, StaticWriter),
    }
)


def counts_in(
    files: CheckedFolder, layouts: Mapping[str, SetLayout], documents: int, rows: Int[np.ndarray, " k"]
) -> dict[str, Counts]:
    """For each set with ids, the ids in some of a segment's `documents`, and how many of these have each."""
    pieces = {name: Piece(files, documents, layout) for name, layout in layouts.items() if layout.ids}
    return {
        name: KINDS[piece.layout.kind].open(name, piece.layout, [piece]).counts_of(rows)
        for name, piece in pieces.items()
    }
