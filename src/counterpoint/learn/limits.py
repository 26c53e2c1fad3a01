"""Faults of a setting's numbers, to be reported together."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["no_numbers", "no_shares", "too_low"]


def too_low(setting: object, who: str, **least: int) -> list[str]:
    """A fault for each number of a setting that is below its minimum. None is no number."""
    given = {name: value for name in least if (value := getattr(setting, name)) is not None}
    return no_numbers(who, given) or [
        f"{who}: {name} must be at least {least[name]}, found {value}"
        for name, value in given.items()
        if value < least[name]
    ]


def no_shares(setting: object, who: str, *names: str) -> list[str]:
    """A fault for each number of a setting that is not between 0 and 1."""
    given = {name: getattr(setting, name) for name in names}
    return no_numbers(who, given) or [
        f"{who}: {name} is a share between 0 and 1, found {value}"
        for name, value in given.items()
        if not 0 <= value <= 1
    ]


def no_numbers(who: str, given: Mapping[str, object]) -> list[str]:
    """A fault for each value that is no number, such as "ten"; recipes are written by hand."""
    return [
        f"{who}: {name} must be a number, found {value!r}"
        for name, value in given.items()
        if isinstance(value, bool) or not isinstance(value, int | float)
    ]
