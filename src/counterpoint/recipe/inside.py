"""Parts of a recipe, for the checks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from counterpoint.config import Declared
from counterpoint.learn import Teacher, Train
from counterpoint.recipe.recipe import Recipe, declared_in

__all__ = ["outside_teachers", "training"]


def training(recipe: Recipe) -> list[Train]:
    """The training stages."""
    return [stage for stage in recipe.stages if isinstance(stage, Train)]


def outside_teachers(value: Any, where: str) -> Iterator[tuple[str, Declared]]:
    """Yield everything declared inside a value with its path, except what is inside a teacher.

    A teacher's scorer refers to the teacher's vector sets, not to those of the model in training.
    """
    taught: list[str] = []
    for path, part in declared_in(value, where):
        if isinstance(part, Teacher):
            taught.append(f"{path}.")
        elif not path.startswith(tuple(taught)):
            yield path, part
