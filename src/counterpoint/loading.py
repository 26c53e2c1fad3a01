"""Load a model by name, from a folder, or from the hub."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import numpy as np
import torch

from counterpoint.encode import DualEncoder, Head, InteractiveEncoder, load_encoder
from counterpoint.encode.checkpoints import search_of
from counterpoint.encode.checkpoints.modules import A_TEXT, TRIAL, PublishedModel
from counterpoint.encode.saved import saved_model
from counterpoint.encode.sources import locate
from counterpoint.encode.weights import read_json
from counterpoint.errors import ArtifactError, NotFittedError
from counterpoint.foreign import reading
from counterpoint.memory import keep_freed_memory
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.presets import PRESETS
from counterpoint.search import SearchSettings
from counterpoint.transform import Normalise

__all__ = ["load_elsewhere", "load_model"]


def load_model(source: str | Path, revision: str | None = None) -> Model:
    """Load a preset by name, or a model from a folder or the hub in any layout that `load_encoder` reads.

    The folder of a run (`counterpoint train`) means its final model.

    Raises:
        ArtifactError: there is no model, or it is incomplete.
        MissingExtraError: the package of a preset is not installed.
    """
    name = str(source)
    if name in PRESETS:
        return PRESETS[name]().setup().eval().came_from(name)
    model = _loaded(name, revision)
    return model.came_from(name) if revision is None else model


def load_elsewhere(source: str, threads: int) -> Model:
    """Load a model in a worker process with this number of threads."""
    keep_freed_memory()
    torch.set_num_threads(threads)
    return load_model(source)


def _loaded(name: str, revision: str | None) -> Model:
    source = Path(name)
    folder = saved_model(source)
    if folder is not None:
        part = Part.load(folder)
        if isinstance(part, Model):
            return _tried(part, folder)
        if isinstance(part, DualEncoder):
            return _tried(Model(part).setup().eval(), folder)
        what = type(part).__name__
        hint = "; rerank with it: counterpoint rerank" if isinstance(part, InteractiveEncoder) else ""
        raise ArtifactError(f"contains a {what}, not a model that makes vectors{hint}", path=folder)
    checkpoint = PublishedModel(locate(name, revision), name, revision)
    encoder = load_encoder(name, revision)
    with reading(checkpoint.folder):
        search = search_of(checkpoint)
        model = _cosine_model(encoder, checkpoint.folder) if search is None else Model(encoder, search=search)
        return _tried(model.setup().eval(), checkpoint.folder)


def _tried(model: Model, folder: Path) -> Model:
    """Return the model after checking its settings and encoding a word: some faults appear only then."""
    encoders = [model.encoder.encode_document]
    if model.encoder.document is not None:
        encoders.append(model.encoder.encode_query)
    with suppress(NotFittedError), reading(folder):
        SearchSettings.from_dict(model.search or {})
        made = [packed for encode in encoders for packed in encode([A_TEXT], TRIAL).values()]
        if not all(np.isfinite(packed.values).all() for packed in made):
            raise ArtifactError(
                "the vectors of a word are NaN or infinite; a setting is wrong, or the weights are damaged"
            )
    return model


def _cosine_model(encoder: DualEncoder, folder: Path) -> Model:
    """Another library's encoder with pooled sets at unit length, so that inner products are cosines.

    Its own library compares vectors by cosine, too, unless its settings say "dot" (sentence-transformers'
    `similarity_fn_name`). Then the vectors stay unchanged.
    """
    settings = folder / "config_sentence_transformers.json"
    if settings.is_file() and read_json(settings).get("similarity_fn_name") == "dot":
        return Model(encoder)
    heads = cast(Mapping[str, Head], encoder.query.heads)
    return Model(
        encoder, {name: [Normalise()] for name, head in heads.items() if head.pooled and not head.normalise}
    )
