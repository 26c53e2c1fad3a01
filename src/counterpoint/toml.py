"""TOML that somebody else may have written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any

__all__ = ["parse_toml"]

DEEPEST = 100  # levels; what is declared needs about twenty, and recursion ends at about a thousand


def parse_toml(text: str) -> dict[str, Any]:
    """A TOML document as plain data.

    Raises:
        ValueError: it is no TOML, has a number of thousands of digits, or is nested too deeply.
    """
    too_deep = f"nested deeper than {DEEPEST} levels"
    try:
        found = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError(too_deep) from error
    level: list[Any] = [found]
    for _ in range(DEEPEST):
        inside = [list(x.values()) if isinstance(x, Mapping) else x for x in level]
        level = [item for items in inside for item in items if isinstance(item, Mapping | list)]
    if level:
        raise ValueError(too_deep)
    return found
