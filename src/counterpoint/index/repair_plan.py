"""Remedies for the damaged files of an index."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import final

from counterpoint.index.checked import BLOCKS
from counterpoint.index.database import DATABASE
from counterpoint.index.deletes import BOTH
from counterpoint.index.derived import Derivation, derivations, steps_for
from counterpoint.index.layout import SetLayout
from counterpoint.index.manifest import Manifest, SegmentEntry

__all__ = ["Plan", "Plans"]

AGAIN = "--repair makes it again"
ENCODE = "--repair --encode encodes the texts again; --repair --drop-damaged FILE drops damaged documents"
SALVAGE = (
    "--repair saves the documents if all pass their checks; "
    "--repair --drop-damaged FILE drops those that fail"
)
LOST = "it cannot be recreated; copy the index again or build it again"


@final
@dataclass(frozen=True)
class Plan:
    """How to repair a segment's folder.

    Attributes:
        damaged: names of its damaged files.
        copies: by name, an intact file with the same content.
        steps: that recreate others.
        lost: files that neither restores.
        sets: the vector sets of the lost files.
    """

    damaged: set[str]
    copies: Mapping[str, Path]
    steps: list[Derivation]
    lost: set[str]
    sets: set[str]

    @property
    def texts(self) -> bool:
        """Whether all texts are intact."""
        return DATABASE not in self.lost


@final
class Plans:
    """What is damaged in an index, and the plan for each segment."""

    def __init__(self, folder: Path, manifest: Manifest, damaged: Mapping[str, str]):
        self.folder, self.manifest, self.damaged = folder, manifest, damaged
        self.layouts = {
            name: SetLayout.from_dict(layout) for name, layout in manifest.settings["layouts"].items()
        }
        intact = {entry: name for name, entry in manifest.files.items() if name not in self.damaged}
        self._twins = {
            name: folder / intact[manifest.files[name]]
            for name in self.damaged
            if manifest.files[name] in intact
        }

    def damaged_in(self, folder: str | None) -> set[str]:
        """Names of the damaged files of a folder."""
        return {path.removeprefix(f"{folder}/") for path in self.damaged if path.startswith(f"{folder}/")}

    def rows_of(self, entry: SegmentEntry) -> str | None:
        """The intact file that lists the deleted documents of a segment; None if it is lost.

        Without deletes nothing can be lost: the first of the two names is returned.
        """
        damaged = self.damaged_in(entry.deletes)
        listed = BOTH if entry.deletes is None else self.manifest.files_of(entry.deletes)
        return next((name for name in BOTH if name in listed and name not in damaged), None)

    def plan(self, entry: SegmentEntry) -> Plan:
        """The plan for a segment's own folder."""
        where = entry.path
        damaged, listed = self.damaged_in(where), self.manifest.files_of(where)
        copies = {name: self._twins[path] for name in damaged if (path := f"{where}/{name}") in self._twins}
        known = derivations(listed, entry.layouts(self.layouts), entry.documents)
        steps, lost = steps_for(damaged - copies.keys() - {BLOCKS}, known)
        return Plan(damaged, copies, steps, lost, {self._owner(name) for name in lost - {DATABASE}} - {""})

    def remedies(self) -> dict[str, str]:
        """The remedy for every damaged file."""
        found = dict.fromkeys(self.damaged, LOST)
        for entry in self.manifest.segments:
            plan = self.plan(entry)
            rows_lost = self.rows_of(entry) is None
            for name in plan.damaged:
                told = AGAIN if name not in plan.lost else ENCODE if plan.texts else SALVAGE
                found[f"{entry.path}/{name}"] = LOST if rows_lost and name in plan.lost else told
            for name in self.damaged_in(entry.lexical):
                found[f"{entry.lexical}/{name}"] = AGAIN if plan.texts else SALVAGE
            for name in self.damaged_in(entry.deletes):
                found[f"{entry.deletes}/{name}"] = LOST if rows_lost else AGAIN
        return found

    def _owner(self, file: str) -> str:
        """The set that a file belongs to; empty if none."""
        return max((name for name in self.layouts if file.startswith(f"{name}.")), key=len, default="")
