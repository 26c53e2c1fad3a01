"""Read files that other software may have written; errors in them are reported with their path."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterpoint.errors import ArtifactError, ConfigError, CounterpointError

__all__ = ["parse_toml", "reading"]

DEEPEST = 100  # levels; declared parts need about twenty, and recursion ends at about a thousand


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Report any failure in this block that settings in `path` cause as an error of `path`.

    A model has dozens of settings, and other formats do not check theirs: each may be missing or of any type.
    A failure in our code or in a library is then not a bug of either.

    Raises:
        ArtifactError: something failed; names the path.
    """
    try:
        yield
    except ConfigError as error:
        raise ArtifactError("; ".join(error.faults), path=path) from error
    except ArtifactError as error:
        if error.path is None:
            raise ArtifactError(str(error), path=path) from error
        raise
    except CounterpointError:
        raise
    except (
        ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError
    ) as error:  # fmt: skip
        raise ArtifactError(
            f"its settings cannot be used ({type(error).__name__}: {error}); one of them is missing "
            "or does not follow its format",
            path=path,
        ) from error


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML document into plain data.

    Raises:
        ValueError: it is not valid TOML, has a number of thousands of digits, or is nested too deeply.
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
