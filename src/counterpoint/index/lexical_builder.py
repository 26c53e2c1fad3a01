"""Write the postings of documents' texts, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import numpy as np

from counterpoint.index.lexical import LexicalSettings
from counterpoint.index.manifest import Manifest
from counterpoint.index.ours import mark, new_name
from counterpoint.index.term_runs import SortedRun, sorted_run, write_runs
from counterpoint.types import Document

__all__ = ["LexicalBuilder", "terms_again"]

MEMORY = 256 * 2**20
TOKEN = 28  # bytes of a token while a run is sorted: its number, and three arrays of 8 bytes
TERM = 220  # bytes of a distinct term: its text, its place in a dict, and again while sorting


@final
class LexicalBuilder:
    """Collect the terms of documents one by one, then write them with their postings.

    The files are the same for every `memory`.

    Args:
        settings: how texts are split into terms.
        spill: an existing folder for what does not fit in memory, emptied by `write`; None for the system's
            temporary folder.
        memory: approximate number of bytes for terms before they are written to `spill`. The postings of the
            most frequent term are packed in one step and may need more.
    """

    def __init__(self, settings: LexicalSettings, spill: Path | None = None, memory: int = MEMORY):
        self.settings = settings
        self._analyzer = settings.analyzed()
        self._spill, self._memory = spill, memory
        self._temporary = ExitStack()
        self._runs: list[SortedRun] = []
        self._spilled: list[Path] = []
        self._documents = 0
        self._clear()

    def add(self, text: str) -> None:
        """Add the next document."""
        known = self._vocabulary
        numbers = [known.setdefault(term, len(known)) for term in self._analyzer.terms(text)]
        self._tokens.extend(numbers)
        self._lengths.append(len(numbers))
        self._documents += 1
        if TOKEN * len(self._tokens) + TERM * len(known) > self._memory:
            self._store()

    def write(self, folder: Path) -> None:
        """Write the terms of all documents into `folder`."""
        with self._temporary:
            write_runs([*self._runs, self._sorted()], folder)
            self._runs = []  # closes the files
            for path in self._spilled:
                path.unlink()

    def _store(self) -> None:
        """Write what is in memory to disk, sorted."""
        if self._spill is None:
            self._spill = Path(self._temporary.enter_context(TemporaryDirectory(prefix="counterpoint-")))
        name = f"run{len(self._runs)}"
        self._runs.append(self._sorted().stored(self._spill, name))
        self._spilled += self._spill.glob(f"{name}.*.npy")
        self._clear()

    def _sorted(self) -> SortedRun:
        tokens, lengths = (np.asarray(kept, np.uint32) for kept in (self._tokens, self._lengths))
        return sorted_run(self._vocabulary, tokens, lengths, self._documents - len(lengths))

    def _clear(self) -> None:
        self._vocabulary: dict[str, int] = {}
        self._tokens, self._lengths = array("I"), array("I")


def terms_again(folder: Path, manifest: Manifest, documents: Iterable[Document], home: str = "") -> str:
    """Write BM25 of some documents into a new folder of an index; return the folder.

    For damaged files, or for files in which an earlier version kept scores. `home` is that of their segment.
    """
    name = f"{home}lexical/{new_name()}"
    mark(folder / name)
    builder = LexicalBuilder(LexicalSettings.from_dict(manifest.settings["lexical"]), folder / name)
    for document in documents:
        builder.add(document.full_text)
    builder.write(folder / name)
    return name
