"""Find the model of an index again, pruned as it was, or its export."""

from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.library.options import BACKEND, Backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterpoint.index import Index, Manifest, TextModel
    from counterpoint.model import Model
    from counterpoint.onnx_encoder import ExportedModel

EIGHT_BITS = {"int8": True, "onnx": False}  # "auto": as the export says

__all__ = ["encoder_of", "load_as_built", "model_for", "model_of"]


def encoder_of(
    index: Index, model: Model | str | Path | None = None, backend: Backend = BACKEND
) -> TextModel:
    """Return the query encoder of an index that has vectors: its export, or the model itself.

    Args:
        index: the index, whose manifest says where both are.
        model: the model, or its new location if it moved.
        backend: see `Backend`.

    Raises:
        ArtifactError: the model is missing or another; for "int8" and "onnx", there is no export, or its
            files have changed.
        ConfigError: the backend is unknown, or the index does not record where its model is.

    Warns:
        UserWarning: there is an export, but it cannot be used.
    """
    if backend not in get_args(Backend):
        names = ", ".join(map(repr, get_args(Backend)))
        raise ConfigError(f"backend must be one of {names}, found {backend!r}")
    needed = backend in ("int8", "onnx")
    name = model if isinstance(model, str | Path) else None
    if name is not model:
        index.check_model(cast("Model", model).fingerprint())
    load: Callable[[], Any] = partial(model_of, index, name=name) if name is model else lambda: model
    try:
        found = None if backend == "torch" else _exported(index, name, load, int8=EIGHT_BITS.get(backend))
    except ArtifactError as error:
        if needed:
            raise
        whole = cast("TextModel", load())
        index.check_model(whole.fingerprint())  # a wrong model is worse, so raise that first
        warnings.warn(f"queries are encoded with torch, which is slower: {error}", stacklevel=4)
        return whole
    if found is None and needed:
        told = (index.manifest.model or {}).get("queries", {})
        why = told.get("why", "there is none of this model; build the index again with it")
        raise ArtifactError(f"no export of queries: {why}", path=index.folder)
    return cast("TextModel", load() if found is None else found)


def _exported(
    index: Index, name: str | Path | None, load: Callable[[], Any], *, int8: bool | None
) -> ExportedModel | None:
    """The export of an index, if it has one; None if a model is named that it does not belong to."""
    files = index.manifest.files
    folder = next((path.rpartition("/")[0] for path in files if path.endswith("/queries.json")), None)
    if folder is None:
        return None
    from counterpoint.onnx_encoder import open_export

    expected = {path.rpartition("/")[2]: files[path].sha256 for path in files if path.startswith(folder)}
    found = open_export(index.folder / folder, expected, lambda: _folder_of(index, name), load, int8=int8)
    named = name is not None and str(name) != (index.manifest.model or {}).get("name")
    return None if named and not found.description.is_of_folder else found


def _folder_of(index: Index, name: str | Path | None) -> Path:
    """The folder of the named model, or of the model recorded in the index."""
    from counterpoint.encode.sources import locate

    if name is None and (index.manifest.model or {}).get("name") is None:
        raise ArtifactError("does not record where its model is", path=index.folder)
    return locate(str(name or _remembered(index.folder, index.manifest)))


def model_of(index: Index, workflow: str = "hybrid", name: str | Path | None = None) -> Model | None:
    """Load the model that an index needs for a workflow: the named one, or the one recorded in the index.

    Args:
        index: its manifest says where the model is, and at which gate it is pruned.
        workflow: "lexical" needs no model.
        name: the model's new location if it moved.

    Raises:
        ArtifactError: the model is missing.
        ConfigError: the index does not record where its model is.
    """
    from counterpoint.search import LEXICAL

    return None if workflow == LEXICAL else model_for(index.folder, index.manifest, name)


def model_for(folder: Path, manifest: Manifest, name: str | Path | None = None) -> Model | None:
    """Load the model of an index from its manifest alone; None if it was built without a model."""
    if manifest.model is None:
        return None
    named = str(name or _remembered(folder, manifest))
    return load_as_built(named, manifest.model.get("fingerprint"), manifest.settings.get("gate"))


def load_as_built(name: str, built_with: str | None, gate: float | None) -> Model:
    """Load a model, or its preset's older version with the fingerprint `built_with`; prune it at the gate."""
    from counterpoint.loading import load_model  # brings torch with it
    from counterpoint.presets import EARLIER

    model = load_model(name)
    if name in EARLIER and model.fingerprint() != built_with:
        earlier = (make().setup().eval().came_from(name) for make in EARLIER[name])
        model = next((older for older in earlier if older.fingerprint() == built_with), model)
    return model if gate is None else model.prune(gate)


def _remembered(folder: Path, manifest: Manifest) -> str:
    """Location of the model by the manifest, relative to the index, since both may have moved together."""
    name = (manifest.model or {})["name"]
    if name is None:
        raise ConfigError(
            f"{folder}: the index does not record where its model is; name the model (model=, --model)"
        )
    return str((folder / name).resolve()) if name.startswith("./") else str(name)
