"""From what a user names to a collection."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

from counterpoint.data.beir import BeirFolder, plain_or_packed
from counterpoint.data.collection import Collection, Source
from counterpoint.data.extract import can_extract
from counterpoint.data.folder import Files
from counterpoint.data.irds import load_ir_dataset
from counterpoint.data.passages import PASSAGE_WORDS
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reading import reading
from counterpoint.data.records import RecordLayout, RecordsFile, layout_of
from counterpoint.data.stdlib_docs import StandardLibrary
from counterpoint.data.tables import TableFile, table_layout
from counterpoint.errors import ConfigError, DataError

__all__ = ["Format", "open_collection"]

Format = Literal["beir", "files", "beir-jsonl", "pyserini", "tevatron", "plain", "msmarco", "colbert"]

KINDS = (
    "a BEIR folder, a folder of files, .jsonl[.gz], .tsv[.gz], one file of text, 'ir_datasets:ID', 'stdlib:' "
    "or 'stdlib:MODULE'"
)


def open_collection(
    source: str | Path,
    *,
    format: Format | None = None,
    policy: ReadPolicy | None = None,
    passage_words: int | None = PASSAGE_WORDS,
) -> Collection:
    """Open a collection; of a large file no more than its first record is read yet.

    Args:
        source: a BEIR folder (it has `corpus.jsonl` or `corpus.jsonl.gz`); any other folder, or one file of
            text; a `.jsonl` or `.tsv` file, plain or `.gz`; `ir_datasets:ID`; or `stdlib:`, the documentation
            of the running Python (`stdlib:json`: of one module).
        format: how to read it, where that is not to be decided from the folder's content, the name's ending
            and the keys or columns of the first record.
        policy: what to do about bad input; by default stop.
        passage_words: length of the passages into which `files` and `stdlib:` are cut; None for whole texts.
            Documents of the other sources are never cut, since their judgements name whole documents.

    Raises:
        DataError: there is nothing of that name, or it cannot be read in this way.
        ConfigError: an unknown format, a format for a source that has its own, or a length below 1.
        MissingExtraError: the source needs a package that is not installed.
    """
    if format is not None and format not in get_args(Format):
        raise ConfigError(f"unknown format {format!r}; it must be one of {', '.join(get_args(Format))}")
    if passage_words is not None and passage_words < 1:
        raise ConfigError(f"passage_words must be at least 1, found {passage_words}")
    with reading(str(source), f"a source is {KINDS}"):
        return _opened(source, format, policy or ReadPolicy(), passage_words)


def _opened(
    source: str | Path, format: Format | None, policy: ReadPolicy, passage_words: int | None
) -> Collection:
    scheme, colon, rest = str(source).partition(":")
    if isinstance(source, str) and colon and scheme in ("stdlib", "ir_datasets"):
        if format is not None:
            raise ConfigError(f"{scheme}: has a format of its own; leave out format={format!r}")
        found = StandardLibrary(rest or None, passage_words) if scheme == "stdlib" else load_ir_dataset(rest)
        return Collection(found, policy)
    path = Path(source)
    if not path.exists():
        raise DataError(f"there is no such file or folder; a source is {KINDS}", path=path)
    if not (path.is_file() or path.is_dir()):  # a collection is read more than once, which a pipe is not
        raise DataError("is neither a file nor a folder; write it into a file first", path=path)
    return Collection(_source(path, format or _format_of(path, policy), passage_words), policy)


def _format_of(path: Path, policy: ReadPolicy) -> Format:
    if path.is_dir():
        return "files" if plain_or_packed(path, "corpus.jsonl") is None else "beir"
    name = path.name.removesuffix(".gz")
    if name.endswith(".jsonl"):
        return layout_of(path, policy)
    if name.endswith(".tsv"):
        return table_layout(path, policy)
    if can_extract(path):
        return "files"
    raise DataError(f"a file ending in {path.suffix!r} is no collection; a source is {KINDS}", path=path)


def _source(path: Path, format: Format, passage_words: int | None) -> Source:
    if path.is_dir() != (format == "beir") and format != "files":
        what = "a folder" if path.is_dir() else "a file"
        raise ConfigError(f"{path}: the format {format!r} does not go with {what}")
    if format == "beir":
        return BeirFolder(path)
    if format == "files":
        if path.is_file() and not can_extract(path):
            raise ConfigError(f"{path}: the format 'files' does not read {path.suffix!r}")
        return Files(path, passage_words)
    if format in get_args(RecordLayout):
        return RecordsFile(path, format)  # pyright: ignore[reportArgumentType]
    return TableFile(path, format)  # pyright: ignore[reportArgumentType]
