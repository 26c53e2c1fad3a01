"""What an index remembers of its model: finding it again, its gate closed as it was, its export."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.library.options import BACKEND, Backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterpoint.exported import ExportedModel
    from counterpoint.index import Index, TextModel
    from counterpoint.model import Model

__all__ = ["encoder_of", "model_of"]


def encoder_of(index: Index, name: str | Path | None = None, backend: Backend = BACKEND) -> TextModel:
    """What encodes queries for an index that has vectors: its export, or the model itself.

    Args:
        index: whose manifest says where both are.
        name: where the model is now, if not where it was.
        backend: see `Backend`.

    Raises:
        ArtifactError: no model there; for "onnx", no export, or files that it refers to have changed.
        MissingExtraError: for "onnx", ONNX Runtime is not installed.
        ConfigError: no such backend, or the index does not say where its model is.

    Warns:
        UserWarning: there is an export, and it cannot be used.
    """
    if backend not in ("auto", "onnx", "torch"):
        raise ConfigError(f"backend must be 'auto', 'onnx' or 'torch', found {backend!r}")
    told = (index.manifest.model or {}).get("queries") or {}
    if backend == "onnx" and "folder" not in told:
        why = told.get("why", "it was built by an earlier version; build it again")
        raise ArtifactError(f"has no export of its model's queries: {why}", path=index.folder)
    if backend != "torch" and "folder" in told:
        try:
            exported = _exported(index, told["folder"], name)
            if exported is not None:
                return exported
        except (ArtifactError, MissingExtraError) as error:
            if backend == "onnx":
                raise
            warnings.warn(f"queries are encoded by torch, which takes longer: {error}", stacklevel=4)
    return cast("TextModel", model_of(index, name=name))


def _exported(index: Index, folder: str, name: str | Path | None) -> ExportedModel | None:
    """The export of an index; None if a model is named that has no part in it.

    Raises:
        ArtifactError, MissingExtraError: as `counterpoint.exported.open_export`.
    """
    from counterpoint.exported import open_export

    expected = {
        path.removeprefix(f"{folder}/"): entry.sha256
        for path, entry in index.manifest.files.items()
        if path.startswith(f"{folder}/")
    }
    full = cast("Callable[[], TextModel]", partial(model_of, index, name=name))
    found = open_export(index.folder / folder, expected, lambda: _folder_of(index, name), full)
    named = name is not None and str(name) != (index.manifest.model or {}).get("name")
    return None if named and not found.description.is_of_folder else found


def _folder_of(index: Index, name: str | Path | None) -> Path:
    """The folder of the model that is named, or that the index remembers.

    Raises:
        ArtifactError: there is none.
        ConfigError: the index does not say where its model is.
    """
    from counterpoint.encode.sources import locate

    return locate(str(name or _remembered(index)))


def model_of(index: Index, workflow: str = "hybrid", name: str | Path | None = None) -> Model | None:
    """The model that an index needs for a workflow: the one named, else the one it remembers.

    Args:
        index: its manifest says where the model is, and what its gate was closed to.
        workflow: "lexical" needs none.
        name: where the model is now, if not where it was.

    Raises:
        ArtifactError: no model there.
        ConfigError: the index does not say where its model is.
    """
    from counterpoint.search import LEXICAL

    if index.manifest.model is None or workflow == LEXICAL:
        return None
    from counterpoint.model import load_model  # brings torch with it

    named = str(name or _remembered(index))
    model = _as_built(load_model(named), named, index)
    gate = index.manifest.settings.get("gate")
    return model if gate is None else model.close_gates(gate)


def _as_built(model: Model, name: str, index: Index) -> Model:
    """The model, or the earlier version of its preset that an index was built with."""
    from counterpoint.presets import EARLIER

    built_with = (index.manifest.model or {}).get("fingerprint")
    if name in EARLIER and model.fingerprint() != built_with:
        earlier = (make().setup().eval().came_from(name) for make in EARLIER[name])
        return next((older for older in earlier if older.fingerprint() == built_with), model)
    return model


def _remembered(index: Index) -> str:
    """The inverse: where the manifest says the model is; both may have moved together."""
    name = (index.manifest.model or {})["name"]
    if name is None:
        raise ConfigError(
            f"{index.folder}: the index does not say where its model is; name the model (model=, --model)"
        )
    return str((index.folder / name).resolve()) if name.startswith("./") else str(name)
