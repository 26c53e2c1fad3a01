"""Indexes on a command line, each with the name under which it is served."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from counterpoint.errors import ConfigError
from counterpoint.library.remote import is_address

__all__ = ["named_indexes"]


def named_indexes(given: list[str]) -> dict[str, str]:
    """Folders and addresses by name: NAME of NAME=INDEX, or else that of the folder, or of the index served.

    Raises:
        ConfigError: two have the same name.
    """
    found: dict[str, str] = {}
    for text in given:
        name, equals, place = text.partition("=")
        if not equals or is_address(text) or Path(text).exists():
            name, place = _name_of(text), text
        if name in found:
            raise ConfigError(f"two indexes are named {name!r}; write NAME=INDEX for one of them")
        found[name] = place
    return found


def _name_of(place: str) -> str:
    if not is_address(place):
        return Path(place).resolve().name
    parts = urlsplit(place)
    return parts.path.strip("/") or parts.netloc
