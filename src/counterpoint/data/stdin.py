"""Standard input as a collection, kept in a file, because a collection may be read more than once."""

from __future__ import annotations

import shutil
import sys
import tempfile
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import final

from counterpoint.data.collection import Source
from counterpoint.data.fields import Fields
from counterpoint.data.json_file import json_value
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.data.records import DECODER
from counterpoint.data.rows import RowsFile
from counterpoint.errors import ConfigError, DataError
from counterpoint.types import Document

__all__ = ["STDIN", "Piped", "piped"]

STDIN = "-"
LABEL = "stdin"


@final
@dataclass(frozen=True, eq=False)
class Piped(Source):
    """Piped input: JSON Lines, a JSON array, or one document per line.

    Attributes:
        path: temporary file with the input, removed together with this object.
        rows: how to read it, if it is JSON.
    """

    path: Path
    rows: RowsFile | None

    def __post_init__(self) -> None:
        weakref.finalize(self, self.path.unlink, missing_ok=True)

    @property
    def name(self) -> str:
        """`stdin`."""
        return LABEL

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield one document per record, or per line that is not blank; generated ids are `stdin:<line>`."""
        if self.rows is not None:
            try:
                for found in self.rows.documents(reader):
                    yield Located(found.document, LABEL, found.line)
            except DataError as error:
                raise DataError(self._said(str(error))) from error
            finally:
                reader.report.notes[:] = map(self._said, reader.report.notes)
                reader.report.decisions[:] = map(self._said, reader.report.decisions)
            return
        for number, line in reader.lines(self.path, reader.charset(self.path)):
            if line and not line.isspace():
                yield Located(Document(f"{LABEL}:{number}", line), LABEL, number)
        reader.report.read(LABEL)

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """The detected kind of input."""
        if self.rows is None:
            return (f"{LABEL}: one document per line",)
        kind = "JSON Lines" if self.path.suffix == ".jsonl" else "JSON"
        try:
            return (f"{LABEL}: {kind}", *map(self._said, self.rows.decided(policy)))
        except DataError as error:
            raise DataError(self._said(str(error))) from error

    def _said(self, message: str) -> str:
        """Replace the name of the temporary file in a message."""
        return message.replace(str(self.path), LABEL)


def piped(fields: Fields, policy: ReadPolicy) -> Piped:
    """Read all of standard input.

    Raises:
        ConfigError: nothing is piped in, or fields are named for input that is not JSON.
        DataError: it cannot be read.
    """
    stream = getattr(sys.stdin, "buffer", None)  # None in a program without a console
    if stream is None or stream.isatty():
        raise ConfigError("'-' reads piped input, and there is none; use: … | counterpoint index - -o INDEX")
    descriptor, name = tempfile.mkstemp(prefix="counterpoint-")
    kept = Path(name)
    try:
        with open(descriptor, "wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        suffix = _kind(kept, policy)
        kept = kept.rename(kept.with_suffix(suffix))
    except BaseException as error:
        kept.unlink(missing_ok=True)
        if isinstance(error, DataError):
            raise DataError(str(error).replace(str(kept), LABEL)) from error
        raise
    found = Piped(kept, RowsFile(kept, fields, LABEL) if suffix != ".txt" else None)
    if found.rows is None and fields.named:
        raise ConfigError(
            "--id, --title, --text and --metadata name fields of JSON; standard input has one document per "
            "line"
        )
    return found


def _kind(path: Path, policy: ReadPolicy) -> str:
    """File ending for the kind of input; an object on the first line means JSON Lines, even a broken one."""
    reader = Reader(policy)
    lines = (line for _, line in reader.lines(path, reader.charset(path)) if line and not line.isspace())
    if (first := next(lines, None)) is None:
        raise DataError("standard input is empty; there is nothing to index")
    if first.lstrip()[0] not in "{[":
        return ".txt"
    try:
        if isinstance(DECODER.decode(first), dict):
            return ".jsonl"
    except (ValueError, RecursionError):
        pass
    try:
        json_value(path, Reader(policy))
    except DataError:
        return ".jsonl" if first.lstrip().startswith('{"') else ".txt"
    return ".json"
