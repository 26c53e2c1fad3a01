"""How an index is searched: which parts make up the score, with which weights, over which candidates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from counterpoint.errors import ConfigError
from counterpoint.index import Index

__all__ = ["LEXICAL", "WORKFLOWS", "Plan", "SearchSettings", "Workflow", "plan_for"]

LEXICAL = "lexical"
"""Name of the BM25 part; every other part is named after its vector set."""

Workflow = Literal["hybrid", "lexical", "dense", "words", "dense-words"]

WORKFLOWS: Mapping[Workflow, str] = MappingProxyType(
    {
        "hybrid": "BM25 and the pooled vectors propose, every part scores (ColBERTer's 1, with BM25)",
        "lexical": "BM25 alone",
        "dense": "the pooled vectors alone (ColBERTer's 4)",
        "words": "every document by late interaction (ColBERTer's 5)",
        "dense-words": "the pooled vectors propose, they and late interaction score (ColBERTer's 2)",
    }
)


@dataclass(frozen=True)
class SearchSettings:
    """How the parts of a score are combined.

    Attributes:
        weights: weight of each part that the hybrid uses; parts left out are not used.
        idf: by vector set, the power of idf (over the indexed documents, of the word that a row stands for)
            that the query's rows are multiplied by; sets left out are not weighted.
        scale: `ceiling` divides a part by the highest value that it could reach for this query (the sum of
            idf for BM25, the sum of the query vectors' lengths otherwise), so that parts are comparable and
            a document's score does not depend on which others were found, and turns weights into shares, so
            that 1 would be a perfect match in every part; `none` leaves parts and weights as they are.
        normalise: in addition, over the candidates of a query.
        method: `convex` adds the weighted parts, `rrf` the reciprocals of their ranks.
        candidates: how many documents each first stage proposes, at least.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    idf: Mapping[str, float] = field(default_factory=dict)
    scale: Literal["ceiling", "none"] = "ceiling"
    normalise: Literal["none", "min-max", "z-score"] = "none"
    method: Literal["convex", "rrf"] = "convex"
    candidates: int = 200

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the manifest keeps it."""
        return {**asdict(self), "weights": dict(self.weights), "idf": dict(self.idf)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> SearchSettings:
        """The inverse of `to_dict`."""
        return SearchSettings(**data)

    @staticmethod
    def for_index(index: Index) -> SearchSettings:
        """What the index was built to be searched with; equal weights where nothing was said."""
        said = index.manifest.settings["search"]
        if said is not None:
            return SearchSettings.from_dict(said)
        parts = [*index.layouts, *([LEXICAL] if index.manifest.lexical else [])]
        return SearchSettings(weights=dict.fromkeys(parts, 1.0))


@dataclass(frozen=True)
class Plan:
    """A workflow resolved against an index: who proposes candidates, and what is added up."""

    workflow: str
    first: tuple[str, ...]
    weights: Mapping[str, float]


def plan_for(workflow: Workflow, index: Index, settings: SearchSettings) -> Plan:
    """Resolve a workflow.

    Raises:
        ConfigError: the index lacks a part that the workflow needs, or the workflow is unknown.
    """
    pooled = [name for name, layout in index.layouts.items() if layout.pooled]
    several = [name for name, layout in index.layouts.items() if not layout.pooled]
    lexical = [LEXICAL] if index.manifest.lexical else []
    needed: dict[str, tuple[list[str], list[str]]] = {
        "hybrid": ([*lexical, *pooled] or several, [*lexical, *pooled, *several]),
        "lexical": (lexical, lexical),
        "dense": (pooled, pooled),
        "words": (several, several),
        "dense-words": (pooled, [*pooled, *several] if several else []),
    }
    if workflow not in needed:
        raise ConfigError(f"unknown workflow {workflow!r}; choose one of {', '.join(needed)}")
    first, parts = needed[workflow]
    if not first or not parts:
        has = ", ".join([*lexical, *index.layouts])
        raise ConfigError(f"workflow {workflow!r}: this index has no such part; it has {has}")
    if len(parts) == 1:
        return Plan(workflow, tuple(first), {parts[0]: 1.0})
    weights = {part: settings.weights[part] for part in parts if settings.weights.get(part)}
    if not weights:
        raise ConfigError(f"workflow {workflow!r}: none of its parts ({', '.join(parts)}) has a weight")
    if settings.scale == "ceiling":
        weights = {part: weight / sum(weights.values()) for part, weight in weights.items()}
    return Plan(workflow, tuple(part for part in first if part in weights) or tuple(first), weights)
