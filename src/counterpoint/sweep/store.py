"""`Store`: the folder of a sweep. Only one process at a time may write to it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ArtifactError
from counterpoint.escapes import json_text
from counterpoint.files import write_atomically, writing
from counterpoint.folders import remove_made
from counterpoint.headers import Header
from counterpoint.locks import locked
from counterpoint.search import Run

__all__ = ["GRID", "Store"]

GRID = "sweep.toml"
LOCK = ".lock"
FORMAT = 1
HEADER = Header("result of a sweep", (FORMAT,), "delete it and sweep again")


@final
class Store:
    """Paths and files of a sweep's folder, which need not exist yet."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder, and lock it against other sweeps.

        Raises:
            ArtifactError: another process is working in it, or it contains something else.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            foreign = sorted(path.name for path in self.folder.iterdir() if path.name != LOCK)
        if foreign and not (self.folder / GRID).exists():
            raise ArtifactError(
                f"holds something that is not a sweep ({foreign[0]!r}); choose a new folder", path=self.folder
            )
        with locked(self.folder / LOCK, "another process is sweeping into this folder; wait for it to end"):
            yield

    # -- paths -----------------------------------------------------------------------------------------

    def index(self, key: str) -> Path:
        """The folder of an index."""
        return self.folder / "indexes" / key

    def encodings(self, fingerprint: str) -> Path:
        """The file of one model's encodings, named by a hash because a fingerprint may be any text."""
        name = hashlib.sha256(fingerprint.encode()).hexdigest()[:16]
        return self.folder / "encodings" / f"{name}.sqlite"

    def forget_encodings(self) -> None:
        """Delete the encodings of all models."""
        with writing(self.folder):
            remove_made(self.folder / "encodings", ("*.sqlite", "*.sqlite-*"))

    # -- results ---------------------------------------------------------------------------------------

    def has(self, key: str) -> bool:
        """Whether a cell's run and result exist."""
        return self._result(key).is_file() and self._run(key).is_file()

    def read_run(self, key: str) -> Run:
        """Read the run of a cell."""
        return Run.read(self._run(key))

    def read_result(self, key: str) -> dict[str, Any]:
        """Read the result of a cell.

        Raises:
            ArtifactError: it is damaged, or has another format version.
        """
        path = self._result(key)
        found = HEADER.read(path)
        if found.get("cell") != key:
            raise ArtifactError("not this cell's result; delete it and sweep again", path=path)
        return found

    def write_run(self, key: str, run: Run) -> None:
        """Write the run of a cell. Its result must be written after it."""
        self._make("runs")
        run.write(self._run(key))

    def write_result(self, key: str, result: Mapping[str, Any]) -> None:
        """Write the result of a cell, which completes the cell."""
        self._make("results")
        self.write_json(self._result(key).relative_to(self.folder), {"format": FORMAT, "cell": key, **result})

    def write_json(self, name: str | Path, data: Mapping[str, Any]) -> None:
        """Write a JSON file atomically."""
        self.write_text(name, json_text(data, indent=1) + "\n")

    def write_text(self, name: str | Path, text: str) -> None:
        """Write a text file atomically."""
        write_atomically(self.folder / name, lambda path: path.write_text(text, encoding="utf-8"))

    def _make(self, name: str) -> None:
        with writing(self.folder / name):
            (self.folder / name).mkdir(exist_ok=True)

    def _result(self, key: str) -> Path:
        return self.folder / "results" / f"{key}.json"

    def _run(self, key: str) -> Path:
        return self.folder / "runs" / f"{key}.trec.gz"
