"""A folder in BEIR's layout: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`, each plain or `.gz`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterpoint.data.collection import Source
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.data.records import RecordsFile
from counterpoint.data.tables import read_queries, read_query_metadata
from counterpoint.data.trec import read_qrels
from counterpoint.errors import DataError

__all__ = ["BeirFolder", "plain_or_packed", "required"]

NEEDED = "; BEIR's layout needs it"


@dataclass(frozen=True)
class BeirFolder(Source):
    """A collection in BEIR's layout. Queries and judgements are optional; the corpus is not."""

    folder: Path
    kept: tuple[str, ...] | None = None  # metadata of documents; all if None

    @property
    def name(self) -> str:
        """The folder's name."""
        return self.folder.resolve().name

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of the files in `qrels`, sorted."""
        files = [*self.folder.glob("qrels/*.tsv"), *self.folder.glob("qrels/*.tsv.gz")]
        return tuple(sorted({file.name.split(".tsv")[0] for file in files if not file.name.startswith(".")}))

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """The layout."""
        return self._corpus().decided(policy)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield one document per line of the corpus."""
        return self._corpus().documents(reader)

    def _corpus(self) -> RecordsFile:
        return RecordsFile(required(self.folder, "corpus.jsonl", NEEDED), "beir-jsonl", self.kept)

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """Read the queries of all splits."""
        path = plain_or_packed(self.folder, "queries.jsonl")
        return {} if path is None else read_queries(path, policy)

    def query_metadata(self, policy: ReadPolicy) -> dict[str, dict[str, Any]]:
        """Other keys of `queries.jsonl`, apart from ids and texts."""
        path = plain_or_packed(self.folder, "queries.jsonl")
        return {} if path is None else read_query_metadata(path, policy)

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """Read the judgements of one split."""
        return read_qrels(required(self.folder, f"qrels/{split}.tsv", NEEDED), policy)


def plain_or_packed(folder: Path, name: str) -> Path | None:
    """The file of this name, else its `.gz` version, else None."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def required(folder: Path, name: str, why: str = "") -> Path:
    """As `plain_or_packed`, but the file must exist.

    Raises:
        DataError: it does not; `why` ends the message.
    """
    if (path := plain_or_packed(folder, name)) is None:
        raise DataError(f"no {name} or {name}.gz in this folder{why}", path=folder)
    return path
