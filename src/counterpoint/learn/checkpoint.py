"""Checkpoints of a run: whole or not at all, without pickles, and only the latest is kept.

    checkpoints/
      latest.json            which folder is the latest; replaced in one step
      0-120/                 stage 0, step 120
        state.json           numbers: where the run is, what it has seen
        *.safetensors        weights, the best weights so far, the optimiser's memory, the negative cache

A process that is killed at any moment leaves the checkpoint before or the new one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch
from safetensors.torch import save_file

from counterpoint.errors import ArtifactError
from counterpoint.files import publish_folder, write_atomically
from counterpoint.part import read_tensors

__all__ = ["Checkpoint", "latest_place"]

LATEST = "latest.json"
FORMAT = 1


@final
@dataclass(frozen=True)
class Checkpoint:
    """What a run needs to go on.

    Attributes:
        stage: number of the stage, from 0.
        step: steps done in it.
        state: JSON values.
        tensors: groups of tensors by the name of their file.
    """

    stage: int
    step: int
    state: Mapping[str, Any]
    tensors: Mapping[str, Mapping[str, torch.Tensor]]

    def write(self, folder: Path) -> None:
        """Make this the latest checkpoint below `folder`, and remove the one before."""
        name = f"{self.stage}-{self.step}"
        folder.mkdir(parents=True, exist_ok=True)
        with publish_folder(folder / name, overwrite=True) as target:
            state = {"format": FORMAT, "stage": self.stage, "step": self.step, "state": self.state}
            state |= {"tensors": sorted(self.tensors)}
            (target / "state.json").write_text(json.dumps(state, allow_nan=False))
            for group, tensors in self.tensors.items():
                apart = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
                save_file(apart, target / f"{group}.safetensors")
        write_atomically(folder / LATEST, lambda path: path.write_text(json.dumps({"latest": name})))
        for other in folder.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other, ignore_errors=True)

    @staticmethod
    def latest(folder: Path) -> Checkpoint | None:
        """The latest checkpoint below `folder`, or None where there is none yet.

        Raises:
            ArtifactError: it is damaged, or of another version.
        """
        if not (folder / LATEST).is_file():
            return None
        try:
            place = folder / _latest_name(folder)
            found = json.loads((place / "state.json").read_text())
        except (OSError, ValueError, KeyError) as error:
            raise ArtifactError(f"the checkpoint cannot be read ({error})", path=folder) from error
        if found.get("format") != FORMAT:
            raise ArtifactError(
                f"checkpoint of format {found.get('format')!r}, this version reads {FORMAT}", path=place
            )
        tensors = {group: read_tensors(place / f"{group}.safetensors") for group in found["tensors"]}
        return Checkpoint(found["stage"], found["step"], found["state"], tensors)


def latest_place(folder: Path) -> tuple[int, int] | None:
    """Stage and step of the latest checkpoint below `folder`, which is not read; None where there is none.

    Raises:
        ArtifactError: the file that says so is damaged.
    """
    if not (folder / LATEST).is_file():
        return None
    try:
        stage, step = map(int, _latest_name(folder).split("-"))
    except (OSError, ValueError, KeyError) as error:
        raise ArtifactError(f"the checkpoint cannot be read ({error})", path=folder) from error
    return stage, step


def _latest_name(folder: Path) -> str:
    return json.loads((folder / LATEST).read_text())["latest"]
