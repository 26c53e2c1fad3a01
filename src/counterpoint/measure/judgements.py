"""Judgements and runs as a program has them at hand: read, in a table, or in a file."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ConfigError, DataError
from counterpoint.search.run import Run
from counterpoint.types import Qrels

if TYPE_CHECKING:
    from counterpoint.data import Collection

__all__ = ["judgements_of", "only_split", "run_of"]


def run_of(given: Run | Mapping[str, Mapping[str, float]] | str | Path) -> Run:
    """A run; one of a table of scores (query to document to score) or in a TREC file is made or read.

    Raises:
        ConfigError: it is something else.
        DataError: a score is not a finite number, or the file cannot be read.
    """
    if isinstance(given, Run):
        return given
    if isinstance(given, str | Path):
        return Run.read(given)
    return Run(_table(given, "a run", "a Run or {query: {document: score}}"))


def judgements_of(given: Qrels | str | Path) -> dict[str, dict[str, int]]:
    """Judgements of queries that have any: a table, a qrels file, or a collection with one split or "test".

    Raises:
        ConfigError: it is something else, or it is not clear which split of a collection is meant.
        DataError: they cannot be read, a grade is no whole number, or there is none at all.
    """
    if isinstance(given, str | Path):
        found = _read(given)
    else:
        found = _table(given, "judgements", "{query: {document: grade}}")
    judged = {query: _grades(query, grades) for query, grades in found.items() if grades}
    if not judged:
        raise DataError("there is no judgement to evaluate against; is this the right split?")
    return judged


def only_split(collection: Collection) -> str:
    """The split that is meant where none is named.

    Raises:
        ConfigError: there are several, none of them "test", or there is none.
    """
    splits = collection.splits
    if len(splits) == 1 or "test" in splits:
        return "test" if "test" in splits else splits[0]
    raise ConfigError(
        f"{collection.name}: which judgements? there are {', '.join(splits) or 'none'}; name one: split="
    )


def _read(source: str | Path) -> Qrels:
    from counterpoint.data import open_collection, read_qrels

    if Path(source).is_file():
        return read_qrels(source)
    collection = open_collection(source)
    splits = collection.splits
    if len(splits) > 1 and "test" not in splits:
        raise ConfigError(
            f"{source}: which judgements? there are {', '.join(splits)}; name a file, such as "
            f"{Path(source) / 'qrels' / (splits[0] + '.tsv')}"
        )
    return collection.qrels(only_split(collection))


def _table(given: Any, what: str, wanted: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(found, Mapping) for found in given.values()):
        return given
    raise ConfigError(f"{what}: expected {wanted} or the path of a file, found {type(given).__name__}")


def _grades(query: str, grades: Mapping[str, Any]) -> dict[str, int]:
    """Grades as trec_eval takes them; numpy's whole numbers are none of Python's."""
    try:
        return {document: index(grade) for document, grade in grades.items()}
    except TypeError as error:
        raise DataError(f"query {query!r}: a grade must be a whole number ({error})") from error
