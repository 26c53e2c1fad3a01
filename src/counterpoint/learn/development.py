"""`DevelopmentSet`: queries that are not trained on, and real retrieval over documents to evaluate with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from counterpoint.types import Qrels

__all__ = ["DevelopmentSet"]


@dataclass(frozen=True)
class DevelopmentSet:
    """What a stage is evaluated on.

    Attributes:
        queries: id to text.
        documents: id to text; everything that is searched.
        qrels: judgements of the queries.
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    qrels: Qrels
