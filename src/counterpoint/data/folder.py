"""Any folder of files as a collection of passages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from counterpoint.data.choice import FileChoice
from counterpoint.data.collection import Source
from counterpoint.data.extract import extract
from counterpoint.data.fields import Fields
from counterpoint.data.packed import plain_stem
from counterpoint.data.passages import located_passages
from counterpoint.data.reader import Located, Reader
from counterpoint.data.reading import UNREADABLE
from counterpoint.data.walk import walk
from counterpoint.errors import DataError, MissingExtraError

__all__ = ["Files"]


@dataclass(frozen=True)
class Files(Source):
    """The readable files of a folder, or one file, cut into passages.

    Attributes:
        root: the folder, or the file.
        passage_words: length of a passage; None leaves files, rows and pages whole.
        fields: names of the fields of rows and records.
        choice: which files of the folder are read.
    """

    root: Path
    passage_words: int | None
    fields: Fields = field(default_factory=Fields)
    choice: FileChoice = field(default_factory=FileChoice)

    @property
    def name(self) -> str:
        """The folder's name, or the file's without its ending."""
        return self.root.resolve().name if self.root.is_dir() else plain_stem(self.root)

    @property
    def forgiving(self) -> bool:
        """True for a folder; a single named file must be readable."""
        return self.root.is_dir()

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield the passages of each file, in the order of paths."""
        for path in walk(self.root, self.choice, reader):
            name = path.relative_to(self.root).as_posix() if path != self.root else path.name
            before = 0
            try:
                for found in extract(path, name, reader, self.fields):
                    before += 1
                    yield from located_passages(found, self.passage_words)
            except (DataError, MissingExtraError, *UNREADABLE) as error:
                if reader.policy.malformed == "error":
                    raise
                said = f"{error}" if str(path) in str(error) else f"{path}: {error}"
                reader.report.cannot_read(said + (f" (after {before} of its documents)" if before else ""))
