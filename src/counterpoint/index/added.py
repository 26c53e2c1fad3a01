"""A segment of documents that are being added to an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Int

from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CodecName
from counterpoint.index.deletes import with_deletes
from counterpoint.index.kinds import counts_in
from counterpoint.index.layout import SetLayout
from counterpoint.index.lexical import LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.manifest import SegmentEntry, home_of
from counterpoint.index.ours import mark, new_name
from counterpoint.index.segment import SegmentWriter
from counterpoint.types import Document, Ragged

__all__ = ["Added"]


@final
class Added:
    """A segment that grows batch by batch. Nothing is fitted to it.

    Rows of a codec that needs means or centroids are stored in 8 bits for now, since few documents give no
    useful means. A compaction encodes them once there are enough.

    Args:
        folder: of the index.
        layouts: of its vector sets.
        settings: of the index.
        shard: the shard that the segment belongs to; None in an index without shards.

    Attributes:
        live: for each appended document, whether it was not deleted again.
        entry: its manifest entry; complete after `close`.
    """

    def __init__(
        self,
        folder: Path,
        layouts: Mapping[str, SetLayout],
        settings: Mapping[str, Any],
        shard: int | None = None,
    ):
        self.live = np.zeros(0, bool)
        self._folder = folder
        self._rows: dict[str, list[int]] = {}
        self._names: list[str] = []
        self._passages: set[int] = set()
        self._terms: LexicalBuilder | None = None
        lexical = None
        if settings["lexical"] is not None:
            lexical = f"{home_of(shard)}lexical/{new_name()}"
            self._terms = LexicalBuilder(LexicalSettings.from_dict(settings["lexical"]), folder / lexical)
        codecs: dict[str, CodecName] = {name: "int8" for name, layout in layouts.items() if layout.fitted}
        self.entry = SegmentEntry(new_name(), 0, {}, lexical, codecs=codecs, shard=shard)
        mark(*(folder / name for name in self.entry.folders()))
        self._path, self._layouts = folder / self.entry.path, self.entry.layouts(layouts)
        self._writer = SegmentWriter(self._path, self._layouts, settings.get("metadata", {}))

    def __len__(self) -> int:
        """Number of documents appended, including deleted ones."""
        return self._writer.documents

    def append(
        self,
        documents: Sequence[Document],
        vectors: Mapping[str, Ragged],
        places: Int[np.ndarray, " k"] | None = None,
    ) -> None:
        """Add documents with their vectors, and with their places in an index of shards.

        Raises:
            DataError: as `SegmentWriter.append`.
        """
        first = len(self)
        self._writer.append(documents, vectors, places)
        for row, document in enumerate(documents, first):
            self._rows.setdefault(document.parent or document.id, []).append(row)
            self._names.append(document.id)
            if document.parent is not None:
                self._passages.add(row)
                self._rows.setdefault(document.id, []).append(row)
            if self._terms is not None:
                self._terms.add(document.full_text)
        self.live = np.append(self.live, np.ones(len(documents), bool))

    def is_passage(self, row: int) -> bool:
        """Whether a document was cut from a longer one."""
        return row in self._passages

    def names(self, rows: Sequence[int]) -> list[str]:
        """The ids of some documents."""
        return [self._names[row] for row in rows]

    def rows_of(self, document_id: str) -> list[int]:
        """The rows of the document or passage with an id and of its passages, without deleted ones."""
        return [row for row in self._rows.get(document_id, ()) if self.live[row]]

    def close(self) -> None:
        """Finish every file."""
        with self._writer:
            pass
        if self._terms is not None and self.entry.lexical is not None:
            self._terms.write(self._folder / self.entry.lexical)
        self.entry = replace(self.entry, documents=len(self), vectors=self._writer.vectors)
        if not self.live.all():
            files, rows = CheckedFolder(self._path), np.flatnonzero(~self.live)
            counts = counts_in(files, self._layouts, len(self), rows)
            self.entry = with_deletes(self._folder, self.entry, self.live, counts)

    def abandon(self) -> None:
        """Close the files as they are; does nothing after `close`."""
        self._writer.abandon()
