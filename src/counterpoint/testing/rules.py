"""Try rules repeatedly with random input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from counterpoint.part import Part

__all__ = ["broken_rule", "making", "try_rules"]

T = TypeVar("T")


def try_rules(rules: Sequence[Callable[[T, Random], None]], declare: Callable[[], T], draws: int) -> None:
    """Try every rule on `draws` fresh objects.

    Raises:
        AssertionError: naming the broken rule, its docstring, the draw, and what went wrong.
    """
    for rule in rules:
        for seed in range(draws):
            made = declare()
            try:
                rule(made, Random(seed))
            except Exception as error:
                raise broken_rule(type(made), f"{rule.__name__!r} at draw {seed}", rule, error) from error


def broken_rule(cls: type, where: str, rule: Callable[..., None], error: Exception) -> AssertionError:
    """The error for a broken rule, whatever it was noticed by."""
    what = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
    return AssertionError(f"{cls.__name__} breaks the rule {where}: {rule.__doc__} {what}")


def making(declare: object, example: str) -> None:
    """Refuse a finished object where a function that makes one is expected: rules change what they check.

    Raises:
        TypeError: it is a part, or cannot be called.
    """
    if isinstance(declare, Part) or not callable(declare):
        found = type(declare).__name__
        raise TypeError(f"expected a function that makes one, found a finished {found}; write {example}")
