"""Runs and judgements from objects, tables or files."""

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
    """Get a run from a `Run`, a table of scores (query to document to score) or a TREC file.

    Raises:
        ConfigError: it is something else.
        DataError: a score is not finite, or the file cannot be read.
    """
    if isinstance(given, Run):
        return given
    if isinstance(given, str | Path):
        return Run.read(given)
    return Run(_table(given, "a run", "a Run or {query: {document: score}}"))


def judgements_of(given: Qrels | Collection | str | Path) -> dict[str, dict[str, int]]:
    """Get judgements from a table, a qrels file, or a collection with one split or a split "test".

    A collection may be open, or be named by its location.

    Queries without judgements are left out.

    Raises:
        ConfigError: it is something else, or the split of a collection is ambiguous.
        DataError: they cannot be read, a grade is not a whole number, or there are none.
    """
    from counterpoint.data import Collection

    if isinstance(given, str | Path):
        found = _read(given)
    elif isinstance(given, Collection):
        found = given.qrels(only_split(given))
    else:
        found = _table(given, "judgements", "{query: {document: grade}}, an open collection")
    judged = {query: _grades(query, grades) for query, grades in found.items() if grades}
    if not judged:
        raise DataError("there are no judgements to evaluate against; check that this is the right split")
    return judged


def only_split(collection: Collection) -> str:
    """The default split of a collection: "test", or the only one.

    Raises:
        ConfigError: there are several, none of them "test", or there is none.
    """
    splits = collection.splits
    if len(splits) == 1 or "test" in splits:
        return "test" if "test" in splits else splits[0]
    raise ConfigError(
        f"{collection.name}: choose the judgements with split=; there are {', '.join(splits) or 'none'}"
    )


def _read(source: str | Path) -> Qrels:
    from counterpoint.data import open_collection, read_qrels

    if Path(source).is_file():
        return read_qrels(source)
    collection = open_collection(source)
    splits = collection.splits
    if len(splits) > 1 and "test" not in splits:
        raise ConfigError(
            f"{source}: there are several sets of judgements: {', '.join(splits)}; name a file, such as "
            f"{Path(source) / 'qrels' / (splits[0] + '.tsv')}"
        )
    return collection.qrels(only_split(collection))


def _table(given: Any, what: str, wanted: str) -> Mapping[str, Any]:
    if isinstance(given, Mapping) and all(isinstance(found, Mapping) for found in given.values()):
        return given
    raise ConfigError(f"{what}: expected {wanted} or the path of a file, found {type(given).__name__}")


def _grades(query: str, grades: Mapping[str, Any]) -> dict[str, int]:
    """Convert grades to Python integers for trec_eval; numpy's are not."""
    try:
        return {document: index(grade) for document, grade in grades.items()}
    except TypeError as error:
        raise DataError(f"query {query!r}: a grade must be a whole number ({error})") from error
