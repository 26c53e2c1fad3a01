"""Checkpoints of others, read as they are: one module a format, and `load_encoder` that tells them apart."""

from __future__ import annotations

from pathlib import Path

from counterpoint.encode.checkpoints import colberter, multivector, plain, pylate, sentence, stanford
from counterpoint.encode.checkpoints.modules import Checkpoint
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.sources import locate
from counterpoint.errors import ArtifactError
from counterpoint.foreign import reading
from counterpoint.part import Part
from counterpoint.tensors import check_finite

__all__ = ["load_encoder"]


def load_encoder(source: str | Path, revision: str | None = None) -> DualEncoder:
    """Read a model in whatever format it was saved, deciding by the files that are there, in this order.

    1. `part.toml`: a folder that `DualEncoder.save` or `Encoder.save` wrote.
    2. `modules.json`: PyLate where a module or a setting is PyLate's; else sentence-transformers,
       multi-vector where a `MultiVectorMask` is among its modules, dense where not.
    3. `artifact.metadata`, or the architecture `HF_ColBERT` in `config.json`: Stanford ColBERT.
    4. The architecture `ColBERTer` in `config.json`: ColBERTer's authors'.
    5. `config.json`: a plain transformer, mean-pooled.

    Its vectors are those that the format's own library computes. Sets are named "mean", "cls", "tokens" or
    "words".

    Args:
        source: "minilm", a folder, or a hub id.
        revision: for a hub id, the commit, tag or branch.

    Raises:
        ArtifactError: nothing is known here by that name, or something about it cannot be carried out
            exactly: a weight missing or unused, a dimension that disagrees, a module of an unknown class.

    Example:
        >>> load_encoder("minilm").sets
        {'mean': 384}
    """
    folder = locate(str(source), revision)
    if (folder / "part.toml").is_file():
        return _own(folder)
    checkpoint = Checkpoint(folder, str(source), revision)
    with reading(folder):
        encoder = _read(checkpoint).setup().eval()
    check_finite(encoder.state_dict(), folder)
    return encoder


def _read(checkpoint: Checkpoint) -> DualEncoder:
    folder = checkpoint.folder
    if (folder / "modules.json").is_file():
        if pylate.recognises(checkpoint):
            return pylate.read(checkpoint)
        return (
            multivector.read(checkpoint) if multivector.recognises(checkpoint) else sentence.read(checkpoint)
        )
    if stanford.recognises(checkpoint):
        return stanford.read(checkpoint)
    if colberter.recognises(checkpoint):
        return colberter.read(checkpoint)
    if (folder / "config.json").is_file():
        return plain.read(checkpoint)
    raise ArtifactError(
        "no model here: expected part.toml, modules.json, artifact.metadata or config.json", path=folder
    )


def _own(folder: Path) -> DualEncoder:
    part = Part.load(folder)
    if isinstance(part, Encoder):
        return DualEncoder(part).setup().eval()
    if not isinstance(part, DualEncoder):
        raise ArtifactError(f"holds a {type(part).__name__}, not an encoder", path=folder)
    return part
