"""Isotropy of each layer of a backbone (HIL, figure 5; Ethayarajh 2019)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any, final

import numpy as np
from jaxtyping import Float

from counterpoint.measure.inter_iso import mean_rows, split_inter_iso
from counterpoint.measure.isotropy import Isotropy, IsotropyStream
from counterpoint.types import Ragged

__all__ = ["LayerBatches", "LayerIsotropy", "layer_isotropy", "log_differences"]

LayerBatches = Iterable[tuple[Sequence[int], Sequence[Ragged]]]
"""Positions of texts and, for each layer, their states, from `DualEncoder.encode_layers`."""


@final
@dataclass(frozen=True)
class LayerIsotropy:
    """Isotropy of one layer's hidden states.

    Attributes:
        layer: its number; 0 is the input of the first layer.
        query: the queries' states; None if only the document side's backbone has this layer.
        document: the documents' states; None if only the query side's backbone has this layer.
        inter_iso: mean InterIso of the pairs, with states scaled to length 1. None without pairs, or if the
            two sides' backbones differ in number of layers or components.
        other_inter_iso: that of all other combinations of queries and documents.
    """

    layer: int
    query: Isotropy | None
    document: Isotropy | None
    inter_iso: float | None
    other_inter_iso: float | None

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name."""
        return asdict(self)


def layer_isotropy(
    queries: LayerBatches, documents: LayerBatches, pairs: Sequence[tuple[int, int]]
) -> list[LayerIsotropy]:
    """Compute the measures of every layer; of the states, only the mean of each text is kept.

    I(W) is averaged over the batches (see `IsotropyStream`). Each text comes once. A pair has the positions
    of a query and a document that belong together.
    """
    (left, query_means), (right, document_means) = _gathered(queries), _gathered(documents)
    comparable = [means.shape[1] for means in query_means] == [means.shape[1] for means in document_means]
    found = []
    for layer, (query, document) in enumerate(zip_longest(left, right)):
        own = other = None
        if comparable:
            own, other = split_inter_iso(query_means[layer] @ document_means[layer].T, pairs)
        found.append(LayerIsotropy(layer, query, document, own, other))
    return found


def log_differences(layers: Sequence[LayerIsotropy], base: Sequence[LayerIsotropy]) -> list[float | None]:
    """Ln InterIso of each layer minus that of the same layer of another model (HIL, figure 5).

    None if one of them is missing or not above 0, so that it has no logarithm.
    """
    found = []
    for ours, theirs in zip(layers, base, strict=False):
        a, b = ours.inter_iso, theirs.inter_iso
        found.append(float(np.log(a / b)) if a is not None and b is not None and a > 0 and b > 0 else None)
    return found


def _gathered(batches: LayerBatches) -> tuple[list[Isotropy], list[Float[np.ndarray, "b d"]]]:
    """By layer: the measures, and the mean unit state of every text, in the order of positions."""
    streams: list[IsotropyStream] = []
    order: list[int] = []
    means: list[list[np.ndarray]] = []
    for positions, layers in batches:
        order += positions
        if not streams:
            streams = [IsotropyStream(layer.dim) for layer in layers]
            means = [[] for _ in layers]
        for stream, kept, layer in zip(streams, means, layers, strict=True):
            stream.update(layer.values)
            kept.append(mean_rows(layer))
    places = np.argsort(order)
    return [stream.result() for stream in streams], [np.concatenate(kept)[places] for kept in means]
