"""How one vector set is stored: `SetLayout`, as in a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from counterpoint.index.codec import CODECS, Bits, CodecName

__all__ = ["AnnName", "Kind", "SetLayout"]

AnnName = Literal["hnsw"]
Kind = Literal["dense", "graph", "several", "lists", "exact", "static"]


@dataclass(frozen=True)
class SetLayout:
    """How one vector set is stored.

    Attributes:
        dim: components of a vector.
        kind: the store (`counterpoint.index.kinds`). `dense`: one vector per document, all scored. `graph`:
            the same, with a graph for the first stage. `several`: multi-vector. `lists`: multi-vector without
            ids, with lists of the documents of each centroid. `exact`: multi-vector with an inverted index of
            its ids. `static`: ids, whose vectors are in the model.
        codec: how a vector becomes bytes.
        ids: every vector has an id.
        pool: a document keeps 1/`pool` of its vectors (`counterpoint.index.token_pooling`).
    """

    dim: int
    kind: Kind
    codec: CodecName
    ids: bool = False
    pool: float = 1.0

    @property
    def pooled(self) -> bool:
        """Whether a document has exactly one vector."""
        return self.kind in ("dense", "graph")

    @property
    def fitted(self) -> bool:
        """Whether rows are stored as differences from fitted means of words or centroids."""
        return self.kind not in ("dense", "graph", "static") and isinstance(CODECS[self.codec], Bits)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a manifest; without `pool` if it is 1, as in formats that did not have it."""
        return {name: value for name, value in asdict(self).items() if name != "pool" or value != 1}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> SetLayout:
        """Read a manifest's layout; formats 1 to 3 had flags instead of a kind."""
        if "kind" in data:
            return SetLayout(**data)
        kind: Kind = "several"
        if data["pooled"]:
            kind = "graph" if data.get("ann") else "dense"
        elif data.get("static"):
            kind = "static"
        elif data.get("inverted"):
            kind = "exact"
        return SetLayout(data["dim"], kind, data["codec"], data["ids"])
