"""`cut_query`: a light query encoder from some of a deep encoder's layers."""

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
    """The encoder for documents, and for queries a copy of some of its layers (DAFT).

    A trained encoder keeps its weights, a declared one stays declared. The two sides share nothing but
    `shared`, so align them before both are trained.

    Args:
        encoder: deep; of a dual encoder its document side, together with its shared layers.
        query_layers: of the copy: the first so many, or these, counted from 0. What a head reads is made by
            the last layer, so [0, 5] of six begin far nearer to the encoder than the first two; 0 leaves the
            embeddings alone (no self-attention).
        shared: layers behind both sides' heads, as in `DualEncoder`; a dual encoder's own where None.

    Raises:
        ConfigError: the encoder has fewer layers, or backbones for some of its sets.

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
            f"cut_query: {', '.join(encoder.own)} with a backbone of its own cannot be cut; declare the "
            "light encoder yourself: DualEncoder(light, encoder)"
        )
    heads = {name: deepcopy(head) for name, head in encoder._heads().items()}
    query = Encoder(
        encoder.backbone.cut(query_layers),
        heads,
        encoder.query,
        encoder.document,
        identifiers=encoder.identifiers,
    )
    return DualEncoder(query.setup() if encoder.is_set_up else query, encoder, shared, gates)
