"""Stanford ColBERT: a transformer with `linear.weight`, and settings in `artifact.metadata`.

The format: `config.json` names the architecture `HF_ColBERT`. The weights are `bert.…` (or the backbone's own
prefix) and `linear.weight` (dim, hidden), without bias. `artifact.metadata` is JSON with `query_maxlen`,
`doc_maxlen`, `query_token_id`, `doc_token_id` (vocabulary entries), `mask_punctuation`,
`attend_to_mask_tokens` and `dim`. Vectors have unit length.
"""

from __future__ import annotations

from counterpoint.encode.checkpoints.modules import PublishedModel
from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.layers import Linear
from counterpoint.encode.text import TextInput
from counterpoint.encode.token_heads import PUNCTUATION, TokenVectors
from counterpoint.encode.weights import read_json, read_weights
from counterpoint.errors import ArtifactError

__all__ = ["read", "recognises"]


def recognises(checkpoint: PublishedModel) -> bool:
    """Whether there is an `artifact.metadata`, or the architecture is ColBERT's."""
    return (checkpoint.folder / "artifact.metadata").is_file() or "HF_ColBERT" in checkpoint.architectures


def read(checkpoint: PublishedModel) -> DualEncoder:
    """Read a Stanford ColBERT checkpoint."""
    folder = checkpoint.folder
    metadata = read_json(folder / "artifact.metadata") if (folder / "artifact.metadata").is_file() else {}
    if (weight := read_weights(folder).get("linear.weight")) is None:
        raise ArtifactError("the projection 'linear.weight' is missing; get the complete checkpoint")
    backbone = checkpoint.backbone(unused=("linear.weight",))
    dim, hidden = weight.shape
    if hidden != backbone.dim or metadata.get("dim", dim) != dim:
        raise ArtifactError(
            f"'linear.weight' maps {hidden} components to {dim}, but the transformer has {backbone.dim} and "
            f"artifact.metadata says dim {metadata.get('dim', dim)}"
        )
    linear = Linear(dim, bias=False, in_dim=hidden).setup()
    linear._load_strictly({"linear_.weight": weight.float()}, folder)
    # Without metadata: the defaults of Stanford's own configuration.
    skip = PUNCTUATION if metadata.get("mask_punctuation", True) else ()
    length = metadata.get("query_maxlen") or 32
    head = TokenVectors(skip=skip, projection=linear, normalise=True)
    attend = bool(metadata.get("attend_to_mask_tokens"))
    query = TextInput(length, metadata.get("query_token_id") or "[unused0]", expand_to=length, attend=attend)
    document = TextInput(metadata.get("doc_maxlen") or 220, metadata.get("doc_token_id") or "[unused1]")
    return DualEncoder(Encoder(backbone, {"tokens": head}, query, document))
