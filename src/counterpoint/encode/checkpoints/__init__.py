"""Read published checkpoints: one module per format, and `load_encoder`, which detects the format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from counterpoint.encode.checkpoints import colberter, multivector, plain, pylate, sentence, stanford
from counterpoint.encode.checkpoints.modules import PublishedModel
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.sources import locate
from counterpoint.errors import ArtifactError
from counterpoint.foreign import reading
from counterpoint.part import Part
from counterpoint.tensors import check_finite

__all__ = ["FAMILIES", "Family", "load_encoder", "search_of"]


def load_encoder(source: str | Path, revision: str | None = None) -> DualEncoder:
    """Read a model in any known format, detected from its files in this order.

    1. `part.toml`: a folder that `DualEncoder.save` or `Encoder.save` wrote.
    2. `modules.json`: PyLate if a module or a setting is PyLate's. Otherwise sentence-transformers:
       multi-vector if it has a `MultiVectorMask` module, dense if not.
    3. `artifact.metadata`, or the architecture `HF_ColBERT` in `config.json`: Stanford ColBERT.
    4. The architecture `ColBERTer` in `config.json`: ColBERTer's authors.
    5. `config.json`: a plain transformer, mean-pooled.

    Vectors equal those of the format's own library. Sets are named "mean", "cls", "tokens" or "words".

    Args:
        source: "minilm", a folder, or a hub id.
        revision: for a hub id, the commit, tag or branch.

    Raises:
        ArtifactError: nothing has that name, or it cannot be reproduced exactly: a missing or unused weight,
            a dimension that disagrees, or a module of an unknown class.

    Example:
        >>> load_encoder("minilm").sets
        {'mean': 384}
    """
    folder = locate(str(source), revision)
    if (folder / "part.toml").is_file():
        return _own(folder)
    checkpoint = PublishedModel(folder, str(source), revision)
    with reading(folder):
        encoder = _family_of(checkpoint).read(checkpoint).setup().eval()
    check_finite(encoder.state_dict(), folder)
    return encoder


@runtime_checkable
class Family(Protocol):
    """A module that reads the checkpoints of one library."""

    @staticmethod
    def recognises(checkpoint: PublishedModel) -> bool:
        """Whether a checkpoint is of this family, given that no earlier family recognised it."""
        ...

    @staticmethod
    def read(checkpoint: PublishedModel) -> DualEncoder:
        """Read a checkpoint; the caller names its folder in errors without a path."""
        ...


FAMILIES: Sequence[Family] = (pylate, multivector, sentence, stanford, colberter, plain)
"""In the order in which they are tried. A family whose checkpoints say how to search has `search_settings`.
"""


def search_of(checkpoint: PublishedModel) -> Mapping[str, Any] | None:
    """The search settings of a checkpoint; None if it has none."""
    settings = getattr(_family_of(checkpoint), "search_settings", None)
    return None if settings is None else settings(checkpoint)


def _family_of(checkpoint: PublishedModel) -> Family:
    for family in FAMILIES:
        if family.recognises(checkpoint):
            return family
    raise ArtifactError("no model here: expected part.toml, modules.json, artifact.metadata or config.json")


def _own(folder: Path) -> DualEncoder:
    part = Part.load(folder)
    if isinstance(part, Encoder):
        return DualEncoder(part).setup().eval()
    if not isinstance(part, DualEncoder):
        raise ArtifactError(f"holds a {type(part).__name__}, not an encoder", path=folder)
    return part
