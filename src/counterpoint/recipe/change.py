"""Change single settings of a recipe by their path: `stages.0.lr=1e-5`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from counterpoint.config import class_named, plain, unknown_argument
from counterpoint.errors import ConfigError
from counterpoint.recipe.recipe import Recipe, recipe_from
from counterpoint.suggestion import suggestion
from counterpoint.typed import MISFIT, described, fitted, hints_of, is_part, item_hint, shown

__all__ = ["change"]

WORDS = {"true": True, "false": False, "none": None, "null": None}


def change(recipe: Recipe, assignments: Sequence[str]) -> Recipe:
    """Return a recipe with some settings changed. The original is unchanged.

    A path consists of names of constructor arguments, numbers into lists (stages also by name) and keys of
    tables. A value is a Python or JSON literal. Anything else is a text, so `stages.train.schedule=cosine`
    needs no quotes. Its type must be that of the argument.

    Args:
        recipe: what to change.
        assignments: "path=value", applied in order.

    Raises:
        ConfigError: listing every assignment that cannot be applied.

    Example:
        >>> change(load_recipe("colbert"), ["stages.train.lr=1e-5", "seed=3"]).seed
        3
    """
    data: Any = recipe.resolved()
    faults: list[str] = []
    for assignment in assignments:
        path, equals, text = assignment.partition("=")
        try:
            if not equals:
                raise ConfigError("expected path=value, as in stages.0.lr=1e-5")
            data = _changed(data, Recipe, path.strip().split("."), text.strip())
        except ConfigError as error:
            faults += [f"--set {assignment}: {fault}" for fault in error.faults]
    if faults:
        raise ConfigError(*faults)
    return recipe_from(data, "with --set", like=recipe) if assignments else recipe


def _changed(data: Any, hint: Any, path: Sequence[str], text: str) -> Any:
    """Copy plain data with the value at a path replaced."""
    if not path:
        return _value(text, hint)
    name, rest = path[0], path[1:]
    if is_part(data):
        cls = class_named(data["part"])
        known, name = cls.parameters_of(), cls.renamed.get(name, name)
        if name not in known:
            raise ConfigError(unknown_argument(cls, name, known))
        return {**data, name: _changed(data.get(name), hints_of(cls).get(name, Any), rest, text)}
    if isinstance(data, list):
        at = _position(data, name)
        inside = item_hint(hint, Sequence)
        return [_changed(item, inside, rest, text) if i == at else item for i, item in enumerate(data)]
    if isinstance(data, Mapping):
        inside = item_hint(hint, Mapping)
        if name not in data and (rest or any(map(is_part, data.values()))):
            raise ConfigError(_nothing_named(name, data))
        return {**data, name: _changed(data.get(name), inside, rest, text)}
    raise ConfigError(f"there is no {name!r} below {shown(data)}")


def _position(items: Sequence[Any], name: str) -> int:
    if name.isascii() and name.isdecimal():
        if int(name) >= len(items):
            raise ConfigError(f"there is no number {name}; the list has {len(items)} entries, from 0")
        return int(name)
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    if name not in names:
        raise ConfigError(_nothing_named(name, [found for found in names if found]))
    if names.count(name) > 1:
        raise ConfigError(f"{names.count(name)} entries are named {name!r}; use a number from 0")
    return names.index(name)


def _nothing_named(name: str, known: Iterable[str]) -> str:
    known = list(known)
    hint = suggestion(name, known, end=" ")
    return f"nothing is named {name!r}; {hint}there are {', '.join(known) or 'only numbers, from 0'}"


def _value(text: str, hint: Any) -> Any:
    """Read a text as a value for an annotation: as a literal, or else as the text itself."""
    readings: list[Any] = [text]
    if text.lower() in WORDS:
        readings.insert(0, WORDS[text.lower()])
    else:
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):  # not a literal, so a text
            readings.insert(0, ast.literal_eval(text))
    found = next((value for reading in readings if (value := fitted(reading, hint)) is not MISFIT), MISFIT)
    if found is MISFIT:
        raise ConfigError(f"expected {described(hint)}, found {shown(readings[0])}")
    return plain(found)
