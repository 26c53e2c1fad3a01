"""Faults of a setting's numbers, to be reported together."""

from __future__ import annotations

__all__ = ["no_shares", "too_low"]


def too_low(setting: object, who: str, **least: int) -> list[str]:
    """A fault for each number of a setting that is below its minimum. None is no number."""
    return [
        f"{who}: {name} must be at least {low}, found {value}"
        for name, low in least.items()
        if (value := getattr(setting, name)) is not None and value < low
    ]


def no_shares(setting: object, who: str, *names: str) -> list[str]:
    """A fault for each number of a setting that is not between 0 and 1."""
    return [
        f"{who}: {name} is a share between 0 and 1, found {value}"
        for name in names
        if not 0 <= (value := getattr(setting, name)) <= 1
    ]
