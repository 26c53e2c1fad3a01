"""Shared by the formats: a checkpoint's folder, its `modules.json`, and the modules in it.

Nothing named in a checkpoint is ever imported: a class name only selects one of the readers below.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from counterpoint.encode.backbone import Transformer
from counterpoint.encode.batching import EncodeOptions
from counterpoint.encode.weights import inside, read_json
from counterpoint.errors import ArtifactError
from counterpoint.types import Side

__all__ = ["A_TEXT", "TRIAL", "Module", "PublishedModel"]

A_TEXT = "a ☃"  # with a sign that a small vocabulary lacks
TRIAL = EncodeOptions(device="cpu", precision="fp32")
"""How to encode `A_TEXT` when a model is loaded, to check that its settings work."""

_KNOWN = re.compile(
    r"(?:sentence_transformers|pylate)\.(?:\w+\.)*"
    r"(Transformer|Pooling|Dense|Normalize|MultiVectorMask|Router)"
)


@dataclass(frozen=True)
class Module:
    """One entry of `modules.json`: its kind and its folder."""

    kind: str
    folder: Path

    def config(self, *names: str) -> dict[str, Any]:
        """Read the first of these files that exists; empty if none does."""
        found = next((self.folder / name for name in names if (self.folder / name).is_file()), None)
        return {} if found is None else read_json(found)


@dataclass(frozen=True)
class PublishedModel:
    """A folder to read, and the name that the user gave for it."""

    folder: Path
    source: str
    revision: str | None

    @property
    def lists_modules(self) -> bool:
        """Whether there is a `modules.json`."""
        return (self.folder / "modules.json").is_file()

    @cached_property
    def settings(self) -> dict[str, Any]:
        """`config_sentence_transformers.json`; empty if there is none."""
        return Module("", self.folder).config("config_sentence_transformers.json")

    @cached_property
    def config(self) -> dict[str, Any]:
        """The settings in `config.json`; an empty dictionary if there is no such file."""
        return Module("", self.folder).config("config.json")

    @property
    def architectures(self) -> list[str]:
        """Architectures that `config.json` names."""
        return self.config.get("architectures") or []

    @cached_property
    def classes(self) -> list[str]:
        """The class names in `modules.json`."""
        return [str(entry.get("type")) for entry in self._entries(self.folder / "modules.json")]

    def modules(self, side: Side) -> list[Module]:
        """The modules for texts of one side, with routers resolved."""
        found = []
        for entry in self._entries(self.folder / "modules.json"):
            module = self._module(self.folder, str(entry.get("path", "")), str(entry.get("type")))
            found += self._route(module, side) if module.kind == "Router" else [module]
        if not found or found[0].kind != "Transformer":
            raise ArtifactError("modules.json does not begin with a Transformer")
        return found

    def backbone(self, module: Module | None = None, *, unused: tuple[str, ...] = ()) -> Transformer:
        """Read the transformer in a module's folder, or in the checkpoint's own."""
        folder = self.folder if module is None else module.folder
        return Transformer(self.source, self.revision).setup_from(folder, unused=unused)

    def _entries(self, path: Path) -> list[dict[str, Any]]:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise ArtifactError(f"cannot be read: {error}", path=path) from error
        if not (isinstance(found, list) and all(isinstance(entry, dict) for entry in found)):
            raise ArtifactError("expected a list of modules", path=path)
        return found

    def _module(self, parent: Path, path: str, name: str) -> Module:
        if (known := _KNOWN.fullmatch(name)) is None:
            raise ArtifactError(f"has a module of unknown class {name!r}; code from a checkpoint is not run")
        return Module(known.group(1), inside(parent, path))

    def _route(self, router: Module, side: Side) -> list[Module]:
        """The modules after a router on one side (its JSON: classes and routes by module id)."""
        config = read_json(router.folder / "router_config.json")
        types, structure = config.get("types") or {}, config.get("structure") or {}
        if (config.get("parameters") or {}).get("route_mappings"):
            raise ArtifactError("does not route by query and document", path=router.folder)
        if side not in structure:
            raise ArtifactError(f"has no route for {side!r}, only {sorted(structure)}", path=router.folder)
        return [self._module(router.folder, name, str(types.get(name))) for name in structure[side]]
