"""Checkpoints of a run. They are written atomically, without pickles, and only the latest is kept.

    checkpoints/
      latest.json            names the latest folder; replaced atomically
      0-120-5f1c09ab/        stage 0, step 120, and a unique suffix, so that no checkpoint is overwritten
        state.json           numbers: the position in the run, the history of evaluations
        *.safetensors        weights, the best weights so far, optimiser state, the negative cache

If the process is killed at any moment, the previous checkpoint or the new one remains.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from counterpoint.errors import ArtifactError
from counterpoint.files import sync_folder, write_atomically, writing
from counterpoint.folders import remove_made, sync_tree
from counterpoint.headers import Header
from counterpoint.tensors import read_tensors, write_tensors

__all__ = ["Checkpoint", "latest_place"]

LATEST = "latest.json"
NAME = re.compile(r"\d+-\d+(-[0-9a-f]{8})?")  # names by the first versions have no suffix
FORMAT = 1
HEADER = Header("checkpoint", (FORMAT,), "start another run")


@final
@dataclass(frozen=True)
class Checkpoint:
    """The state that a run resumes from.

    Attributes:
        stage: number of the stage, from 0.
        step: steps done in the stage.
        state: JSON values.
        tensors: groups of tensors by file name.
    """

    stage: int
    step: int
    state: Mapping[str, Any]
    tensors: Mapping[str, Mapping[str, torch.Tensor]]

    def write(self, folder: Path) -> None:
        """Make this the latest checkpoint in `folder`, and remove the previous one.

        Raises:
            ArtifactError: it cannot be written. The message says which checkpoint is the latest.
        """
        name = f"{self.stage}-{self.step}-{secrets.token_hex(4)}"
        with writing(folder, lambda: _is_latest(folder, name)):
            try:
                self._fill(folder / name)
                sync_folder(folder)
                write_atomically(folder / LATEST, lambda path: path.write_text(json.dumps({"latest": name})))
            except BaseException:
                with suppress(OSError, ArtifactError):
                    if not _is_latest(folder, name):
                        _remove(folder / name)
                raise
            with suppress(OSError):  # a folder that cannot be removed takes space and does no harm
                for other in folder.iterdir():
                    if NAME.fullmatch(other.name) and other.name != name:
                        _remove(other)

    def _fill(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        state = {"format": FORMAT, "stage": self.stage, "step": self.step, "state": self.state}
        state |= {"tensors": sorted(self.tensors)}
        (folder / "state.json").write_text(json.dumps(state, allow_nan=False))
        for group, tensors in self.tensors.items():
            write_tensors(tensors, folder / f"{group}.safetensors")
        sync_tree(folder)

    @staticmethod
    def latest(folder: Path) -> Checkpoint | None:
        """Read the latest checkpoint in `folder`. None if there is none yet.

        Raises:
            ArtifactError: it is damaged or has another format version.
        """
        latest = _latest(folder)
        if latest is None:
            return None
        place = folder / latest[0]
        found = HEADER.read(place / "state.json")
        tensors = {group: read_tensors(place / f"{group}.safetensors") for group in found["tensors"]}
        return Checkpoint(found["stage"], found["step"], found["state"], tensors)


def latest_place(folder: Path) -> tuple[int, int] | None:
    """Stage and step of the latest checkpoint in `folder`, without reading it. None if there is none.

    Raises:
        ArtifactError: `latest.json` is damaged.
    """
    found = _latest(folder)
    return None if found is None else found[1:]


def _latest(folder: Path) -> tuple[str, int, int] | None:
    if not (folder / LATEST).is_file():
        return None
    try:
        name = json.loads((folder / LATEST).read_text())["latest"]
        stage, step = map(int, name.split("-")[:2])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArtifactError(f"the checkpoint cannot be read ({error})", path=folder) from error
    return name, stage, step


def _is_latest(folder: Path, name: str) -> bool:
    found = _latest(folder)
    return found is not None and found[0] == name


def _remove(checkpoint: Path) -> None:
    remove_made(checkpoint, ("state.json", "*.safetensors", ".tmp*"))  # .tmp*: temporary files of safetensors
