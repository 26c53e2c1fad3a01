"""Convert declared objects (parts and settings) to plain data and back, without torch.

A class needs `to_dict`, `from_dict`, `parameters_of`, and a base that this module knows: `Setting` below for
dataclasses, `Part` for modules. Its data name the class as `package:Class`.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from importlib.metadata import entry_points
from typing import Any, ClassVar, Self, TypeVar

from counterpoint.errors import ArtifactError, ConfigError, CounterpointError
from counterpoint.suggestion import suggestion

__all__ = [
    "NONE",
    "PARTS",
    "RECIPE_MODULE",
    "Declared",
    "Setting",
    "class_named",
    "installed",
    "is_ours",
    "name_of",
    "others",
    "plain",
    "renames",
    "restore",
    "unknown_argument",
]

PARTS = "counterpoint.parts"  # entry points of installed packages
RECIPE_MODULE = "recipe_"  # a recipe's file is the module of this and the file's name
NONE = {"none": True}  # TOML has no null
OURS = re.compile(r"counterpoint(\.[a-z]\w*)+", re.ASCII)  # not `__main__`, which runs when it is imported


class Declared:
    """Base of objects that are fully declared by their constructor's arguments."""

    provenance: frozenset[str] = frozenset()
    """Arguments that record an origin and do not change the computation; not part of the fingerprint."""
    renamed: ClassVar[Mapping[str, str]] = {}
    """Former argument names and today's; set by `renames`."""
    needs_vectors: ClassVar[bool] = False
    """Whether it needs a model that makes vectors; always so with an argument `on` (a vector set)."""

    @classmethod
    def parameters_of(cls) -> Mapping[str, inspect.Parameter]:
        """The constructor's arguments by name. A class without a constructor has none."""
        found = dict(inspect.signature(cls.__init__).parameters)
        found.pop("self")
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # torch's Module has both
        return {name: parameter for name, parameter in found.items() if parameter.kind not in several}

    def to_dict(self, *, provenance: bool = True, defaults: bool = False) -> dict[str, Any]:
        """The object as plain data: its class, and every argument that differs from its default.

        Args:
            provenance: include the arguments named in `provenance`.
            defaults: also include arguments with their default, here and inside, so that the data mean the
                same if a default changes. Only a default of None is left out.
        """
        config: dict[str, Any] = {"part": name_of(type(self))}
        for name, default in self._defaults().items():
            value = getattr(self, name)
            hidden = name in self.provenance and not provenance
            told = isinstance(value, Declared) or not _equal(value, default)
            if not hidden and (told or (defaults and value is not None)):
                config[name] = plain(value, provenance=provenance, defaults=defaults)
        return config

    @classmethod
    def checked_arguments(cls, config: Mapping[str, Any]) -> dict[str, Any]:
        """Restore the arguments from plain data.

        Raises:
            ConfigError: lists every unknown or missing argument, here and inside.
        """
        known = cls.parameters_of()
        config = cls.with_new_names(config)
        faults = [unknown_argument(cls, name, known) for name in config if name not in known]
        faults += [
            f"{cls.__name__}: {name!r} is missing"
            for name, parameter in known.items()
            if parameter.default is inspect.Parameter.empty and name not in config
        ]
        arguments = {}
        for name, value in config.items():
            try:
                arguments[name] = restore(value)
            except ConfigError as error:
                faults += error.faults
        if faults:
            raise ConfigError(*faults)
        return arguments

    @classmethod
    def with_new_names(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments by today's names.

        Raises:
            ConfigError: an argument has its former name and today's.
        """
        if faults := [
            f"{cls.__name__}: {old!r} and {new!r} are two names of one argument; keep {new!r}"
            for old, new in cls.renamed.items()
            if old in given and new in given
        ]:
            raise ConfigError(*faults)
        return {cls.renamed.get(name, name): value for name, value in given.items()}

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return {name: parameter.default for name, parameter in cls.parameters_of().items()}


Made = TypeVar("Made", bound=Declared)


def renames(**old: str) -> Callable[[type[Made]], type[Made]]:
    """Let a class take former names of its arguments, in Python and in data, so that old recipes load.

    Args:
        old: today's name by former name.
    """

    def decorate(cls: type[Made]) -> type[Made]:
        construct = cls.__init__

        @wraps(construct)
        def __init__(self: Made, *arguments: Any, **given: Any) -> None:
            construct(self, *arguments, **cls.with_new_names(given))

        cls.__init__ = __init__
        cls.renamed = old
        return cls

    return decorate


class Setting(Declared):
    """Base of declared frozen dataclasses: stages, samplers, negatives, stop rules."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Defaults of a dataclass's fields, including those made by a factory."""
        return {
            field.name: field.default_factory() if field.default_factory is not MISSING else field.default
            for field in fields(cls)  # type: ignore[arg-type]
        }

    @classmethod
    def from_dict(cls, config: Mapping[str, Any]) -> Self:
        """Restore the setting that `to_dict` described.

        Raises:
            ConfigError: lists every fault.
            ArtifactError: the class is unknown.
        """
        found = restore(config)
        if not isinstance(found, cls):
            raise ConfigError(f"expected a {cls.__name__}, found a {type(found).__name__}")
        return found


def plain(value: Any, *, provenance: bool = True, defaults: bool = False) -> Any:
    """Convert a declared object, or one of its arguments, to data for TOML and JSON.

    Raises:
        ConfigError: it contains something else.
    """
    if isinstance(value, Declared):
        return value.to_dict(provenance=provenance, defaults=defaults)
    if value is None:
        return dict(NONE)
    if isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "items"):
        return {key: plain(item, provenance=provenance, defaults=defaults) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [plain(item, provenance=provenance, defaults=defaults) for item in value]
    what = f"found {type(value).__name__}"
    if isinstance(value, type):
        what = f"found the class {value.__name__} itself; write {value.__name__}(…)"
    elif hasattr(value, "forward"):  # a torch module, without importing torch here
        what += "; derive it from Loss, Scorer, Transform, Head or Part instead of from Module"
    raise ConfigError(f"an argument must be plain data or a declared object, {what}")


def restore(value: Any) -> Any:
    """Convert plain data back to declared objects; nothing is loaded or allocated.

    Raises:
        ConfigError: lists every fault.
        ArtifactError: a class is unknown.
    """
    if value == NONE:
        return None
    if isinstance(value, Mapping):
        if "part" in value:
            rest = dict(value)
            cls = class_named(rest.pop("part"))
            arguments = cls.checked_arguments(rest)
            try:
                return cls(**arguments)
            except CounterpointError:
                raise
            except (KeyError, TypeError, ValueError) as error:  # such as torch's, for names like "a.b"
                raise ConfigError(f"{cls.__name__}: {error}") from error
        return {key: restore(item) for key, item in value.items()}
    if isinstance(value, list):
        return [restore(item) for item in value]
    return value


def name_of(cls: type) -> str:
    """Public name of a class, with its package but without the file inside it, so that files can be moved."""
    module = cls.__module__
    if module.startswith("counterpoint."):
        module = ".".join(module.split(".")[:2])
    return f"{module}:{cls.__qualname__}"


def class_named(name: object) -> Any:
    """Find a class among ours, those already imported, and the `counterpoint.parts` entry points.

    Raises:
        ArtifactError: the class is not found, or cannot be declared.
    """
    if not isinstance(name, str) or name.count(":") != 1:
        raise ArtifactError(f"expected part = 'package:Class', found {name!r}")
    module, _, attribute = name.partition(":")
    if is_ours(name):
        try:
            found = getattr(importlib.import_module(module), attribute, None)
        except ModuleNotFoundError:
            found = None
    else:
        # Prefer what the module contains now to classes from an earlier run of its file.
        found = getattr(sys.modules.get(module), attribute, None)
        if found is None:
            found = next((cls for cls in _subclasses(Declared) if name_of(cls) == name), None)
        if found is None:
            found = installed(name)
    if not (isinstance(found, type) and issubclass(found, Declared)) or inspect.isabstract(found):
        known = ", ".join(sorted(point.value for point in entry_points(group=PARTS))) or "none"
        remedy = (
            "if it is your own, import its module before loading, or install a package that names it under "
            f"{PARTS} (there: {known})"
        )
        if is_ours(name):
            remedy = f"{module} exports no such class"
        if module.startswith(RECIPE_MODULE):
            file = f"{module.removeprefix(RECIPE_MODULE)}.py"
            remedy = (
                f"it is defined in the recipe file {file}; name that file as the recipe, or in Python call "
                "load_recipe on it first; other commands find the class only in an installed package"
            )
        raise ArtifactError(f"unknown part {name!r}; {remedy}")
    return found


def installed(name: str) -> Any:
    """Find a class among the parts of installed packages; None if they do not have it.

    Raises:
        ArtifactError: it cannot be imported.
    """
    module, _, attribute = name.partition(":")
    package = module.partition(".")[0]
    for point in entry_points(group=PARTS):
        # The package may name it by another of its modules, which imports it.
        if (point.module.partition(".")[0], point.attr) == (package, attribute):
            try:
                found = point.load()
            except Exception as error:  # whatever their code may raise
                why = f"{type(error).__name__}: {error}"
                raise ArtifactError(
                    f"the part {point.value!r}, which an installed package names under {PARTS}, cannot be "
                    f"imported: {why}"
                ) from error
            if point.value == name or (isinstance(found, type) and name_of(found) == name):
                return found
    return None


def is_ours(name: str) -> bool:
    """Whether `package:Class` is in one of Counterpoint's packages."""
    return OURS.fullmatch(name.partition(":")[0]) is not None


def others() -> list[str]:
    """The names of all imported classes that are not Counterpoint's own."""
    return sorted({name for cls in _subclasses(Declared) if not is_ours(name := name_of(cls))})


def unknown_argument(cls: type, name: str, known: Iterable[str]) -> str:
    """A message about an unknown argument, with the most similar known one."""
    known = list(known)
    hint = suggestion(name, known, f"it has {', '.join(known) or 'none'}")
    return f"{cls.__name__}: unknown argument {name!r}; {hint}"


def _subclasses(cls: type) -> list[type]:
    return [found for child in cls.__subclasses__() for found in (child, *_subclasses(child))]


def _equal(value: Any, default: Any) -> bool:
    """Whether an argument equals its default; a list and a tuple of equal items are equal."""
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return len(value) == len(default) and all(map(_equal, value, default))
    return bool(value == default)
