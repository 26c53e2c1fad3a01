"""The grid of a sweep: what is asked for."""

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

DEPTH = 100  # documents kept for each query unless the grid says otherwise

SECTIONS: Mapping[Literal["index", "search"], tuple[str, ...]] = MappingProxyType(
    {"index": ("codec", "analyzer", "identifiers", "k1", "b"), "search": ("fusion", "weights", "feedback")}
)
"""The settings that a grid may vary, by the table of the file in which they stand."""


@final
@dataclass(frozen=True)
class ModelEntry:
    """A model of the grid: its label, and where it is (None: BM25 alone)."""

    name: str
    model: str | None


@final
@dataclass(frozen=True)
class CollectionEntry:
    """A collection of the grid.

    Attributes:
        name: its label.
        source: what `open_collection` takes.
        split: which judgements.
        relevant_from: the grade from which on a document is relevant, for measures that need to know and do
            not say.
    """

    name: str
    source: str
    split: str
    relevant_from: int | None = None


@final
@dataclass(frozen=True)
class Grid:
    """What a sweep evaluates: every combination of what stands in its lists.

    Attributes:
        measures: by the names they were given; the first one is drawn.
        models: at least one.
        workflows: at least one.
        collections: at least one.
        settings: by setting (those of `SECTIONS`) its values; settings left out are those of each model.
        k: documents kept for each query.
        keep_encodings: whether vectors outlive the sweep.
    """

    measures: tuple[str, ...]
    models: tuple[ModelEntry, ...]
    workflows: tuple[Workflow, ...]
    collections: tuple[CollectionEntry, ...]
    settings: Mapping[str, tuple[Any, ...]]
    k: int = DEPTH
    keep_encodings: bool = True

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Values by setting, for each combination of the values."""
        for values in product(*self.settings.values()):
            yield dict(zip(self.settings, values, strict=True))

    def measures_for(self, collection: CollectionEntry) -> dict[str, str]:
        """By each measure's name, the measure as it is computed on a collection: with its binarisation."""
        computed = with_judging(self.measures, relevant_from=collection.relevant_from)
        return dict(zip(self.measures, computed, strict=True))

    def to_toml(self) -> str:
        """The grid with every path absolute and every default written out; `read_grid` reads it again."""
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
