"""Retrievers and chains of them: in `first >> second`, the second reranks the results of the first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

from counterpoint.errors import ConfigError
from counterpoint.search.run import Run

__all__ = ["Pipeline", "Retriever"]


@runtime_checkable
class Retriever(Protocol):
    """A callable that ranks documents for queries."""

    def __call__(self, queries: Mapping[str, str], run: Run | None = None) -> Run:
        """Rank documents for each query (id to text): all documents, or only those of `run`."""
        ...


@final
@dataclass(frozen=True)
class Pipeline:
    """A sequence of retrievers; each reranks the results of the previous one."""

    stages: tuple[Retriever, ...]

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("a pipeline needs at least one stage")

    def __call__(self, queries: Mapping[str, str], run: Run | None = None) -> Run:
        """Run every stage on the results of the previous one."""
        first, *others = self.stages
        run = first(queries, run)
        for stage in others:
            run = stage(queries, run)
        return run

    def __rshift__(self, other: Retriever) -> Pipeline:
        return Pipeline((*self.stages, *(other.stages if isinstance(other, Pipeline) else (other,))))
