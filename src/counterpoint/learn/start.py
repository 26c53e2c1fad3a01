"""`Start`: another run's model, whose weights a run starts from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from counterpoint.encode import Transformer
from counterpoint.encode.saved import saved_model
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.errors import ArtifactError
from counterpoint.files import sha256_file, write_atomically
from counterpoint.part import WEIGHTS, Part, check_files
from counterpoint.tensors import read_tensors

__all__ = ["START_FILE", "Start", "Taken", "write_start"]

START_FILE = "start.json"
ENCODER = "encoder."  # prefix of the encoder's weights in a model's names


@final
@dataclass(frozen=True)
class Taken:
    """Which weights a model took from another, by name.

    Attributes:
        taken: in both models, with the same shape.
        new: in this model only. They are unchanged.
        unused: in the other model only.
        other_shapes: in both models, with different shapes. They are unchanged, too.
    """

    taken: tuple[str, ...]
    new: tuple[str, ...]
    unused: tuple[str, ...]
    other_shapes: tuple[str, ...]

    def __str__(self) -> str:
        """One sentence; long lists are cut."""
        said = f"{len(self.taken)} weights taken"
        for what, names in (
            ("missing", self.new),
            ("of another shape", self.other_shapes),
            ("not used", self.unused),
        ):
            if names:
                said += f"; {what}: {', '.join(names[:4])}"
                said += f" and {len(names) - 4} more" if len(names) > 4 else ""
        return said


@final
@dataclass(frozen=True)
class Start:
    """The model of a run, or a saved model, to start a run from.

    Attributes:
        source: its path, as given.
        folder: the model's folder.
        names: weight name prefixes in the source, mapped to the prefixes that replace them in the model.
    """

    source: str
    folder: Path
    names: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def find(source: str, names: Mapping[str, str] | None = None) -> Start:
        """Find the folder of a run or a saved model.

        Raises:
            ArtifactError: it is neither, or a run that has no model yet.
        """
        if not Path(source).is_dir():
            raise ArtifactError("no such folder of a run or model to start from", path=source)
        folder = saved_model(Path(source))
        if folder is None:
            raise ArtifactError("this folder holds neither a run nor a model of Counterpoint", path=source)
        return Start(source, folder, names or {})

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the weights file."""
        path = self.folder / WEIGHTS
        if not path.is_file():
            raise ArtifactError("this file is missing; the model folder is incomplete", path=path)
        return sha256_file(path)

    def to_dict(self) -> dict[str, Any]:
        """Identity of this start, as JSON values."""
        return {"source": self.source, "sha256": self.sha256}

    @torch.no_grad()
    def give(self, model: Part) -> Taken:
        """Copy into an initialised model every weight whose name and shape fit.

        Raises:
            ArtifactError: the files have changed since they were saved, nothing fits, or a backbone has a
                different tokenizer, so that rows of its embeddings would mean other words.
        """
        check_files(self.folder)
        own, theirs = model.state_dict(), read_tensors(self.folder / WEIGHTS)
        prefix = ENCODER if not own.keys() & theirs.keys() else ""  # an encoder saved without its model
        theirs = {self._named(prefix + name): tensor for name, tensor in theirs.items()}
        both = [name for name in own if name in theirs]
        fits = tuple(name for name in both if own[name].shape == theirs[name].shape)
        if not fits:
            raise ArtifactError(
                f"no weight here fits the model: it has {_some(own)}; here are {_some(theirs)}",
                path=self.folder,
            )
        self._check_tokenizers(model, prefix)
        for name in fits:
            own[name].copy_(theirs[name])
        return Taken(
            fits,
            tuple(name for name in own if name not in theirs),
            tuple(name for name in theirs if name not in own),
            tuple(name for name in both if name not in fits),
        )

    def _named(self, name: str) -> str:
        """The model's name for a weight of the source. `names` may omit `encoder.`."""
        for old, new in self.names.items():
            for before in ("", ENCODER):
                if name.startswith(before + old):
                    return before + new + name.removeprefix(before + old)
        return name

    def _check_tokenizers(self, model: Part, prefix: str) -> None:
        for name, part in model.named_modules():
            assets = self.folder / "assets" / (name.removeprefix(prefix) or "root")
            if not isinstance(part, Transformer) or not (assets / "tokenizer.json").is_file():
                continue
            if Tokenizer.load(assets).to_text() != part.tokenizer.to_text():
                raise ArtifactError(
                    f"the tokenizer differs from that of the model's {name}; use this folder as the "
                    "backbone's source instead",
                    path=assets,
                )


def write_start(folder: Path, model: Part, facts: Mapping[str, Any]) -> None:
    """Record in a run's folder the state of its model before the first step."""
    text = json.dumps({"fingerprint": model.fingerprint(), **facts}, indent=2, allow_nan=False)
    write_atomically(folder / START_FILE, lambda path: path.write_text(text, "utf-8"))


def _some(weights: Mapping[str, Tensor]) -> str:
    shown: Sequence[str] = [f"{name} {tuple(tensor.shape)}" for name, tensor in list(weights.items())[:3]]
    return ", ".join(shown) + ("" if len(weights) <= 3 else f" and {len(weights) - 3} more")
