"""Which files of a folder are read: patterns and `.gitignore`; hidden and installed files never are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

__all__ = ["FileChoice", "Ignored", "installed"]

IGNORE = ".gitignore"
INSTALLED = ("node_modules", "__pycache__")


@final
@dataclass(frozen=True)
class FileChoice:
    """`.gitignore`-style patterns that choose files, relative to the folder that is read.

    Attributes:
        include: if given, read only files that match one of these.
        exclude: read neither files nor folders that match one of these.
        gitignore: skip what the `.gitignore` files of the folder and its subfolders name.

    Raises:
        ConfigError: a pattern is invalid.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    gitignore: bool = True

    def __post_init__(self) -> None:
        for option, patterns in (("include", self.include), ("exclude", self.exclude)):
            for pattern in patterns:
                try:
                    _spec((pattern,))
                except ValueError as error:
                    raise ConfigError(
                        f"--{option}: invalid pattern {pattern!r}; write it as in .gitignore, such as "
                        "'*.md', 'drafts/' or 'docs/**/*.rst'"
                    ) from error

    def excludes(self, name: str) -> bool:
        """Whether a file or folder is excluded; the name of a folder ends in a slash."""
        return bool(self.exclude) and _spec(self.exclude).match_file(name)

    def includes(self, name: str) -> bool:
        """Whether a file may be read."""
        return not self.include or _spec(self.include).match_file(name)


class Ignored(NamedTuple):
    """The patterns of the `.gitignore` files that apply in a folder, innermost first."""

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    def within(self, folder: Path, name: str) -> Ignored:
        """Add the patterns of a subfolder, called `name` relative to the folder that is read.

        Raises:
            ValueError: its file holds an invalid pattern.
            OSError: it cannot be read.
        """
        path = folder / IGNORE
        if not path.is_file():
            return self
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        return Ignored(((name, _spec(tuple(lines))), *self.specs))

    def matches(self, name: str) -> bool:
        """Whether a file or folder is ignored; the innermost matching pattern decides."""
        for folder, spec in self.specs:
            if (said := spec.check_file(name.removeprefix(folder)).include) is not None:
                return said
        return False


def installed(folder: Path) -> bool:
    """Whether a folder was made by a package manager: modules, byte code, an environment."""
    return folder.name in INSTALLED or (folder / "pyvenv.cfg").is_file()


@lru_cache(maxsize=256)
def _spec(patterns: tuple[str, ...]) -> GitIgnoreSpec:
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(patterns)
