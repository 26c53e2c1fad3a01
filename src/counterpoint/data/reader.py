"""Read lines and texts from bytes: compression, encodings, byte order marks, length limits."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import AnyStr, BinaryIO, NamedTuple, cast

from counterpoint.data.charsets import UTF_8, charset_of, marked
from counterpoint.data.packed import ZstdBytes, is_packed
from counterpoint.data.policy import ReadPolicy, ReadReport
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["Located", "Reader", "open_binary", "strict_reader"]

BLOCK = 1 << 18
SCANNED = 1 << 26  # bytes used to detect an encoding; limited, because a small gzip can unpack to any size
MOST_BLANK = 1_000_000  # blank lines in a row; limited for the same reason


class Located(NamedTuple):
    """A document and its place, for messages."""

    document: Document
    path: str | Path
    line: int | None = None


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading; unpack it if its name ends in `.gz` or `.zst`.

    Raises:
        DataError: it cannot be opened or read, or its compression is damaged.
    """
    try:
        with open(path, "rb", buffering=BLOCK) as raw:
            if path.suffix == ".gz":
                with gzip.GzipFile(fileobj=raw) as packed:
                    # The buffer makes readline a C call; GzipFile's own is Python.
                    yield cast(BinaryIO, io.BufferedReader(packed, BLOCK))
            elif path.suffix == ".zst":
                yield cast(BinaryIO, io.BufferedReader(ZstdBytes(raw), BLOCK))
            else:
                yield raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        kind = "Zstandard" if path.suffix == ".zst" else "gzip"
        raise DataError(
            f"the {kind} data are damaged or cut short ({error}); copy it again", path=path
        ) from error
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from error


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads with one policy and counts into one report."""

    policy: ReadPolicy = field(default_factory=ReadPolicy)
    report: ReadReport = field(default_factory=ReadReport)

    def reject(self, message: str, path: str | Path, line: int | None = None) -> None:
        """Handle an item that cannot be used: stop or count, as the policy says.

        Raises:
            DataError: unless the policy skips malformed input.
        """
        error = DataError(message, path=path, line=line)
        if self.policy.malformed == "error":
            raise error
        self.skip(error)

    def skip(self, error: DataError) -> None:
        """Count a skipped item, with the reason."""
        self.report.skipped += 1
        self.report.note(str(error))

    def charset(self, path: Path, *, told: bool = False) -> str:
        """Detect the encoding of a text file from its first 64 MiB; count it if it is not UTF-8.

        It is also reported, unless `told` says that the caller does so.

        Raises:
            DataError: the file cannot be read, or is not text.
        """
        with open_binary(path) as file:
            found = charset_of((file.read(BLOCK) for _ in range(SCANNED // BLOCK)), path)
        self._not_utf8(found, path, told=told)
        return found

    def lines(self, path: Path, encoding: str | None = None) -> Iterator[tuple[int, str]]:
        r"""Yield number (from 1) and text of each line, without its end; only `\n` and `\r\n` end a line.

        If `encoding` is None, it is the one of the byte order mark, or UTF-8.

        Raises:
            DataError: unreadable, wrongly encoded, or a line is longer than any document that the policy
                allows.
        """
        # In JSON, a character takes at most 12 bytes (two escapes of 6). The rest is for the other fields.
        limit = 12 * self.policy.max_characters + (1 << 20)
        with open_binary(path) as file:
            encoding = encoding or marked(cast(io.BufferedReader, file).peek(4)) or UTF_8
            if encoding != UTF_8:
                yield from self._other_lines(file, encoding, path, limit)
                return
            offset = 0
            for number, raw in _bounded(lambda: file.readline(limit), limit, path):
                try:  # inline for speed: runs have millions of lines
                    text = raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    if self.policy.encoding == "error":
                        raise self._undecodable(raw, error, path, number, offset) from error
                    self._replaced(path, number)
                    text = raw.decode("utf-8", "replace")
                offset += len(raw)
                yield number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n")

    def _other_lines(
        self, file: BinaryIO, encoding: str, path: Path, limit: int
    ) -> Iterator[tuple[int, str]]:
        errors = "strict" if self.policy.encoding == "error" else "replace"
        texts = io.TextIOWrapper(file, encoding, errors, newline="\n")
        try:
            for number, text in _bounded(lambda: texts.readline(limit), limit, path):
                if errors == "replace" and "\ufffd" in text:
                    self._replaced(path, number)
                yield number, text.rstrip("\r\n")
        except UnicodeError as error:
            raise DataError(f"is not {encoding.upper()} throughout ({error})", path=path) from error
        finally:
            texts.detach()

    def text(self, path: Path, *, encoding: str | None = None, most: int | None = None) -> str:
        r"""Read a whole file as text with `\n` line ends, in the encoding that it declares or a detected one.

        `most` is the maximum number of characters; `max_characters` if None.

        Raises:
            DataError: unreadable, not text, wrongly encoded, or longer than the policy allows.
        """
        most = most or self.policy.max_characters
        limit = 4 * most + 4  # no encoding that we read takes more than four bytes per character
        with open_binary(path) as file:
            raw = file.read(limit)
        name = encoding or charset_of([raw], path)
        if encoding is None:
            self._not_utf8(name, path)
        raw = raw.removeprefix(codecs.BOM_UTF8)
        errors = "strict" if self.policy.encoding == "error" else "replace"
        decoder = codecs.getincrementaldecoder(name)(errors)
        try:  # bytes may end inside a character; this is an error only at the end of the file
            text = decoder.decode(raw, final=len(raw) < limit - len(codecs.BOM_UTF8))
        except UnicodeDecodeError as error:
            line = raw.count(b"\n", 0, error.start) + 1
            raise self._undecodable(raw, error, path, line, 0) from error
        except UnicodeError as error:  # some codecs do not say where the error is
            raise DataError(f"is not {name}, although it says so ({error})", path=path) from error
        if errors == "replace" and "\ufffd" in text:
            self._replaced(path)
        return self.fit(text.replace("\r\n", "\n"), path, most=most)

    def fit(self, text: str, path: str | Path, line: int | None = None, *, most: int | None = None) -> str:
        """Apply the length limit.

        Raises:
            DataError: the text is longer, and the policy does not truncate.
        """
        most = most or self.policy.max_characters
        if len(text) <= most:
            return text
        if self.policy.too_long == "error":
            raise DataError(
                f"a text of more than {most:,} characters; check that this is the right kind of file. "
                "Use ReadPolicy(too_long='truncate') (`counterpoint index --lenient`) to keep its beginning, "
                "or a larger max_characters",
                path=path,
                line=line,
            )
        self.report.truncated += 1
        self.report.note(f"truncated to {most:,} characters", path, line)
        return text[:most]

    def sound(self, text: str, path: str | Path, line: int | None = None) -> str:
        r"""Handle lone surrogates, which JSON can spell (`\ud800`) but no encoding can store.

        Raises:
            DataError: the text has some, and the policy does not replace them.
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

    def _not_utf8(self, encoding: str, path: Path, *, told: bool = False) -> None:
        if encoding != UTF_8:
            self.report.encodings[encoding] = self.report.encodings.get(encoding, 0) + 1
            if not told:
                self.report.decide(f"{path}: read as {encoding}")

    def _replaced(self, path: str | Path, line: int | None = None) -> None:
        self.report.replaced += 1
        self.report.note("broken characters replaced by U+FFFD", path, line)

    def _undecodable(
        self, raw: bytes, error: UnicodeDecodeError, path: Path, line: int, offset: int
    ) -> DataError:
        unpacked = " of the unpacked file" if is_packed(path) else ""
        return DataError(
            f"byte 0x{raw[error.start]:02x} at offset {offset + error.start}{unpacked} is not "
            f"{error.encoding.upper()}; convert the file to UTF-8 or use ReadPolicy(encoding='replace') "
            "(`counterpoint index --lenient`)",
            path=path,
            line=line,
        )


def _bounded(readline: Callable[[], AnyStr], limit: int, path: Path) -> Iterator[tuple[int, AnyStr]]:
    """Number each line; refuse one that is too long, and too many blank ones."""
    filled = 0
    for number in count(1):
        if not (line := readline()):
            return
        if len(line) > 2:
            filled = number
        elif number - filled > MOST_BLANK:
            raise DataError(
                f"{MOST_BLANK:,} blank lines in a row; check that this is the right kind of file",
                path=path,
                line=number,
            )
        if len(line) == limit and line[-1:] not in (b"\n", "\n"):
            raise DataError(
                f"this line is longer than {limit:,} bytes; check that this is the right kind of file",
                path=path,
                line=number,
            )
        yield number, line


def strict_reader(policy: ReadPolicy) -> Reader:
    """Reader for queries, judgements and runs: the policy's encoding and limits, but no line is skipped."""
    return Reader(replace(policy, malformed="error", duplicates="error"))
