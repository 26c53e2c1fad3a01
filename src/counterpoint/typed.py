"""Check plain data against the annotations of constructors, and describe what was expected."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from counterpoint.config import NONE, Declared, class_named, name_of, unknown_argument
from counterpoint.errors import ArtifactError, ConfigError

__all__ = ["MISFIT", "described", "faults_of", "fitted", "hints_of", "is_part", "item_hint", "shown"]

MISFIT = object()
"""Result of `fitted` for a value that does not match."""

NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "True or False", NoneType: "None"}


def hints_of(cls: type[Declared]) -> dict[str, Any]:
    """The annotations of a constructor's arguments as types.

    Raises:
        ConfigError: an annotation uses a name that exists only during type checking.
    """
    try:
        return get_type_hints(cls if is_dataclass(cls) else cls.__init__)
    except NameError as error:
        raise ConfigError(
            f"{name_of(cls)}: cannot read its annotations ({error}); import their names outside of "
            "`if TYPE_CHECKING`"
        ) from error


def fitted(value: Any, hint: Any) -> Any:
    """Convert plain data to the annotated type (such as a whole number to a float), or return `MISFIT`.

    Numbers must be finite, and whole numbers must fit into 64 bits.
    """
    arguments = get_args(hint)
    origin = get_origin(hint) or hint
    if hint is Any:
        return value
    if origin in (Union, UnionType):
        return next((found for a in arguments if (found := fitted(value, a)) is not MISFIT), MISFIT)
    if origin is Literal:
        return value if any(type(value) is type(a) and value == a for a in arguments) else MISFIT
    if origin in (None, NoneType):
        return None if value is None or value == NONE else MISFIT
    if origin in (int, float):
        return _fitted_number(value, origin)
    if origin in (str, bool):
        return value if type(value) is origin else MISFIT
    if is_part(value):
        return value if issubclass(class_named(value["part"]), origin) else MISFIT
    if issubclass(origin, Mapping):
        return _fitted_mapping(value, hint) if isinstance(value, Mapping) else MISFIT
    if issubclass(origin, Sequence):
        return _fitted_sequence(value, origin, arguments) if isinstance(value, list | tuple) else MISFIT
    return MISFIT


def described(hint: Any) -> str:
    """Describe an annotation in words."""
    origin, arguments = get_origin(hint) or hint, get_args(hint)
    if hint in NAMES:
        return NAMES[hint]
    if origin in (Union, UnionType):
        return " or ".join(described(a) for a in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(repr, arguments))
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return "a list" + (f" of: {described(arguments[0])}" if arguments else "")
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a table" + (f" of: {described(arguments[1])}" if arguments else "")
    return "anything" if hint is Any else f"a {getattr(origin, '__name__', origin)}"


def item_hint(hint: Any, container: type) -> Any:
    """The annotation of items of a `Mapping` or `Sequence`; `MISFIT` if the annotation allows no such type.

    A tuple of fixed length has no such annotation; it is checked as a whole.
    """
    if hint is Any:
        return Any
    for option in get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,):
        origin, arguments = get_origin(option) or option, get_args(option)
        if isinstance(origin, type) and origin is not str and issubclass(origin, container):
            if _is_fixed(origin, arguments):
                return MISFIT
            return (arguments[1] if container is Mapping else arguments[0]) if arguments else Any
    return MISFIT


def faults_of(data: Any, hint: Any, path: str) -> Iterator[str]:
    """List everything in plain data that does not match an annotation, with its path, also inside parts."""
    container = Mapping if isinstance(data, Mapping) else Sequence
    inside = item_hint(hint, container)
    if is_part(data):
        yield from _faults_of_part(data, hint, path)
    elif isinstance(data, Mapping) and data != NONE and inside is not MISFIT:
        for key, value in data.items():
            yield from faults_of(value, inside, f"{path}.{key}")
    elif isinstance(data, list) and inside is not MISFIT:
        for at, value in enumerate(data):
            yield from faults_of(value, inside, f"{path}.{at}")
    elif fitted(data, hint) is MISFIT:
        yield f"{path}: expected {described(hint)}, found {shown(data)}"


def is_part(data: Any) -> bool:
    """Whether plain data describe a declared object."""
    return isinstance(data, Mapping) and "part" in data


def shown(data: Any) -> str:
    """Plain data for a message: the class of a declared object, else the value, shortened if long."""
    if is_part(data):
        return f"a {str(data['part']).rpartition(':')[2]}"
    text = "None" if data == NONE else repr(data)
    return text if len(text) <= 60 else f"{text[:60]}…"


def _faults_of_part(data: Mapping[str, Any], hint: Any, path: str) -> Iterator[str]:
    try:
        cls = class_named(data["part"])
    except ArtifactError as error:
        yield f"{path}: {error}"
        return
    if fitted(data, hint) is MISFIT:
        yield f"{path}: expected {described(hint)}, found {shown(data)}"
    hints, known = hints_of(cls), cls.parameters_of()
    given = {cls.renamed.get(name, name): name for name in data if name != "part"}
    for name, written in given.items():
        if name not in known:
            yield f"{path}: {unknown_argument(cls, written, known)}"
    for name in known:
        if name in given:
            yield from faults_of(data[given[name]], hints.get(name, Any), f"{path}.{given[name]}")
        elif known[name].default is inspect.Parameter.empty:
            yield f"{path}: {cls.__name__}: {name!r} is missing"


def _is_fixed(origin: type, arguments: Sequence[Any]) -> bool:
    return origin is tuple and bool(arguments) and arguments[-1] is not Ellipsis


def _fitted_number(value: Any, origin: type) -> Any:
    if type(value) is int and -(2**63) <= value < 2**63:
        return origin(value)
    return value if type(value) is float and origin is float and math.isfinite(value) else MISFIT


def _fitted_mapping(value: Mapping[str, Any], hint: Any) -> Any:
    found = {key: fitted(item, item_hint(hint, Mapping)) for key, item in value.items()}
    return MISFIT if any(item is MISFIT for item in found.values()) else found


def _fitted_sequence(value: Sequence[Any], origin: type, arguments: tuple[Any, ...]) -> Any:
    fixed = _is_fixed(origin, arguments)
    if fixed and len(arguments) != len(value):
        return MISFIT
    hints = arguments if fixed else [arguments[0] if arguments else Any] * len(value)
    found = [fitted(item, hint) for item, hint in zip(value, hints, strict=True)]
    return MISFIT if any(item is MISFIT for item in found) else found
