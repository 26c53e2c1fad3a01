"""Read a grid from TOML. All faults are reported together, with suggestions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, cast, get_args

from counterpoint.data import open_collection
from counterpoint.errors import ConfigError, CounterpointError
from counterpoint.foreign import parse_toml
from counterpoint.index import CodecName
from counterpoint.index.analysis import AnalyzerName
from counterpoint.measure import parse_measure
from counterpoint.search import WORKFLOWS, Workflow
from counterpoint.search.settings import FUSIONS, parse_feedback, parse_weights
from counterpoint.suggestion import suggestion
from counterpoint.sweep.grid import DEPTH, SECTIONS, CollectionEntry, Grid, ModelEntry

__all__ = ["read_grid"]

KEYS = ("measures", "models", "workflows", "k", "keep_encodings", "collections", "index", "search")
COLLECTION_KEYS = ("source", "name", "split", "relevant_from")


def read_grid(path: str | Path) -> Grid:
    """Read a grid. Sources are looked up, but nothing is loaded.

    Args:
        path: a TOML file. Its paths are relative to its folder.

    Raises:
        ConfigError: listing every fault.
    """
    path = Path(path)
    try:
        table = parse_toml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: the grid cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from error
    faults: list[str] = []
    _check_keys(table, KEYS, "", faults)
    grid = Grid(
        measures=_measures(table, faults),
        models=_models(table, path.parent, faults),
        workflows=cast("tuple[Workflow, ...]", _named(table, "workflows", tuple(WORKFLOWS), faults)),
        collections=_collections(table, path.parent, faults),
        settings={**_settings(table, "index", faults), **_settings(table, "search", faults)},
        k=_value(table, "k", DEPTH, _from_one, faults),
        keep_encodings=_value(table, "keep_encodings", True, _true_or_false, faults),
    )
    faults += _too_deep(grid)
    if faults:
        raise ConfigError(*(f"{path}: {fault}" for fault in faults))
    return grid


# -- one function per key; each appends faults and returns the valid values ------------------------------


def _measures(table: Mapping[str, Any], faults: list[str]) -> tuple[str, ...]:
    found = []
    for name in _strings(table, "measures", faults):
        try:
            parse_measure(name)
            found.append(name)
        except ConfigError as error:
            faults += [f"measures: {fault}" for fault in error.faults]
    _check_once(found, "measures", faults)
    return tuple(found)


def _models(table: Mapping[str, Any], base: Path, faults: list[str]) -> tuple[ModelEntry, ...]:
    found = []
    for entry in _list(table, "models", faults):
        given = {"model": entry} if isinstance(entry, str) else entry
        if not isinstance(given, dict) or not isinstance(given.get("model"), str):
            faults.append(f'models: expected a name or {{name = "…", model = "…"}}, found {entry!r}')
            continue
        _check_keys(given, ("name", "model"), "models: ", faults)
        source = given["model"]
        folder = base / source
        if folder.is_dir() and ("/" in source or source.startswith(".")):
            source = str(folder.resolve())
        elif source.startswith((".", "/")):
            faults.append(f"models: there is no folder {folder}")
        name = given.get("name", given["model"])
        found.append(ModelEntry(str(name), None if source == "none" else source))
    _check_once([entry.name for entry in found], "models", faults)
    return tuple(found)


def _collections(table: Mapping[str, Any], base: Path, faults: list[str]) -> tuple[CollectionEntry, ...]:
    found = []
    for number, given in enumerate(_list(table, "collections", faults), 1):
        where = f"collections, number {number}: "
        if not isinstance(given, dict) or not isinstance(given.get("source"), str):
            faults.append(f'{where}expected a table with source = "…", found {given!r}')
            continue
        _check_keys(given, COLLECTION_KEYS, where, faults)
        grade = given.get("relevant_from")
        if grade is not None and (type(grade) is not int or grade < 1):
            faults.append(f"{where}relevant_from must be a whole number from 1 up, found {grade!r}")
        source = given["source"]
        if ":" not in source:
            source = str((base / source).resolve())
        try:
            collection = open_collection(source)
            split = _split(given.get("split"), collection.splits)
        except CounterpointError as error:
            faults.append(f"{where}{error}")
            continue
        found.append(CollectionEntry(str(given.get("name", collection.name)), source, split, grade))
    _check_once([entry.name for entry in found], "collections (name)", faults)
    return tuple(found)


def _split(asked: object, splits: Sequence[str]) -> str:
    """The requested split, else `test`, else the only one."""
    if not splits:
        raise ConfigError("has no judgements (qrels/<split>.tsv), so there is nothing to measure against")
    if asked is None and "test" not in splits and len(splits) > 1:
        raise ConfigError(f"has the splits {', '.join(splits)}; choose one with split = …")
    chosen = asked or ("test" if "test" in splits else splits[0])
    if chosen not in splits:
        raise ConfigError(f"no judgements for a split {chosen!r}; it has {', '.join(splits)}")
    return str(chosen)


def _settings(
    table: Mapping[str, Any], section: Literal["index", "search"], faults: list[str]
) -> dict[str, tuple[Any, ...]]:
    given = table.get(section, {})
    if not isinstance(given, dict):
        faults.append(f"{section}: expected a table [{section}], found {given!r}")
        return {}
    _check_keys(given, SECTIONS[section], f"{section}: ", faults)
    found = {}
    for key in (key for key in SECTIONS[section] if key in given):
        values = given[key] if isinstance(given[key], list) else [given[key]]
        faults += [f"{section}.{key}: {fault}" for value in values if (fault := CHECKS[key](value))]
        if not values:
            faults.append(f"{section}.{key}: empty; give a value, or omit the key")
        _check_once(values, f"{section}.{key}", faults)
        found[key] = tuple(values)
    return found


def _named(table: Mapping[str, Any], key: str, known: Sequence[str], faults: list[str]) -> tuple[str, ...]:
    found = _strings(table, key, faults)
    check = _one_of(known)
    faults += [f"{key}: {fault}" for name in found if (fault := check(name))]
    _check_once(found, key, faults)
    return tuple(found)


def _strings(table: Mapping[str, Any], key: str, faults: list[str]) -> list[str]:
    found = _list(table, key, faults)
    faults += [f"{key}: expected a name in quotes, found {x!r}" for x in found if not isinstance(x, str)]
    return [x for x in found if isinstance(x, str)]


def _list(table: Mapping[str, Any], key: str, faults: list[str]) -> list[Any]:
    found = table.get(key)
    if isinstance(found, list) and found:
        return found
    faults.append(f"{key}: missing" if found is None else f"{key}: expected a list that is not empty")
    return []


def _value(table: Mapping[str, Any], key: str, default: Any, check: Check, faults: list[str]) -> Any:
    found = table.get(key, default)
    if (fault := check(found)) is None:
        return found
    faults.append(f"{key}: {fault}")
    return default


# -- checks ----------------------------------------------------------------------------------------------

Check = Callable[[Any], str | None]
"""Returns the fault of a value, or None."""


def _one_of(known: Sequence[str]) -> Check:
    return lambda value: None if value in known else f"unknown {value!r}; {_hint(value, known)}"


def _number(low: float, high: float) -> Check:
    def check(value: Any) -> str | None:
        fine = type(value) in (int, float) and low <= value <= high
        return None if fine else f"expected a number from {low:g} to {high:g}, found {value!r}"

    return check


def _from_one(value: Any) -> str | None:
    fine = type(value) is int and value >= 1
    return None if fine else f"expected a whole number from 1 up, found {value!r}"


def _true_or_false(value: Any) -> str | None:
    return None if isinstance(value, bool) else f"expected true or false, found {value!r}"


def _parsed(parse: Callable[[str], object], example: str) -> Check:
    def check(value: Any) -> str | None:
        try:
            parse(value if isinstance(value, str) else "")
        except ConfigError as error:
            return f'expected text such as "{example}", found {value!r} ({error.faults[0]})'
        return None

    return check


CHECKS: Mapping[str, Check] = MappingProxyType(
    {
        "codec": _one_of(get_args(CodecName)),
        "pool_factor": _number(1, 100),
        "analyzer": _one_of(get_args(AnalyzerName)),
        "identifiers": _true_or_false,
        "k1": _number(0, 100),
        "b": _number(0, 1),
        "fusion": _one_of(FUSIONS),
        "weights": _parsed(parse_weights, "lexical=1 mean=1"),
        "feedback": _parsed(parse_feedback, "0.1,5"),
    }
)


def _check_keys(table: Mapping[str, Any], known: Sequence[str], where: str, faults: list[str]) -> None:
    faults += [f"{where}unknown key {key!r}; {_hint(key, known)}" for key in table if key not in known]


def _check_once(values: Sequence[Any], where: str, faults: list[str]) -> None:
    twice = {repr(value) for value in values if values.count(value) > 1}
    faults += [f"{where}: {value} occurs more than once" for value in sorted(twice)]


def _hint(found: Any, known: Sequence[str]) -> str:
    return suggestion(found, known, f"choose from {', '.join(known)}")


def _too_deep(grid: Grid) -> list[str]:
    cutoffs = {name: dict(parse_measure(name).params).get("cutoff") for name in grid.measures}
    return [
        f"measures: {name} needs {cutoff} documents, but k is {grid.k}; write k = {cutoff}"
        for name, cutoff in cutoffs.items()
        if cutoff and int(cutoff) > grid.k
    ]
