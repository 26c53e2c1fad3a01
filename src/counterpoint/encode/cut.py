"""`cut_query`: a light query encoder made from some layers of a deep encoder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from counterpoint.encode.dual import DualEncoder
from counterpoint.encode.encoder import Encoder
from counterpoint.encode.gate import Gate
from counterpoint.encode.layers import Layer
from counterpoint.errors import ConfigError

__all__ = ["cut_query"]


def cut_query(
    encoder: Encoder | DualEncoder,
    query_layers: int | Sequence[int],
    shared: Mapping[str, Layer] | None = None,
) -> DualEncoder:
    """Pair an encoder for documents with a copy of some of its layers for queries (DAFT).

    A trained encoder keeps its weights; one that is not set up stays so. The two sides share only `shared`,
    so align them before you train both.

    Args:
        encoder: the deep encoder; of a dual encoder, its document side with its shared layers.
        query_layers: layers of the copy: an int for the first so many, or a list counted from 0. Heads read
            the last layer, so [0, 5] of six starts far closer to the encoder than the first two. 0 keeps the
            embeddings alone (no self-attention).
        shared: layers after both sides' heads, as in `DualEncoder`; if None, those of a dual encoder.

    Raises:
        ConfigError: the encoder has fewer layers, or some sets have a backbone of their own.

    Example:
        >>> deep = Encoder(Transformer("minilm"), {"mean": Mean()})
        >>> light = cut_query(deep, query_layers=2, shared={"mean": Stack([Linear(256), Unit()])})
        >>> light.query.backbone.layers, light.document.backbone.layers
        (2, None)
    """
    if isinstance(query_layers, int) and query_layers < 0:
        raise ConfigError(f"query_layers must be at least 0, found {query_layers}")
    gates: dict[str, Gate] = {}
    if isinstance(encoder, DualEncoder):
        shared, gates = encoder._shared() if shared is None else shared, encoder._gates()
        encoder = encoder.encoder("document")
    if encoder.own is not None:
        raise ConfigError(
            f"cut_query: cannot cut {', '.join(encoder.own)}, which has a backbone of its own; declare the "
            "light encoder yourself: DualEncoder(light, encoder)"
        )
    light = encoder.backbone.cut(query_layers)
    heads = {name: deepcopy(head) for name, head in encoder._heads().items()}
    query = Encoder(light, heads, encoder.query, encoder.document, identifiers=encoder.identifiers)
    return DualEncoder(query.setup() if encoder.is_set_up else query, encoder, shared, gates)
