"""The progress record of an unfinished build, from which `--resume` continues.

    segments/<name>/progress.json   only of an unfinished build

The arrays of an unfinished segment only ever grow, so they record what was encoded. From time to time they
are synced, and `progress.json` says how many rows of each are valid. Later rows are cut off. Documents are
read again, which is cheap, and each is compared with its checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ArtifactError
from counterpoint.files import sync_folder, write_atomically
from counterpoint.index.manifest import checksum_of
from counterpoint.index.npy import Written

__all__ = ["EVERY", "PROGRESS", "TEMPORARY", "Progress"]

EVERY = 10.0  # minimum number of seconds between two records, as each needs some syncs
PROGRESS = "progress.json"
TEMPORARY = (PROGRESS, f".{PROGRESS}.*.partial", "*.raw*.npy")
"""Files that only the build of a segment needs. They stay until the commit, so that it can be repeated."""


@final
@dataclass(frozen=True)
class Progress:
    """A record of an unfinished build.

    Attributes:
        plan: everything that determines the vectors and how they are stored; only the same plan can resume.
        documents: number encoded.
        longer: number of these that are longer than what the model reads.
        vectors: number of vectors of each set.
        files: by name, how much of each is valid.
    """

    plan: Mapping[str, Any]
    documents: int
    longer: int
    vectors: Mapping[str, int]
    files: Mapping[str, Written]

    def write(self, segment: Path) -> None:
        """Write the record to disk. The files must be synced already.

        Raises:
            OSError: it cannot be written. The caller's message is about the index, not about this file.
        """
        body = asdict(self)
        text = json.dumps({**body, "checksum": checksum_of(body)})
        sync_folder(segment)  # after a crash there must be no record of a file whose name is lost
        try:
            write_atomically(segment / PROGRESS, lambda path: path.write_text(text, encoding="utf-8"))
        except ArtifactError as error:
            if isinstance(error.__cause__, OSError):
                raise error.__cause__ from None
            raise

    @staticmethod
    def read(segment: Path) -> Progress | None:
        """The record of a segment; None if it is missing or damaged."""
        try:
            body = json.loads((segment / PROGRESS).read_text(encoding="utf-8"))
            if body.pop("checksum") != checksum_of(body):
                return None
            return Progress(**{**body, "files": {k: Written(**v) for k, v in body["files"].items()}})
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return None

    def check_plan(self, plan: Mapping[str, Any], folder: Path) -> None:
        """Check that this build has the plan of the record.

        Raises:
            ArtifactError: naming the first difference.
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
    """Values by dotted path, such as `layouts.words.codec`."""
    found: dict[str, Any] = {}
    for name, value in plan.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": value}
    return found
