"""`Part`: a torch module whose constructor signature is its configuration.

A part follows three rules. `__init__` only stores its arguments under their own names. `_allocate` creates
the parameters and buffers that those arguments need. Names of learnt state end in `_`. Then `to_dict`,
`from_dict`, `save`, `load` and `fingerprint` are inherited, and declaring a part loads and allocates nothing.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Self, cast

import tomli_w
import torch
import xxhash
from torch import nn

from counterpoint.config import Declared, class_named, restore
from counterpoint.dry_run import dry_run
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.files import sha256_file
from counterpoint.folders import SAVED_PART, publish_folder, whole_folder
from counterpoint.foreign import parse_toml, reading
from counterpoint.headers import Header
from counterpoint.tensors import check_finite, read_tensors, write_tensors
from counterpoint.typed import faults_of

__all__ = ["WEIGHTS", "Part", "check_files"]

FORMAT = 1
HEADER = Header("part", (FORMAT,), "save the model again")
WEIGHTS = "weights.safetensors"
SINCE = "since it was saved; copy the model again, or load the original model and save it again"


class Part(Declared, nn.Module):
    """Base of all parts that are declared, saved and composed: encoders, heads, transforms, scorers.

    Example:
        >>> from counterpoint.score import Dot
        >>> Dot(on="cls").to_dict()
        {'part': 'counterpoint.score:Dot', 'on': 'cls'}
    """

    is_set_up: bool = False
    sized_by_data: frozenset[str] = frozenset()
    """Own buffers whose number of rows depends on the training data; loaded with any number."""
    _known: tuple[str, str] | None = None  # a fingerprint, and the fast hash of the same content

    def setup(self) -> Self:
        """Allocate this part and its children; a second call does nothing."""
        if not self.is_set_up:
            for child in self._child_parts().values():
                child.setup()
            self._allocate()
            self.is_set_up = True
        return self

    def __getattr__(self, name: str) -> Any:
        """Find a parameter, buffer or child. Before `setup`, the error says that it must be called first."""
        try:
            return super().__getattr__(name)
        except AttributeError:
            if self.is_set_up or not name.endswith("_") or name.startswith("_"):
                raise
        cls = type(self).__name__
        raise AttributeError(f"{cls} has no {name} before setup(); call setup() on it or on its model first")

    def extra_repr(self) -> str:
        """Arguments that differ from their defaults, for `print`, which shows parts as children."""
        said = {name: value for name, value in self.to_dict().items() if name != "part"}
        return ", ".join(f"{k}={v!r}" for k, v in said.items() if not isinstance(getattr(self, k), nn.Module))

    def _allocate(self) -> None:
        """Create parameters and buffers. Called once, after the children are set up."""

    def _write_assets(self, folder: Path) -> None:
        """Save files that are neither settings nor tensors, such as a tokenizer, to an existing `folder`."""

    def _read_assets(self, folder: Path) -> None:
        """Read what `_write_assets` wrote. Called before `setup`, only if something was written."""

    def _identity(self) -> str:
        """Identity of anything else that affects results, such as a tokenizer; part of the fingerprint."""
        return ""

    # -- configuration ---------------------------------------------------------------------------------

    @staticmethod
    def from_dict(config: Mapping[str, Any]) -> Part:
        """Declare the part that `to_dict` described; nothing is loaded or allocated.

        Raises:
            ConfigError: lists every argument that is unknown, missing or of another type.
            ArtifactError: the class is unknown.
        """
        cls = class_named(config.get("part"))
        if not issubclass(cls, Part):
            raise ArtifactError(f"a {cls.__name__} is not a part of a model")
        if faults := list(faults_of(config, Part, "part")):
            raise ConfigError(*faults)
        return cast(Part, restore(config))

    # -- on disk ---------------------------------------------------------------------------------------

    def save(self, folder: str | Path, *, overwrite: bool = False) -> None:
        """Write `part.toml`, `weights.safetensors` and the assets to a new folder, all or nothing."""
        self.setup()
        with publish_folder(Path(folder), overwrite=overwrite, kind=SAVED_PART) as target:
            write_tensors(self.state_dict(), target / WEIGHTS)
            for name, part in self._all_parts().items():
                assets = target / "assets" / (name or "root")
                assets.mkdir(parents=True)
                part._write_assets(assets)
                if not any(assets.iterdir()):
                    assets.rmdir()
            document = {
                "format": FORMAT,
                "fingerprint": self.fingerprint(),
                "checksum": _checksum(self.to_dict()),
                "files": {name: sha256_file(path) for name, path in _files(target).items()},
                "same": self._same(),
                "part": self.to_dict(),
            }
            (target / "part.toml").write_text(tomli_w.dumps(document), encoding="utf-8")

    @staticmethod
    def load(folder: str | Path) -> Part:
        """Read a folder written by `save`; every tensor must be present, match, and be used.

        Raises:
            ArtifactError: names the missing, unused, mismatched or non-finite weights, or what has changed
                since it was saved.
        """
        folder = whole_folder(Path(folder))
        header = _read_header(folder)
        if header.get("checksum", _checksum(header["part"])) != _checksum(header["part"]):
            raise ArtifactError(f"[part] was edited or damaged {SINCE}", path=folder / "part.toml")
        _compare_files(folder, header, unless=(WEIGHTS,))  # the fingerprint covers the weights
        with reading(folder / "part.toml"):
            part = Part.from_dict(header["part"])
            part._join(_table(header, "same", folder), folder / "part.toml")
        tensors = read_tensors(folder / WEIGHTS)
        with reading(folder):
            for name, child in part._all_parts().items():
                assets = folder / "assets" / (name or "root")
                if assets.is_dir():
                    child._read_assets(assets)
            part._setup_with(tensors, folder / WEIGHTS)
        saved, found = header.get("fingerprint"), part.fingerprint()
        if found != saved and "same" not in header:
            part._join(part._alike(), folder / "part.toml")
            found = part.fingerprint()
        if found != saved:
            raise ArtifactError(
                f"its weights, settings or tokenizer were edited or damaged {SINCE} "
                f"(its fingerprint is {found[:12]}, part.toml says {str(saved)[:12]})",
                path=folder,
            )
        return part.eval()

    def fingerprint(self) -> str:
        """SHA-256 over settings, weights and assets: equal exactly for parts that compute the same.

        The last fingerprint is cached with a hash of the same content that is ten times as fast, and reused
        if that hash has not changed.
        """
        self.setup()
        now = self._hashed(xxhash.xxh3_128())
        if self._known is None or self._known[1] != now:
            self._known = self._hashed(hashlib.sha256()), now
        return self._known[0]

    def _hashed(self, digest: Any) -> str:
        digest.update(json.dumps(self.to_dict(provenance=False), sort_keys=True).encode())
        for name, part in self._all_parts().items():
            digest.update(f"{name} {part._identity()}".encode())
        for name, tensor in sorted(self.state_dict().items()):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
        return digest.hexdigest()

    def _setup_with(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """Set up and load strictly; allocate nothing if the settings ask for other shapes."""
        with dry_run(len(tensors)):
            copy.deepcopy(self).setup()._check_shapes(tensors, path)
        self.setup()
        self._load_strictly(tensors, path)

    def _load_strictly(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        """Load tensors into this part; refuse anything missing, unused or of another shape."""
        self._check_shapes(tensors, path)
        self.load_state_dict(dict(tensors), assign=True)  # assign, not copy, to keep the dtype

    def _check_shapes(self, tensors: Mapping[str, torch.Tensor], path: Path) -> None:
        own = self.state_dict()
        of_data = {
            f"{prefix}.{name}".removeprefix(".")
            for prefix, part in self._all_parts().items()
            for name in part.sized_by_data
        }
        faults = [f"weight {name!r} is missing" for name in own if name not in tensors]
        faults += [f"weight {name!r} is not used by this model" for name in tensors if name not in own]
        faults += [
            f"weight {name!r} has type {tensors[name].dtype}, but the settings need {tensor.dtype}"
            for name, tensor in own.items()
            if name in tensors and tensors[name].is_floating_point() != tensor.is_floating_point()
        ]
        faults += [
            f"weight {name!r} has shape {tuple(tensors[name].shape)}, the settings need {tuple(tensor.shape)}"
            for name, tensor in own.items()
            if name in tensors and not _fits(tensors[name], tensor, name in of_data)
        ]
        if faults:
            shown = "; ".join(faults[:6]) + (f"; and {len(faults) - 6} more" if len(faults) > 6 else "")
            raise ArtifactError(f"{shown}. The file and its settings do not belong together", path=path)
        check_finite(tensors, path)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any, **named: Any) -> None:
        for name in self.sized_by_data:
            own, found = getattr(self, name, None), state_dict.get(prefix + name)
            if own is not None and found is not None and _fits(found, own, True):
                setattr(self, name, own.new_zeros(found.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest, **named)

    # -- the tree --------------------------------------------------------------------------------------

    def _same(self) -> dict[str, str]:
        """Parts with several names: each further name to the first. Fingerprints depend on this."""
        first: dict[int, str] = {}
        named = [(name, x) for name, x in self.named_modules(remove_duplicate=False) if isinstance(x, Part)]
        return {name: at for name, part in named if (at := first.setdefault(id(part), name)) != name}

    def _alike(self) -> dict[str, str]:
        """Parts that may have been one object, in a folder of an older version that does not record it."""
        first: dict[tuple[str, str], str] = {}
        parts = self._all_parts()
        own = [name for name, x in parts.items() if name and not x.state_dict() and not x._identity()]
        pairs = {
            name: first.setdefault((name.rpartition(".")[0], str(parts[name].to_dict())), name)
            for name in own
            if name.rpartition(".")[0] in parts
        }
        return {name: other for name, other in pairs.items() if name != other}

    def _join(self, same: Mapping[str, str], path: Path) -> None:
        """Give one part several names, as recorded by `_same`."""
        for name, other in same.items():
            named = dict(self.named_modules(remove_duplicate=False))
            if name in named and named[name] is named.get(str(other)):
                continue  # restored already with the part that contains it
            parts = self._all_parts()
            if not {name, str(other)} <= parts.keys() or parts[name].to_dict() != parts[other].to_dict():
                raise ArtifactError(f"[same] says that {name} is {other}, but they differ", path=path)
            above, _, last = name.rpartition(".")
            setattr(self.get_submodule(above), last, parts[other])

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


def check_files(folder: Path) -> None:
    """Compare the files of a saved part with their checksums, for code that reads them without loading it.

    Raises:
        ArtifactError: one has changed since it was saved.
    """
    _compare_files(folder, _read_header(folder))


def _compare_files(folder: Path, header: Mapping[str, Any], unless: Collection[str] = ()) -> None:
    """Compare files with their checksums. Older versions wrote none; then loading checks the fingerprint."""
    listed, found = _table(header, "files", folder), _files(folder)
    for name in listed.keys() - unless:
        if name not in found:
            raise ArtifactError("this file is missing; the model folder is incomplete", path=folder / name)
        if sha256_file(found[name]) != listed[name]:
            raise ArtifactError(f"was edited or damaged {SINCE}", path=folder / name)


def _table(header: Mapping[str, Any], name: str, folder: Path) -> Mapping[str, Any]:
    found = header.get(name, {})
    if not isinstance(found, Mapping):
        raise ArtifactError(
            f"[{name}] must be a table, found a {type(found).__name__}", path=folder / "part.toml"
        )
    return found


def _files(folder: Path) -> dict[str, Path]:
    paths = [folder / WEIGHTS, *sorted((folder / "assets").rglob("*"))]
    return {path.relative_to(folder).as_posix(): path for path in paths if path.is_file()}


def _checksum(config: Any) -> str:
    return hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode()).hexdigest()


def _fits(found: torch.Tensor, own: torch.Tensor, of_data: bool) -> bool:
    """Whether a tensor has the expected shape; `of_data` allows another number of rows."""
    return found.shape[of_data:] == own.shape[of_data:] and found.dim() == own.dim()


def _read_header(folder: Path) -> dict[str, Any]:
    path = folder / "part.toml"
    header = HEADER.read(path, parse_toml, "no part.toml here; not a saved Counterpoint part")
    if not isinstance(header.get("part"), dict):
        raise ArtifactError("has no table [part]; save the model again", path=path)
    return header
