"""Tab-separated collections and queries of MS MARCO and ColBERT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from counterpoint.data.collection import Source
from counterpoint.data.packed import ending
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader, strict_reader
from counterpoint.data.records import read_json_queries
from counterpoint.errors import DataError
from counterpoint.types import Document

__all__ = ["TableFile", "TableLayout", "is_colbert", "read_queries", "read_query_metadata", "table_layout"]

TableLayout = Literal["msmarco", "colbert"]

COLUMNS = {"msmarco": "id and text", "colbert": "id, text and perhaps title"}
QUERY_IDS, QUERY_TEXTS = ("qid", "id", "_id", "query_id", "query-id"), ("query", "text", "question")
HEADER = ["id", "text", "title"]  # first line of DPR's file of Wikipedia passages, which ColBERT reads


@dataclass(frozen=True)
class TableFile(Source):
    """One file of tab-separated lines: `id text` (MS MARCO) or `id text [title]` (ColBERT)."""

    path: Path
    layout: TableLayout

    @property
    def name(self) -> str:
        """The file's name without its endings."""
        return self.path.name.split(".")[0]

    def decided(self, policy: ReadPolicy) -> tuple[str, ...]:
        """The layout."""
        return (f"{self.path}: layout {self.layout}: {COLUMNS[self.layout]}, separated by tabs",)

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield one document per line; quotes have no meaning."""
        reader.report.decide(*self.decided(reader.policy))
        most = 2 if self.layout == "msmarco" else 3
        for number, line in reader.lines(self.path):
            if not line or line.isspace():
                continue
            columns = line.split("\t")
            if number == 1 and self.layout == "colbert" and columns == HEADER:
                continue
            if 2 <= len(columns) <= most:
                id_, text, title = (*columns, "")[:3]
                yield Located(Document(id_, text, title), self.path, number)
            else:
                fault = f"expected {COLUMNS[self.layout]}, separated by tabs, found {len(columns)} columns"
                reader.reject(fault, self.path, number)
        reader.report.read(ending(self.path))


def table_layout(path: Path, policy: ReadPolicy) -> TableLayout:
    """ColBERT's layout if the first line has three columns, else MS MARCO's.

    If the policy skips malformed lines, the first line of two or three columns decides.
    """
    for _, line in strict_reader(policy).lines(path):
        if not line or line.isspace() or (policy.malformed == "skip" and line.count("\t") not in (1, 2)):
            continue
        return "colbert" if line.count("\t") == 2 else "msmarco"
    return "msmarco"


def is_colbert(path: Path, policy: ReadPolicy) -> bool:
    """Whether the first line is the header of a ColBERT file."""
    lines = Reader(replace(policy, encoding="replace")).lines(path)
    return next((line for _, line in lines), "").split("\t") == HEADER


def read_queries(path: str | Path, policy: ReadPolicy | None = None) -> dict[str, str]:
    r"""Query texts by id from `.jsonl[.gz]` (BEIR, Tevatron) or tab-separated `id\ttext` lines.

    A first line such as `qid\tquery` or `id\ttext` is a header.

    Raises:
        DataError: a line does not fit, or an id is blank or repeated.
    """
    return {id_: text for id_, text, _ in _queries(Path(path), policy or ReadPolicy())}


def read_query_metadata(path: str | Path, policy: ReadPolicy | None = None) -> dict[str, dict[str, Any]]:
    """Other keys of each JSON query, apart from id and text; tables have none.

    Raises:
        DataError: a line does not fit, or an id is blank or repeated.
    """
    return {id_: metadata for id_, _, metadata in _queries(Path(path), policy or ReadPolicy()) if metadata}


def _queries(path: Path, policy: ReadPolicy) -> Iterator[tuple[str, str, dict[str, Any]]]:
    rows = read_json_queries if ".jsonl" in path.suffixes else _tab_separated
    reader = strict_reader(policy)
    seen: set[str] = set()
    for line, id_, text, metadata in rows(path, policy):
        if not id_.strip():
            raise DataError("this query's id is blank; give every query an id", path=path, line=line)
        if id_ in seen:
            raise DataError(f"duplicate query id {id_!r}; remove one of the two", path=path, line=line)
        seen.add(id_)
        yield id_, reader.sound(text, path, line), metadata


def _tab_separated(path: Path, policy: ReadPolicy) -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    for number, line in strict_reader(policy).lines(path):
        if line and not line.isspace():
            columns = line.split("\t")
            if len(columns) != 2:
                raise DataError(
                    f"expected id and text separated by one tab, found {len(columns)} columns",
                    path=path,
                    line=number,
                )
            if number == 1:
                first, second = (column.strip().lower() for column in columns)
                if first in QUERY_IDS and second in QUERY_TEXTS:  # a header
                    continue
            yield number, columns[0], columns[1], {}
