"""List the files of a folder to read, in the order of their paths."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from counterpoint.data.choice import FileChoice, Ignored, installed
from counterpoint.data.kinds import kind_of
from counterpoint.data.packed import ending
from counterpoint.data.reader import Reader
from counterpoint.errors import DataError

__all__ = ["walk"]

INDEX = ("manifest.json", "segments")  # contents of an index folder, whose files are not documents


def walk(root: Path, choice: FileChoice, reader: Reader) -> Iterator[Path]:
    """Yield the readable files under `root`, sorted by name within each folder; count the others.

    Hidden files, files excluded by the choice, installed modules and indexes are skipped. Links are followed,
    but each folder is entered only once.

    Raises:
        DataError: a folder cannot be listed, and the policy does not skip it.
    """
    if root.is_file():
        yield root
        return
    entered: set[tuple[int, int]] = set()
    waiting = [(root, "", Ignored())]
    while waiting:
        path, name, ignored = waiting.pop()
        is_folder = os.path.isdir(path)  # unlike Path's, this never raises
        if name and (reason := _left_out(path, name + "/" * is_folder, choice, ignored)):
            reader.report.leave_out(reason)
        elif is_folder:
            status = path.stat()
            if (place := (status.st_dev, status.st_ino)) in entered:
                reader.report.leave_out("folder met before")
                continue
            entered.add(place)
            prefix = f"{name}/" if name else ""
            within = _within(path, prefix, ignored, reader) if choice.gitignore else ignored
            below = reversed(_listed(path, reader))
            waiting.extend((path / child, prefix + child, within) for child in below)
        elif not os.path.isfile(path):
            reader.report.cannot_read(f"{path}: a broken link, or not an ordinary file")
        elif not choice.includes(name):
            reader.report.leave_out("not included")
        elif kind_of(path) is None:
            others, kind = reader.report.other_files, ending(path) or "no ending"
            others[kind] = others.get(kind, 0) + 1
        else:
            yield path


def _left_out(path: Path, name: str, choice: FileChoice, ignored: Ignored) -> str | None:
    """Why a file or folder is skipped; the name of a folder ends in a slash."""
    if path.name.startswith("."):
        return "hidden"
    if choice.excludes(name):
        return "excluded"
    if choice.gitignore and ignored.matches(name):
        return "in .gitignore"
    if name.endswith("/") and installed(path):
        return "installed (node_modules, __pycache__, environments)"
    if name.endswith("/") and all((path / part).exists() for part in INDEX):
        return "an index"
    return None


def _within(folder: Path, name: str, ignored: Ignored, reader: Reader) -> Ignored:
    try:
        return ignored.within(folder, name)
    except (OSError, ValueError) as error:
        reader.report.cannot_read(f"{folder / '.gitignore'}: {error}; it is ignored")
        return ignored


def _listed(folder: Path, reader: Reader) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError as error:
        said = DataError(f"this folder cannot be listed: {error.strerror}", path=folder)
        if reader.policy.malformed == "error":
            raise said from error
        reader.report.cannot_read(str(said))
        return []
