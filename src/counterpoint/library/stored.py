"""What an index remembers of its model: finding it again, its gate closed as it was."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.model import Model

__all__ = ["model_of"]


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
