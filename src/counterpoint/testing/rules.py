"""Try rules repeatedly with random input."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

__all__ = ["try_rules"]

T = TypeVar("T")


def try_rules(rules: Sequence[Callable[[T, Random], None]], declare: Callable[[], T], draws: int) -> None:
    """Try every rule on `draws` fresh objects.

    Raises:
        AssertionError: naming the broken rule, its docstring, and the draw.
    """
    for rule in rules:
        for seed in range(draws):
            made = declare()
            try:
                rule(made, Random(seed))
            except AssertionError as error:
                broken = f"{type(made).__name__} breaks the rule {rule.__name__!r} at draw {seed}"
                raise AssertionError(f"{broken}: {rule.__doc__} {error}") from error
            except Exception as error:
                error.add_note(f"while {type(made).__name__} was checked by the rule {rule.__name__!r}")
                raise
