"""Indexes and runs on a command line, each with a name: `NAME=PLACE`, or one made of the place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from counterpoint.errors import ConfigError
from counterpoint.library.remote import is_address

__all__ = ["index_name", "named", "named_places", "run_name"]


def named(word: str) -> tuple[str | None, str]:
    """Split `NAME=PLACE` at the equals sign, unless the whole word is an existing path or an address."""
    name, equals, place = word.partition("=")
    if not equals or not name or "/" in name or Path(word).exists():
        return None, word
    return name, place


def run_name(path: str) -> str:
    """The name of a run that was given none: its file's, up to the first full stop."""
    return Path(path).name.split(".")[0]


def named_places(given: Sequence[str], name_of: Callable[[str], str], what: str) -> dict[str, str]:
    """Places by name: NAME of `NAME=PLACE`, else `name_of` the place; `what` they are, in the error.

    Raises:
        ConfigError: two have the same name.
    """
    found: dict[str, str] = {}
    for name, place in map(named, given):
        name = name or name_of(place)
        if name in found:
            raise ConfigError(f"two {what} are called {name!r}; name them: NAME={place}")
        found[name] = place
    return found


def index_name(place: str) -> str:
    """The name of an index that was given none: that of its folder, or of the index served."""
    if not is_address(place):
        return Path(place).resolve().name
    parts = urlsplit(place)
    return parts.path.strip("/") or parts.netloc
