"""Numbers as people type and read them: `50M` documents, `64GB` of memory."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from counterpoint.errors import ConfigError

__all__ = ["parse_bytes", "parse_count", "shown_bytes", "shown_count", "shown_hours"]

COUNTS: Mapping[str, float] = MappingProxyType({"": 1, "k": 1e3, "m": 1e6, "b": 1e9})
BYTES: Mapping[str, float] = MappingProxyType({"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12})
NUMBER = re.compile(r"\s*([0-9][0-9,_]*(?:\.[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)
MOST = 1e15


def parse_count(text: str, option: str) -> float:
    """Parse a count such as `200k`, `50M`, `1.5B` or `1,000`.

    Raises:
        ConfigError: it is not a number above 0 with one of these units.

    Example:
        >>> parse_count("1.5B", "--documents")
        1500000000.0
    """
    return _parsed(text, option, COUNTS, "a number such as 200k, 50M or 1.5B")


def parse_bytes(text: str, option: str) -> float:
    """Parse an amount of memory or disk such as `64GB`; units are powers of 1,000.

    Raises:
        ConfigError: it is not a number above 0 with a unit from KB to TB.
    """
    return _parsed(text, option, BYTES, "an amount such as 500MB, 64GB or 2TB")


def shown_count(value: float) -> str:
    """A count for people.

    >>> shown_count(50_000_000), shown_count(1_234)
    ('50 million', '1,234')
    """
    for size, name in ((1e9, "billion"), (1e6, "million")):
        if value >= size:
            return f"{value / size:,.4g} {name}"
    return f"{value:,.0f}"


def shown_bytes(value: float) -> str:
    """An amount of memory or disk for people, in powers of 1,000.

    >>> shown_bytes(2_345_000_000)
    '2.3 GB'
    """
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if value >= size:
            return f"{value / size:,.1f} {name}"
    return f"{value:,.0f} bytes"


def shown_hours(value: float) -> str:
    """A duration for people.

    >>> shown_hours(0.5), shown_hours(5), shown_hours(240)
    ('30 minutes', '5.0 hours', '10 days')
    """
    if value < 1:
        return f"{value * 60:,.0f} minutes"
    if value < 72:
        return f"{value:,.1f} hours" if value < 10 else f"{value:,.0f} hours"
    return f"{value / 24:,.0f} days"


def _parsed(text: str, option: str, units: Mapping[str, float], expected: str) -> float:
    found = NUMBER.fullmatch(text)
    if found and found[2].lower() in units:
        value = float(found[1].replace(",", "").replace("_", "")) * units[found[2].lower()]
        if 0 < value <= MOST:
            return value
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    raise ConfigError(f"{option}: expected {expected}, found {shown!r}")
