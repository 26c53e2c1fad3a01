"""Indexes and runs on a command line, each with a name: `NAME=PLACE`, or one made of the place."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from counterpoint.errors import ConfigError
from counterpoint.library.remote import is_address

__all__ = ["named", "named_indexes", "run_name"]


def named(word: str) -> tuple[str | None, str]:
    """Split `NAME=PLACE` at the equals sign, unless the whole word is an existing path or an address."""
    name, equals, place = word.partition("=")
    if not equals or not name or "/" in name or Path(word).exists():
        return None, word
    return name, place


def run_name(path: str) -> str:
    """The name of a run that was given none: its file's, up to the first full stop."""
    return Path(path).name.split(".")[0]


def named_indexes(given: list[str]) -> dict[str, str]:
    """Folders and addresses by name: NAME of NAME=INDEX, or else that of the folder, or of the index served.

    Raises:
        ConfigError: two have the same name.
    """
    found: dict[str, str] = {}
    for text in given:
        name, place = named(text)
        name = name or _name_of(place)
        if name in found:
            raise ConfigError(f"two indexes are named {name!r}; write NAME=INDEX for one of them")
        found[name] = place
    return found


def _name_of(place: str) -> str:
    if not is_address(place):
        return Path(place).resolve().name
    parts = urlsplit(place)
    return parts.path.strip("/") or parts.netloc
