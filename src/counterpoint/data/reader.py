"""Bytes on disk to lines and texts: compression, encoding, byte order marks, length limits."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from counterpoint.data.policy import ReadPolicy, ReadReport
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["Located", "Reader", "open_binary", "strict_reader"]

BLOCK = 1 << 18
MOST_BLANK = 1_000_000  # blank lines one after another: a few kilobytes of gzip unpack to any number of them


class Located(NamedTuple):
    """A document and where it was found, for messages."""

    document: Document
    path: str | Path
    line: int | None = None


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacking it if its name ends in `.gz`.

    Raises:
        DataError: it cannot be opened or read, or its compression is damaged.
    """
    try:
        with open(path, "rb", buffering=BLOCK) as raw:
            if path.suffix != ".gz":
                yield raw
            else:
                with gzip.GzipFile(fileobj=raw) as packed:
                    # The buffer makes readline a C call; GzipFile's own is Python.
                    yield cast(BinaryIO, io.BufferedReader(packed, BLOCK))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(
            f"the gzip data are damaged or cut short ({error}); copy it again", path=path
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from error


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads by one policy and counts into one report."""

    policy: ReadPolicy = field(default_factory=ReadPolicy)
    report: ReadReport = field(default_factory=ReadReport)

    def reject(self, message: str, path: str | Path, line: int | None = None) -> None:
        """Something that cannot be used: stop or count, as the policy says.

        Raises:
            DataError: unless malformed input is to be skipped.
        """
        if self.policy.malformed == "error":
            raise DataError(message, path=path, line=line)
        self.report.skipped += 1
        self.report.note(message, path, line)

    def lines(self, path: Path) -> Iterator[tuple[int, str]]:
        r"""Number (from 1) and text of each line, without its end; only `\n` and `\r\n` end a line.

        Raises:
            DataError: unreadable, not UTF-8, or a line beyond any document that the policy allows.
        """
        # A character takes at most 12 bytes: two escapes of 6 in JSON. The rest is for the other fields.
        limit = 12 * self.policy.max_characters + (1 << 20)
        offset, filled = 0, 0
        with open_binary(path) as file:
            for number in count(1):
                raw = file.readline(limit)
                if not raw:
                    return
                if len(raw) > 2:
                    filled = number
                elif number - filled > MOST_BLANK:
                    raise DataError(
                        f"{MOST_BLANK:,} lines one after another are blank; is this the right kind of file?",
                        path=path,
                        line=number,
                    )
                if len(raw) == limit and not raw.endswith(b"\n"):
                    raise DataError(
                        f"this line is longer than {limit:,} bytes; is this the right kind of file?",
                        path=path,
                        line=number,
                    )
                try:  # not in a function of its own: runs have millions of lines
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    if self.policy.encoding == "error":
                        raise self._undecodable(raw, error, path, number, offset) from error
                    self._replaced(path, number)
                    text = raw.decode("utf-8", "replace")
                offset += len(raw)
                yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")

    def text(self, path: Path, *, encoding: str | None = None) -> str:
        r"""A whole file as text with `\n` line ends, UTF-8 unless it declares an `encoding` itself.

        Raises:
            DataError: unreadable, wrongly encoded, or longer than the policy allows.
        """
        limit = 4 * self.policy.max_characters + 4  # no character of UTF-8 takes more than four bytes
        with open_binary(path) as file:
            raw = file.read(limit)
        raw = raw.removeprefix(codecs.BOM_UTF8)
        errors = "strict" if self.policy.encoding == "error" else "replace"
        decoder = codecs.getincrementaldecoder(encoding or "utf-8")(errors)
        try:  # what was read may end inside a character, which is an error only at the end of the file
            text = decoder.decode(raw, final=len(raw) < limit - len(codecs.BOM_UTF8))
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise self._undecodable(raw, error, path, line, 0) from error
        except UnicodeError as error:  # some codecs do not say where
            raise DataError(f"is not {encoding}, as it says ({error})", path=path) from error
        if errors == "replace" and "\ufffd" in text:
            self._replaced(path)
        return self.fit(text.replace("\r\n", "\n"), path)

    def fit(self, text: str, path: str | Path, line: int | None = None) -> str:
        """The text within the allowed length.

        Raises:
            DataError: it is longer, and the policy does not truncate.
        """
        most = self.policy.max_characters
        if len(text) <= most:
            return text
        if self.policy.too_long == "error":
            raise DataError(
                f"a text of more than {most:,} characters; is this the right kind of file? "
                "Use ReadPolicy(too_long='truncate') (`counterpoint index --lenient`) to keep its beginning, "
                "or a larger max_characters",
                path=path,
                line=line,
            )
        self.report.truncated += 1
        self.report.note(f"truncated to {most:,} characters", path, line)
        return text[:most]

    def sound(self, text: str, path: str | Path, line: int | None = None) -> str:
        r"""The text without lone surrogates, which JSON can spell (`\ud800`) and no encoding can store.

        Raises:
            DataError: it has some, and the policy does not replace.
        """
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            if self.policy.encoding == "error":
                raise DataError(
                    f"half a surrogate pair (U+{ord(text[error.start]):04X}) at character {error.start}; "
                    "repair the text or use ReadPolicy(encoding='replace') (`counterpoint index --lenient`)",
                    path=path,
                    line=line,
                ) from error
            self._replaced(path, line)
            return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text

    def _replaced(self, path: str | Path, line: int | None = None) -> None:
        self.report.replaced += 1
        self.report.note("broken characters replaced by U+FFFD", path, line)

    def _undecodable(
        self, raw: bytes, error: UnicodeDecodeError, path: Path, line: int, offset: int
    ) -> DataError:
        unpacked = " of the unpacked file" if path.suffix == ".gz" else ""
        return DataError(
            f"byte 0x{raw[error.start]:02x} at offset {offset + error.start}{unpacked} is not "
            f"{error.encoding.upper()}; convert the file to UTF-8 or use ReadPolicy(encoding='replace') "
            "(`counterpoint index --lenient`)",
            path=path,
            line=line,
        )


def strict_reader(policy: ReadPolicy) -> Reader:
    """For queries, judgements and runs: the policy's encoding and limits, but no line may be left out."""
    return Reader(replace(policy, malformed="error", duplicates="error"))
