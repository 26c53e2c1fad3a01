"""How far an unfinished build came: what `--resume` goes on from.

    segments/<name>/progress.json   of a build that has not ended

The arrays of an unfinished segment only ever grow, so they are the record of what was encoded. From time to
time they are synced, and then `progress.json` says how many rows of each count. What comes after these is cut
off. Documents are read again: that is cheap, and each is compared with its checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ArtifactError
from counterpoint.files import write_atomically
from counterpoint.index.manifest import checksum_of
from counterpoint.index.npy import Written

__all__ = ["EVERY", "PROGRESS", "TEMPORARY", "Progress"]

EVERY = 10.0  # seconds from one record to the next, at least: they cost some syncs each
PROGRESS = "progress.json"
TEMPORARY = (PROGRESS, f".{PROGRESS}.*.partial", "*.raw*.npy")
"""Files of a segment that only its build needs. They stay until the commit, so that it can be repeated."""


@final
@dataclass(frozen=True)
class Progress:
    """A record of an unfinished build.

    Attributes:
        plan: what decides the vectors and how they are stored; a build goes on only with the same.
        documents: that are encoded.
        longer: how many of them are longer than what the model reads.
        vectors: that each set was given.
        files: by name, how much of each counts.
    """

    plan: Mapping[str, Any]
    documents: int
    longer: int
    vectors: Mapping[str, int]
    files: Mapping[str, Written]

    def write(self, segment: Path) -> None:
        """Put it on the disk; the files must be there already.

        Raises:
            OSError: it cannot be written. Whoever builds says what became of the index, not of this file.
        """
        body = asdict(self)
        text = json.dumps({**body, "checksum": checksum_of(body)})
        try:
            write_atomically(segment / PROGRESS, lambda path: path.write_text(text, encoding="utf-8"))
        except ArtifactError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise

    @staticmethod
    def read(segment: Path) -> Progress | None:
        """The record of a segment; None where there is none or it is damaged."""
        try:
            body = json.loads((segment / PROGRESS).read_text(encoding="utf-8"))
            if body.pop("checksum") != checksum_of(body):
                return None
            return Progress(**{**body, "files": {k: Written(**v) for k, v in body["files"].items()}})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def check_plan(self, plan: Mapping[str, Any], folder: Path) -> None:
        """Refuse to go on by another plan.

        Raises:
            ArtifactError: naming what differs.
        """
        before, now = _flat(self.plan), _flat(plan)
        for name in [*now, *before]:
            if before.get(name) != now.get(name):
                raise ArtifactError(
                    f"--resume: the unfinished build has {name} {before.get(name)!r}, this one has "
                    f"{now.get(name)!r}; ask for the same, or build from the start without --resume",
                    path=folder,
                )


def _flat(plan: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Values by their path, as in `layouts.words.codec`."""
    found: dict[str, Any] = {}
    for name, value in plan.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return found
