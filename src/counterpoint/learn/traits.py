"""`SetTraits`: what a model says of one of its vector sets, for losses that cannot do with every kind."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SetTraits"]


@dataclass(frozen=True)
class SetTraits:
    """What a vector set is.

    Attributes:
        pooled: one row a text.
        ids: every row has an id.
        gated: a gate weighs the rows of documents.
        routed: a router decides the rows.
    """

    pooled: bool = False
    ids: bool = True
    gated: bool = False
    routed: bool = False
