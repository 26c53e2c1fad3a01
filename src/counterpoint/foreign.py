"""Reading what somebody else may have written: whatever is wrong with it is said of the file, not of us."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterpoint.errors import ArtifactError, ConfigError, CounterpointError

__all__ = ["parse_toml", "reading"]

DEEPEST = 100  # levels; what is declared needs about twenty, and recursion ends at about a thousand


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Whatever settings in `path` make fail in this block is said of `path`.

    A model has dozens of settings, and formats of others do not check theirs: each may be missing or of any
    type. What then fails in our code or in a library's is no bug of either.

    Raises:
        ArtifactError: naming the path.
    """
    try:
        yield
    except ConfigError as error:
        raise ArtifactError(str(error), path=path) from error
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
            f"its settings cannot be carried out ({type(error).__name__}: {error}); one of them is missing "
            "or not what its format says",
            path=path,
        ) from error


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
