"""Read the headers of our files: JSON or TOML that names what it describes, and its format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ArtifactError, DataError

__all__ = ["Header"]


@final
@dataclass(frozen=True)
class Header:
    """A kind of header.

    Attributes:
        what: a noun for messages, such as "index".
        readable: the formats that this version reads.
        remedy: what a user can do about a damaged file.
        renewal: what a user can do about another format. None for `remedy`.
        name: the value of `format`, if the file has its format's number under `version`. None if it has the
            number under `format`.
        error: what is raised.
        other: what is raised for another format. None for `error`.
    """

    what: str
    readable: tuple[int, ...]
    remedy: str
    renewal: str | None = None
    name: str | None = None
    error: type[ArtifactError] | type[DataError] = ArtifactError
    other: type[ArtifactError] | None = None

    def read(self, path: Path, parse: Callable[[str], Any] = json.loads, missing: str = "") -> dict[str, Any]:
        """The contents of a file, with its format checked.

        Args:
            path: the file.
            parse: reads JSON, or TOML.
            missing: the message if there is no such file.

        Raises:
            ArtifactError: the file is missing, damaged, something else, or of another format. With `error`,
                that error.
        """
        language = "JSON" if parse is json.loads else "TOML"
        try:
            found = parse(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise self.error(missing or f"this file is missing; {self.remedy}", path=path) from error
        except OSError as error:
            raise self.error(f"cannot be read: {error.strerror}", path=path) from error
        except (ValueError, RecursionError) as error:
            raise self.error(
                f"not valid {language}, so it is damaged ({error}); {self.remedy}", path=path
            ) from error
        if not isinstance(found, dict) or (self.name is not None and found.get("format") != self.name):
            raise self.error(f"not a Counterpoint {self.what}; {self.remedy}", path=path)
        self.check(found, path)
        return found

    def check(self, found: Mapping[str, Any], path: str | Path) -> None:
        """Check the format of contents that were read.

        Raises:
            ArtifactError: this version cannot read it. With `other` or `error`, that error.
        """
        version = found.get("format" if self.name is None else "version")
        if type(version) is not int or version not in self.readable:
            *most, last = map(str, self.readable)
            known = f"{', '.join(most)} and {last}" if most else last
            raise (self.other or self.error)(
                f"{self.what} format {version!r}, this version of counterpoint reads {known}; "
                f"{self.renewal or self.remedy}, or install the version that wrote it",
                path=path,
            )
