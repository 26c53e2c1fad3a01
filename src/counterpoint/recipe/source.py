"""Load recipes: by name from the package, or from a Python file, a TOML file, or the folder of a run."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from counterpoint.config import RECIPE_MODULE, installed, is_ours, name_of
from counterpoint.errors import ConfigError, CounterpointError
from counterpoint.recipe.change import change
from counterpoint.recipe.recipe import Recipe, declared_in
from counterpoint.shipped import shipped_recipes
from counterpoint.suggestion import suggestion
from counterpoint.typed import MISFIT, fitted, shown

__all__ = ["RECIPE_FILE", "load_recipe", "parts_to_install", "variants_of"]

RECIPE_FILE = "recipe.toml"


def variants_of(path: Path) -> dict[str, Sequence[str]]:
    """The variants of the recipe in a Python file: name to settings, in the form that `change` takes."""
    found = getattr(_run(path), "variants", {})
    if fitted(found, Mapping[str, Sequence[str]]) is MISFIT:
        raise ConfigError(f"{path}: `variants` must be a table of lists of settings, found {shown(found)}")
    return dict(found)


def load_recipe(source: str | Path) -> Recipe:
    """Load a recipe by name, or from a `.py` file, a `.toml` file, or the folder of a run.

    A Python file is executed, and must define `recipe`. It may define `variants`: settings by name that turn
    it into another recipe, such as `hil-paper:without-idf`. A TOML file contains data only and runs no code,
    so import your own classes before you load it.

    Raises:
        ConfigError: there is no such recipe, or it is not a recipe. The message lists every fault.
        ArtifactError: a `.toml` file is damaged, or names an unknown class.
    """
    shipped = shipped_recipes()
    if str(source) in shipped:
        return _from_python(shipped[str(source)])
    before, _, variant = str(source).rpartition(":")
    if before in shipped or (before.endswith(".py") and Path(before).is_file()):
        return _variant(before, shipped.get(before, Path(before)), variant)
    path = Path(source)
    if path.is_dir():
        path = path / RECIPE_FILE
        if not path.is_file():
            raise ConfigError(f"{source}: no {RECIPE_FILE} in this folder; it is not that of a run")
    if path.is_file() and path.suffix == ".py":
        return _from_python(path)
    if path.is_file() and path.suffix == ".toml":
        return Recipe.from_toml(_text(path), str(path))
    if path.is_file():
        raise ConfigError(f"{path}: a recipe is a .py or .toml file, or the folder of a run")
    if path.suffix in (".py", ".toml") or len(path.parts) > 1:
        raise ConfigError(f"{source}: no such file or folder")
    hint = suggestion(source, shipped, end=" ")
    raise ConfigError(
        f"there is no recipe {str(source)!r}; {hint}The package has {', '.join(shipped)}; or name a "
        ".py file, a .toml file, or the folder of a run"
    )


def parts_to_install(recipe: Recipe) -> list[str]:
    """The classes of a recipe's model that are not ours, and that no installed package names as parts."""
    named = {name_of(type(part)) for _, part in declared_in(recipe.model)}
    return sorted(name for name in named if not is_ours(name) and installed(name) is None)


def _variant(name: str, path: Path, variant: str) -> Recipe:
    known = variants_of(path)
    if variant not in known:
        raise ConfigError(f"{name} has no variant {variant!r}; it has {', '.join(known) or 'none'}")
    try:
        changed = change(_from_python(path), known[variant])
    except ConfigError as error:
        raise ConfigError(*[f"{path}: variant {variant!r}: {fault}" for fault in error.faults]) from error
    return replace(changed, name=f"{changed.name}:{variant}")


def _from_python(path: Path) -> Recipe:
    found = getattr(_run(path), "recipe", None)
    if not isinstance(found, Recipe):
        what = "does not define it" if found is None else f"defines a {type(found).__name__}"
        raise ConfigError(f"{path}: expected a Recipe under the name `recipe`; the file {what}")
    return found


def _run(path: Path) -> ModuleType:
    """Execute the file as a new module."""
    spec = importlib.util.spec_from_file_location(f"{RECIPE_MODULE}{path.stem}", path)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module they are defined in
    try:
        spec.loader.exec_module(module)
    except CounterpointError as error:
        raise ConfigError(f"{_place(error, path)}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever the user's code may raise
        raise ConfigError(f"{_place(error, path)}: {type(error).__name__}: {error}") from error
    return module


def _place(error: BaseException, path: Path) -> str:
    """The file and its last line in the traceback."""
    here = os.path.abspath(path)  # as the loader of modules names it
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == here]
    if isinstance(error, SyntaxError) and error.filename == here:
        lines.append(error.lineno)
    return f"{path}:{lines[-1]}" if lines else str(path)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from error
