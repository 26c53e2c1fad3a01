"""`Grid`: the models, collections, workflows and settings of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from types import MappingProxyType
from typing import Any, Literal, final

import tomli_w

from counterpoint.measure import with_judging
from counterpoint.search import Workflow

__all__ = ["DEPTH", "SECTIONS", "CollectionEntry", "Grid", "ModelEntry"]

DEPTH = 100  # documents retrieved per query by default

SECTIONS: Mapping[Literal["index", "search"], tuple[str, ...]] = MappingProxyType(
    {
        "index": ("codec", "pool_factor", "analyzer", "identifiers", "k1", "b"),
        "search": ("fusion", "weights", "feedback"),
    }
)
"""The settings that a grid may vary, by their table in the file."""


@final
@dataclass(frozen=True)
class ModelEntry:
    """A model of the grid: its label, and its source (None for BM25 alone)."""

    name: str
    model: str | None


@final
@dataclass(frozen=True)
class CollectionEntry:
    """A collection of the grid.

    Attributes:
        name: its label.
        source: as for `open_collection`.
        split: the split of its judgements.
        relevant_from: the lowest grade of a relevant document, for measures that need one and do not set it.
    """

    name: str
    source: str
    split: str
    relevant_from: int | None = None


@final
@dataclass(frozen=True)
class Grid:
    """The evaluations of a sweep: every combination of the values in its lists.

    Attributes:
        measures: by their given names. The report plots the first one.
        models: at least one.
        workflows: at least one.
        collections: at least one.
        settings: values by setting (see `SECTIONS`). Omitted settings are those of each model.
        k: documents retrieved per query.
        keep_encodings: whether to keep the vectors after the sweep.
    """

    measures: tuple[str, ...]
    models: tuple[ModelEntry, ...]
    workflows: tuple[Workflow, ...]
    collections: tuple[CollectionEntry, ...]
    settings: Mapping[str, tuple[Any, ...]]
    k: int = DEPTH
    keep_encodings: bool = True

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Each combination of the settings' values, by setting."""
        for values in product(*self.settings.values()):
            yield dict(zip(self.settings, values, strict=True))

    def measures_for(self, collection: CollectionEntry) -> dict[str, str]:
        """The measures as computed on a collection (with their binarisation), by their given names."""
        computed = with_judging(self.measures, relevant_from=collection.relevant_from)
        return dict(zip(self.measures, computed, strict=True))

    def to_toml(self) -> str:
        """The grid with absolute paths and all defaults, as `read_grid` reads it."""
        document: dict[str, Any] = {
            "measures": list(self.measures),
            "models": [{"name": entry.name, "model": entry.model or "none"} for entry in self.models],
            "workflows": list(self.workflows),
            "k": self.k,
            "keep_encodings": self.keep_encodings,
            "collections": [
                {key: value for key, value in asdict(entry).items() if value is not None}
                for entry in self.collections
            ],
        }
        for section, names in SECTIONS.items():
            document[section] = {n: list(self.settings[n]) for n in names if n in self.settings}
        return tomli_w.dumps(document)
