"""Kinds of stores: the reader and the writer of each. To add a kind, add a module and an entry here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from counterpoint.index.dense import DenseStore
from counterpoint.index.exact import ExactStore
from counterpoint.index.layout import Kind, SetLayout
from counterpoint.index.lists import ListsStore
from counterpoint.index.npy import Kept
from counterpoint.index.piece import Piece
from counterpoint.index.rows_writer import RowsWriter
from counterpoint.index.several import SeveralStore
from counterpoint.index.static import StaticStore, StaticWriter
from counterpoint.index.store import VectorStore, VectorWriter

__all__ = ["KINDS", "StoreKind"]


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
