"""Open a collection from the name that a user gives."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from counterpoint.data.beir import BeirFolder, plain_or_packed
from counterpoint.data.choice import FileChoice
from counterpoint.data.collection import Collection, Source
from counterpoint.data.delimited import has_header
from counterpoint.data.fields import Fields
from counterpoint.data.folder import Files
from counterpoint.data.irds import load_ir_dataset
from counterpoint.data.kinds import kind_of
from counterpoint.data.packed import ending
from counterpoint.data.passages import PASSAGE_WORDS
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Reader
from counterpoint.data.reading import reading
from counterpoint.data.records import RecordLayout, RecordsFile, layout_of
from counterpoint.data.rows import JSON_LINES, ROWS, RowsFile
from counterpoint.data.stdin import STDIN, piped
from counterpoint.data.stdlib_docs import StandardLibrary
from counterpoint.data.tables import TableFile, is_colbert, table_layout
from counterpoint.errors import ConfigError, DataError

__all__ = ["Format", "open_collection"]

Format = Literal["beir", "files", "rows", "beir-jsonl", "pyserini", "tevatron", "plain", "msmarco", "colbert"]

KINDS = (
    "a BEIR folder, a folder of files, .jsonl[.gz|.zst], .tsv, .csv or .json likewise, one file of text, '-' "
    "(standard input), 'ir_datasets:ID', 'stdlib:' or 'stdlib:MODULE'"
)
NAMED = "--id, --title, --text and --metadata name fields of CSV, TSV, JSON and JSON Lines"


def open_collection(
    source: str | Path,
    *,
    format: Format | None = None,
    policy: ReadPolicy | None = None,
    passage_words: int | None = PASSAGE_WORDS,
    fields: Fields | None = None,
    choice: FileChoice | None = None,
) -> Collection:
    """Open a collection; of a large file, only the first record is read yet.

    Args:
        source: one of: a BEIR folder (with `corpus.jsonl` or `corpus.jsonl.gz`); any other folder, or one
            text file; a `.jsonl`, `.tsv`, `.csv` or `.json` file, plain, `.gz` or `.zst`; `-` for standard
            input; `ir_datasets:ID`; `stdlib:` for the documentation of the running Python (`stdlib:json` for
            one module).
        format: how to read it; by default detected from the folder's content, or the file's ending and the
            keys or columns of its first record.
        policy: what to do about bad input; by default stop.
        passage_words: length of the passages into which `files` and `stdlib:` are cut; None for whole texts.
            Documents of other sources are never cut, because their judgements name whole documents.
        fields: which columns or keys to use in rows and records; detected if None.
        choice: which files of a folder to read.

    Raises:
        DataError: there is no such source, or it cannot be read in this way.
        ConfigError: an unknown format, a format or fields for a source with its own, patterns for something
            other than a folder of files, or a length below 1.
        MissingExtraError: the source needs a package that is not installed.
    """
    if format is not None and format not in get_args(Format):
        raise ConfigError(f"unknown format {format!r}; it must be one of {', '.join(get_args(Format))}")
    if passage_words is not None and passage_words < 1:
        raise ConfigError(f"passage_words must be at least 1, found {passage_words}")
    asked = _Asked(format, policy or ReadPolicy(), passage_words, fields or Fields(), choice or FileChoice())
    with reading(str(source), f"a source is {KINDS}"):
        return Collection(_opened(source, asked), asked.policy)


@dataclass(frozen=True)
class _Asked:
    format: Format | None
    policy: ReadPolicy
    passage_words: int | None
    fields: Fields
    choice: FileChoice

    def check(
        self, source: object, *, format: bool = False, fields: bool = False, metadata: bool = False
    ) -> None:
        """Refuse options that a source cannot use, except those allowed here."""
        if self.format is not None and not format:
            raise ConfigError(f"{source} has its own format; leave out format={self.format!r}")
        if not fields and (self.fields.placed if metadata else self.fields.named):
            raise ConfigError(f"{NAMED}; {source} has its own fields")
        if self.choice.include or self.choice.exclude:
            raise ConfigError(f"--include and --exclude choose files of a folder; {source} is not one")


def _opened(source: str | Path, asked: _Asked) -> Source:
    scheme, colon, rest = str(source).partition(":")
    if isinstance(source, str) and colon and scheme in ("stdlib", "ir_datasets"):
        asked.check(f"{scheme}:")
        if scheme == "stdlib":
            return StandardLibrary(rest or None, asked.passage_words)
        return load_ir_dataset(rest)
    if source == STDIN:
        asked.check("standard input", fields=True)
        return piped(asked.fields, asked.policy)
    path = Path(source)
    if not path.exists():
        raise DataError(f"there is no such file or folder; a source is {KINDS}", path=path)
    if not (path.is_file() or path.is_dir()):  # a collection is read more than once, but a pipe only once
        raise DataError("is neither a file nor a folder; pipe it in and name '-' as the source", path=path)
    return _source(path, asked.format or _format_of(path, asked), asked)


def _format_of(path: Path, asked: _Asked) -> Format:
    if path.is_dir():
        return "files" if plain_or_packed(path, "corpus.jsonl") is None else "beir"
    kind = ending(path)
    if asked.fields.placed and kind in ROWS:
        return "rows"
    if kind in JSON_LINES:
        return layout_of(path, asked.policy)
    if kind == ".tsv":
        named = has_header(path, Fields(), Reader(replace(asked.policy, malformed="skip")))
        return "rows" if named and not is_colbert(path, asked.policy) else table_layout(path, asked.policy)
    if kind in ROWS:
        return "rows"
    if kind_of(path) is not None or not path.suffix:
        return "files"
    raise DataError(f"unsupported file type {path.suffix!r}; a source is {KINDS}", path=path)


def _source(path: Path, format: Format, asked: _Asked) -> Source:
    if path.is_dir() != (format == "beir") and format != "files":
        what = "a folder" if path.is_dir() else "a file"
        raise ConfigError(f"{path}: the format {format!r} does not apply to {what}")
    if format == "files":
        if path.is_file():
            if kind_of(path) is None and path.suffix:
                raise ConfigError(f"{path}: the format 'files' does not read {path.suffix!r}")
            asked.check(path, format=True, fields=kind_of(path) == "rows")
        fields = replace(asked.fields, declared=()) if path.is_dir() else asked.fields
        return Files(path, asked.passage_words, fields, asked.choice)
    asked.check(
        path, format=True, fields=format == "rows", metadata=format in ("beir", *get_args(RecordLayout))
    )
    if format == "beir":
        return BeirFolder(path, asked.fields.metadata)
    if format == "rows":
        if ending(path) not in ROWS:
            raise ConfigError(f"{path}: the format 'rows' reads {', '.join(ROWS)}, not {path.suffix!r}")
        return RowsFile(path, asked.fields)
    if format in get_args(RecordLayout):
        return RecordsFile(path, format, asked.fields.metadata)  # pyright: ignore[reportArgumentType]
    return TableFile(path, format)  # pyright: ignore[reportArgumentType]
