"""`SetTraits`: properties of a vector set, for losses that do not support every kind of set."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SetTraits"]


@dataclass(frozen=True)
class SetTraits:
    """Properties of a vector set.

    Attributes:
        pooled: one row per text.
        ids: every row has an id.
        gated: a gate weights the rows of documents.
        routed: a router decides the rows.
    """

    pooled: bool = False
    ids: bool = True
    gated: bool = False
    routed: bool = False
