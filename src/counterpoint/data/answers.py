"""Answer strings: for each query, the texts that count as an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import strict_reader
from counterpoint.data.records import records
from counterpoint.errors import DataError

__all__ = ["read_answers"]

IDS = ("_id", "query_id", "id")


def read_answers(path: str | Path) -> dict[str, tuple[str, ...]]:
    r"""Read answers by query id.

    A `.jsonl[.gz]` file has one line per query, with its id under `_id`, `query_id` or `id`, and a list under
    `answers`. The queries of a BEIR folder may have such a list next to their text or under `metadata`. Lines
    without one are skipped. Any other file is tab-separated: the id, then one answer per column.

    Raises:
        DataError: a line does not fit, an answer is blank, an id is repeated, or there is no answer at all.
    """
    path = Path(path)
    rows = _objects(path) if ".jsonl" in path.suffixes else _columns(path)
    found: dict[str, tuple[str, ...]] = {}
    for line, query, answers in rows:
        texts = tuple(answer for answer in answers if isinstance(answer, str) and answer.strip())
        if not texts or len(texts) < len(answers):
            raise DataError(
                f"query {query!r}: expected one or more answers, each a text, found {answers!r}",
                path=path,
                line=line,
            )
        if query in found:
            raise DataError(f"duplicate query id {query!r}; join its answers", path=path, line=line)
        found[query] = texts
    if not found:
        raise DataError("no line has answers (a list under 'answers')", path=path)
    return found


def _objects(path: Path) -> Iterator[tuple[int, str, list]]:
    for line, record in records(path, strict_reader(ReadPolicy())):
        places = (record, record.get("metadata"))
        holder = next((place for place in places if isinstance(place, dict) and "answers" in place), None)
        if holder is None:
            continue
        query = next((record[name] for name in IDS if name in record), None)
        if not isinstance(query, str | int) or not isinstance(holder["answers"], list):
            raise DataError(
                "expected an id (_id, query_id or id) and a list under answers", path=path, line=line
            )
        yield line, str(query), holder["answers"]


def _columns(path: Path) -> Iterator[tuple[int, str, list]]:
    for line, text in strict_reader(ReadPolicy()).lines(path):
        if text and not text.isspace():
            query, *answers = text.split("\t")
            yield line, query, answers
