"""`Part`: a torch module whose constructor signature is its configuration.

Three rules make a part. `__init__` only stores its arguments under their own names; `_allocate` creates the
parameters and buffers that those arguments call for; names of learnt state end in `_`. In return `to_dict`,
`from_dict`, `save`, `load` and `fingerprint` are inherited, and declaring a part loads and allocates nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import tomli_w
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from counterpoint.config import Declared, restore
from counterpoint.errors import ArtifactError
from counterpoint.folders import FolderKind, publish_folder, whole_folder

__all__ = ["FOLDER", "WEIGHTS", "Part", "read_tensors", "write_tensors"]

FORMAT = 1
WEIGHTS = "weights.safetensors"
FOLDER = FolderKind("part.toml", (WEIGHTS, "assets/*"))
"""What the folder of a saved part holds."""


class Part(Declared, nn.Module):
    """Base of everything that is declared, saved and put together: encoders, heads, transforms, scorers.

    Example:
        >>> from counterpoint.score import Dot
        >>> Dot(on="cls").to_dict()
        {'part': 'counterpoint.score:Dot', 'on': 'cls'}
    """

    is_set_up: bool = False
    sized_by_data: frozenset[str] = frozenset()
    """Buffers of its own whose number of rows is decided by what they were learnt from; loaded at any."""

    def setup(self) -> Self:
        """Allocate this part and its children; a second call does nothing."""
        if not self.is_set_up:
            for child in self._child_parts().values():
                child.setup()
            self._allocate()
            self.is_set_up = True
        return self

    def _allocate(self) -> None:
        """Create parameters and buffers. Called once, after the children are set up."""

    def _write_assets(self, folder: Path) -> None:
        """Save files that are neither settings nor tensors (a tokenizer, say) into an existing `folder`."""

    def _read_assets(self, folder: Path) -> None:
        """Read what `_write_assets` wrote. Called before `setup`, only if something was written."""

    def _identity(self) -> str:
        """What decides the outcome beside settings and tensors (a tokenizer, say); fingerprinted."""
        return ""

    # -- configuration ---------------------------------------------------------------------------------

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> Part:
        """Declare the part that `to_dict` described; nothing is loaded or allocated.

        Raises:
            ConfigError: listing every unknown or missing argument.
            ArtifactError: the class is not known here.
        """
        found = restore({"part": None, **config})
        if not isinstance(found, Part):
            raise ArtifactError(f"a {type(found).__name__} is no part of a model")
        return found

    # -- on disk ---------------------------------------------------------------------------------------

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write `part.toml`, `weights.safetensors` and the assets into a new folder, all or nothing."""
        self.setup()
        with publish_folder(Path(folder), overwrite=overwrite, kind=FOLDER) as target:
            document = {"format": FORMAT, "fingerprint": self.fingerprint(), "part": self.to_dict()}
            (target / "part.toml").write_text(tomli_w.dumps(document), encoding="utf-8")
            write_tensors(self.state_dict(), target / WEIGHTS)
            for name, part in self._all_parts().items():
                assets = target / "assets" / (name or "root")
                assets.mkdir(parents=True)
                part._write_assets(assets)
                if not any(assets.iterdir()):
                    assets.rmdir()

    @staticmethod
    def load(folder: str | Path) -> Part:
        """Read a folder written by `save`; every tensor must be there, fit, and be used.

        Raises:
            ArtifactError: naming the missing, unused or ill-fitting weights.
        """
        folder = whole_folder(Path(folder))
        part = Part.from_dict(_read_header(folder)["part"])
        for name, child in part._all_parts().items():
            assets = folder / "assets" / (name or "root")
            if assets.is_dir():
                child._read_assets(assets)
        part.setup()
        part._load_strictly(read_tensors(folder / WEIGHTS), folder / WEIGHTS)
        return part.eval()

    def fingerprint(self) -> str:
        """SHA-256 over settings, weights and assets: equal exactly for parts that compute the same."""
        self.setup()
        digest = hashlib.sha256(json.dumps(self.to_dict(provenance=False), sort_keys=True).encode())
        for name, part in self._all_parts().items():
            digest.update(f"{name} {part._identity()}".encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return digest.hexdigest()

    def _load_strictly(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """Copy tensors into this part, refusing anything missing, unused or of another shape."""
        own = self.state_dict()
        of_data = {
            f"{prefix}.{name}".removeprefix(".")
            for prefix, part in self._all_parts().items()
            for name in part.sized_by_data
        }
        faults = [f"weight {name!r} is missing" for name in own if name not in tensors]
        faults += [f"weight {name!r} is not used by this model" for name in tensors if name not in own]
        faults += [
            f"weight {name!r} has shape {tuple(tensors[name].shape)}, the settings want {tuple(tensor.shape)}"
            for name, tensor in own.items()
            if name in tensors and not _fits(tensors[name], tensor, name in of_data)
        ]
        if faults:
            shown = "; ".join(faults[:6]) + (f"; and {len(faults) - 6} more" if len(faults) > 6 else "")
            raise ArtifactError(f"{shown}. The file and its settings do not belong together", path=path)
        self.load_state_dict(dict(tensors), assign=True)  # assigned, not copied, to keep the dtype

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any, **named: Any) -> None:
        for name in self.sized_by_data:
            own, found = getattr(self, name, None), state_dict.get(prefix + name)
            if own is not None and found is not None and _fits(found, own, True):
                setattr(self, name, own.new_zeros(found.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)

    # -- the tree --------------------------------------------------------------------------------------

    def _child_parts(self) -> dict[str, Part]:
        """The nearest parts below this one, by dotted attribute path; each object once."""
        found: dict[str, Part] = {}

        def walk(module: nn.Module, prefix: str) -> None:
            for name, child in module.named_children():
                if isinstance(child, Part):
                    found[prefix + name] = child
                elif isinstance(child, (nn.ModuleDict, nn.ModuleList)):
                    walk(child, f"{prefix}{name}.")

        walk(self, "")
        return found

    def _all_parts(self) -> dict[str, Part]:
        """This part under the empty name, and all parts below it by dotted path."""
        return {name: module for name, module in self.named_modules() if isinstance(module, Part)}


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """All tensors of a safetensors file.

    Raises:
        ArtifactError: the file is absent or damaged.
    """
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}
    except FileNotFoundError as error:
        raise ArtifactError("this file is missing; the model folder is incomplete", path=path) from error
    except (SafetensorError, OSError) as error:
        raise ArtifactError(f"cannot be read as safetensors ({error}); copy it again", path=path) from error


def write_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file; tensors that share memory are written each on its own.

    Raises:
        OSError: the file cannot be written. safetensors has an error of its own for that, without a number.
    """
    apart = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    places = Counter(tensor.untyped_storage().data_ptr() for tensor in apart.values())
    for name, tensor in apart.items():
        if places[tensor.untyped_storage().data_ptr()] > 1:
            apart[name] = tensor.clone()
    try:
        save_file(apart, path)
    except SafetensorError as error:
        code = re.search(r"os error (\d+)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error


def _fits(found: torch.Tensor, own: torch.Tensor, of_data: bool) -> bool:
    """Whether a tensor has the shape that is wanted, or that with another number of rows."""
    return found.shape[of_data:] == own.shape[of_data:] and found.dim() == own.dim()


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / "part.toml"
    try:
        header = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ArtifactError("no part.toml here; not a saved Counterpoint part", path=folder) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArtifactError(f"not valid TOML: {error}", path=path) from error
    if header.get("format") != FORMAT:
        raise ArtifactError(
            f"format {header.get('format')!r}, this version reads {FORMAT}; upgrade counterpoint", path=path
        )
    return header
