"""Backbones inside folders that Counterpoint wrote: saved models, and runs with a model."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from counterpoint.errors import ArtifactError
from counterpoint.folders import whole_folder
from counterpoint.part import WEIGHTS
from counterpoint.tensors import read_tensors
from counterpoint.types import Side

__all__ = ["backbone_in", "backbone_weights", "saved_model"]


def saved_model(folder: Path) -> Path | None:
    """The folder of a saved part: this one, or that of a run's model; None if it is neither.

    Raises:
        ArtifactError: the run has no model yet.
    """
    if (folder / "recipe.toml").is_file():
        folder, run = folder / "model", folder
        if not whole_folder(folder).is_dir():
            raise ArtifactError(
                "this run has no model yet; continue it by its own command and --resume: counterpoint train "
                f"RECIPE --data DATA -o {run} --resume",
                path=run,
            )
    folder = whole_folder(folder)
    return folder if (folder / "part.toml").is_file() else None


def backbone_in(model: Path, side: Side) -> str:
    """The name of a backbone in a saved model: the only one, or the one of this side.

    Raises:
        ArtifactError: there is none, or the choice is ambiguous.
    """
    found = sorted(path.parent.name for path in model.glob("assets/*/config.json"))
    chosen = found if len(found) == 1 else [name for name in found if side in name.split(".")]
    if len(chosen) != 1:
        raise ArtifactError(
            f"expected one backbone for the {side} side, found {', '.join(found) or 'none'}", path=model
        )
    return chosen[0]


def backbone_weights(model: Path, name: str) -> dict[str, Tensor]:
    """Read a backbone's weights under their names in transformers."""
    start = "model_." if name == "root" else f"{name}.model_."
    tensors = read_tensors(model / WEIGHTS)
    return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}
