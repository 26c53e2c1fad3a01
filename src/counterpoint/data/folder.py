"""Any folder of files as a collection of passages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from counterpoint.data.collection import Source
from counterpoint.data.extract import can_extract, extract
from counterpoint.data.passages import cut_passages
from counterpoint.data.reader import Located, Reader
from counterpoint.errors import DataError

__all__ = ["Files", "walk"]


@dataclass(frozen=True)
class Files(Source):
    """The readable files below a folder, or one file, cut into passages.

    Attributes:
        root: the folder, or the file.
        passage_words: length of a passage; None leaves files, rows and pages whole.
    """

    root: Path
    passage_words: int | None

    @property
    def name(self) -> str:
        """The folder's name, or the file's without its ending."""
        return self.root.resolve().name if self.root.is_dir() else self.root.stem

    def documents(self, reader: Reader) -> Iterator[Located]:
        """The passages of each file, files in the order of their paths."""
        for path in walk(self.root, reader):
            name = path.relative_to(self.root).as_posix() if path != self.root else path.name
            for found in extract(path, name, reader):
                if self.passage_words is None:
                    yield found
                    continue
                for passage in cut_passages(found.document, max_words=self.passage_words):
                    yield Located(passage, found.path, found.line)


def walk(root: Path, reader: Reader) -> Iterator[Path]:
    """The files below `root` that can be read, sorted by name within each folder; the others are counted.

    Hidden files and folders are passed over. Links are followed, but each folder is entered once only.

    Raises:
        DataError: a folder cannot be listed.
    """
    if root.is_file():
        yield root
        return
    entered: set[tuple[int, int]] = set()
    waiting = [root]
    while waiting:
        path = waiting.pop()
        if os.path.isdir(path):
            status = path.stat()
            if (place := (status.st_dev, status.st_ino)) in entered:
                _pass_over("folder met before", reader)
                continue
            entered.add(place)
            waiting.extend(reversed(_listed(path)))
        elif not os.path.isfile(path):  # unlike Path, these never raise
            _pass_over("broken link or no ordinary file", reader)
            reader.report.note("a broken link, or no ordinary file", path)
        elif not can_extract(path):
            _pass_over(path.suffix.lower() or "no ending", reader)
        else:
            yield path


def _listed(folder: Path) -> list[Path]:
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as error:
        raise DataError(f"this folder cannot be listed: {error.strerror}", path=folder) from error
    return [folder / name for name in names]


def _pass_over(kind: str, reader: Reader) -> None:
    """Count a file by its kind; naming each would leave no room for what went wrong."""
    others = reader.report.other_files
    others[kind] = others.get(kind, 0) + 1
