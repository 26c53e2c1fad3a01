"""A transformer as transformers saves it, with mean pooling, because the format does not name any."""

from __future__ import annotations

from counterpoint.encode.checkpoints.modules import Module, PublishedModel
from counterpoint.encode.checkpoints.sentence import longest
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.heads import Mean
from counterpoint.encode.text import TextInput

__all__ = ["read", "recognises"]


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether there is a `config.json`."""
    return (checkpoint.folder / "config.json").is_file()


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a plain transformer."""
    backbone = checkpoint.backbone()
    most = longest(Module("Transformer", checkpoint.folder), {}, backbone)
    return DualEncoder(Encoder(backbone, {"mean": Mean()}, query=TextInput(most), document=TextInput(most)))
