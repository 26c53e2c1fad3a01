"""How an index is searched: which parts make up the score, with which weights, over which candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

from counterpoint.config import plain
from counterpoint.errors import ConfigError
from counterpoint.index import LEXICAL, PROBES, Index, SetLayout
from counterpoint.index.settings import check_matching
from counterpoint.typed import faults_of

__all__ = [
    "FUSIONS",
    "LEXICAL",
    "WORKFLOWS",
    "Plan",
    "SearchSettings",
    "Workflow",
    "check_weights",
    "parse_feedback",
    "parse_weights",
    "plan_for",
    "plan_of_parts",
]

Workflow = Literal["hybrid", "lexical", "dense", "words", "dense-words", "words-dense"]

WORKFLOWS: Mapping[Workflow, str] = MappingProxyType(
    {
        "hybrid": "BM25, the pooled vectors and sets with an inverted index propose (every set, where one is "
        "static and none pooled), every part scores (ColBERTer's 1, with BM25)",
        "lexical": "BM25 alone",
        "dense": "the pooled vectors alone (ColBERTer's 4)",
        "words": "late interaction alone: of every document, or of those in an inverted index of exact words "
        "or of centroids (ColBERTer's 5)",
        "dense-words": "the pooled vectors propose, they and late interaction score (ColBERTer's 2)",
        "words-dense": "late interaction proposes, it and the pooled vectors score (ColBERTer's 3)",
    }
)

FUSIONS = ("ceiling", "min-max", "z-score", "rrf", "none")
"""Short names for how parts are made comparable; see `SearchSettings.with_fusion`."""


@dataclass(frozen=True)
class SearchSettings:
    """How the parts of a score are combined.

    Attributes:
        weights: weight of each part that the hybrid uses; parts left out are not used.
        idf: by vector set, the power of idf (over the indexed documents, of the word that a row stands for)
            that the query's rows are multiplied by; sets left out are not weighted. Rows that stand for
            nothing in a text ([CLS], [MASK]) count 0.
        adapt: by part, how its weight follows the query; empty for fixed weights. For BM25 the power of the
            share of the query's idf that the collection has, by which its weight is multiplied. For a set of
            several vectors a document, how many of them a candidate has on average where it has its full
            weight; with fewer it has the square of the fraction. The vector sets share the weight that they
            have together. A part that scores all candidates alike has no weight. Only where parts are divided
            by their ceilings, and nothing else is done to them.
        scale: `ceiling` divides a part by the highest value that it could reach for this query (the sum of
            idf for BM25, the sum of the query vectors' lengths otherwise), so that parts are comparable and
            what they say of a document does not depend on which others were found, and turns weights into
            shares, so that 1 would be a perfect match in every part; `none` leaves parts and weights alone.
        normalise: in addition, over the candidates of a query.
        method: `convex` adds the weighted parts, `rrf` the reciprocals of their ranks.
        candidates: how many documents each first stage proposes, at least.
        exact: vector sets in which only rows with equal ids match. Their score is Σ max(0, best match) over
            the query's rows, so that a word without a match and one whose only match is negative add the
            same, nothing, whether an inverted index or a match matrix is looked at.
        floor: other vector sets whose best similarity is raised to 0 where it is negative.
        exhaustive: look at every vector even where the index has a sketch, a graph or lists of them.
        probes: of token sets that have lists of centroids, how many lists are looked at for each of the
            query's vectors; more find more and take longer.
        feedback: what the hybrid's best documents count for, beside all its parts together as 1: a candidate
            is ranked by its likeness to them in the pooled sets, whatever their weights, too
            (pseudo-relevance feedback; see `Feedback`). Where parts are divided by their ceilings, all shares
            are made to sum to 1 again. 0 for none; an index without a pooled set has none.
        feedback_documents: how many of the best are taken.

    Raises:
        ConfigError: listing every setting that is not of its type; or feedback or a number of `adapt` is
            below 0, or feedback is of less than one document, or there are less than one candidate or
            probe.
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    idf: Mapping[str, float] = field(default_factory=dict)
    scale: Literal["ceiling", "none"] = "ceiling"
    normalise: Literal["none", "min-max", "z-score"] = "none"
    method: Literal["convex", "rrf"] = "convex"
    candidates: int = 200
    exact: tuple[str, ...] = ()
    floor: tuple[str, ...] = ()
    exhaustive: bool = False
    probes: int = PROBES
    feedback: float = 0.0
    feedback_documents: int = 5
    adapt: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        faults = [
            fault
            for name, hint in hints.items()
            for fault in faults_of(plain(getattr(self, name)), hint, f"search.{name}")
        ]
        least = {"feedback": 0, "feedback_documents": 1, "candidates": 1, "probes": 1}
        faults = faults or [
            f"search.{name}: expected a {'weight' if name == 'feedback' else 'whole number'} from {low} up, "
            f"found {getattr(self, name)}"
            for name, low in least.items()
            if getattr(self, name) < low
        ]
        faults = faults or [
            f"search.adapt: expected a number from 0 up for {part!r}, found {number}"
            for part, number in self.adapt.items()
            if number < 0
        ]
        if faults:
            raise ConfigError(*faults)
        for key in ("exact", "floor"):
            object.__setattr__(self, key, tuple(getattr(self, key)))

    def floors(self, name: str) -> bool:
        """Whether a set's best similarities are raised to 0."""
        return name in self.exact or name in self.floor

    def checked(self, index: Index) -> SearchSettings:
        """These settings, if the index's sets can match as they say.

        Raises:
            ConfigError: `exact` or `floor` names a set that cannot.
        """
        check_matching("exact", self.exact, index.layouts)
        check_matching("floor", self.floor, index.layouts)
        return self

    def apart_from_weights(self) -> SearchSettings:
        """All that they say beside weights and feedback."""
        return replace(self, weights={}, adapt={}, feedback=0.0, feedback_documents=1)

    def with_weights(self, weights: Mapping[str, float]) -> SearchSettings:
        """The same settings with these weights for every query."""
        return replace(self, weights=weights, adapt={})

    @property
    def adapts(self) -> bool:
        """Whether weights can follow the query: parts are divided by their ceilings, and then added up."""
        return self.scale == "ceiling" and self.normalise == "none" and self.method == "convex"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the manifest keeps it."""
        copied = {"weights": dict(self.weights), "idf": dict(self.idf), "adapt": dict(self.adapt)}
        return {**asdict(self), **copied, "exact": list(self.exact), "floor": list(self.floor)}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> SearchSettings:
        """The inverse of `to_dict`.

        Raises:
            ConfigError: listing every setting that does not exist, or that is not of its type.
        """
        hints = get_type_hints(SearchSettings)
        if unknown := [name for name in data if name not in hints]:
            raise ConfigError(
                f"search: there is no setting {', '.join(map(repr, unknown))}; there are {', '.join(hints)}"
            )
        return SearchSettings(**data)

    @staticmethod
    def for_index(index: Index) -> SearchSettings:
        """What the index was built to be searched with; equal weights where nothing was said."""
        parts = [*index.layouts, *([LEXICAL] if index.manifest.has_lexical else [])]
        return SearchSettings.for_parts(parts, index.manifest.settings["search"])

    @staticmethod
    def for_parts(parts: Sequence[str], said: Mapping[str, Any] | None) -> SearchSettings:
        """What was said (as plain data), with equal weights of all parts where it says nothing of weights."""
        return SearchSettings.from_dict({"weights": dict.fromkeys(parts, 1.0), **(said or {})})

    def with_fusion(self, name: str) -> SearchSettings:
        """The same settings with the parts made comparable in another way, by one of `FUSIONS`.

        Raises:
            ConfigError: there is no such way.
        """
        if name not in FUSIONS:
            raise ConfigError(
                f"--fusion: unknown {name!r}; choose {', '.join(FUSIONS[:-1])} or {FUSIONS[-1]}"
            )
        if name == "ceiling":
            return replace(self, scale="ceiling", normalise="none", method="convex")
        plain = replace(self, scale="none", normalise="none", method="convex")
        if name == "rrf":
            return replace(plain, method="rrf")
        return plain if name == "none" else replace(plain, normalise=name)


def parse_weights(text: str, names: Sequence[str] | None = None) -> dict[str, float]:
    """Parse "name=number name=number".

    Args:
        text: entries separated by spaces or commas.
        names: the parts that there are; None to accept any name.

    Raises:
        ConfigError: listing every entry that is not of that form or names nothing known.
    """
    weights, faults = {}, []
    for entry in text.replace(",", " ").split():
        name, _, number = entry.rpartition("=")
        if name in weights:
            faults.append(f"weights: {name} stands there twice; give each part one weight")
        try:
            weights[name] = float(number)
            if not isfinite(weights[name]):
                raise ValueError
        except ValueError:
            faults.append(f"weights: expected name=number, found {entry!r}")
            continue
        if names is not None and name not in names:
            faults.append(f"weights: nothing is named {name!r}; there are {', '.join(names)}")
    if faults or not weights:
        raise ConfigError(*faults or ["weights: none given"])
    return weights


def check_weights(given: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Weights by part, as a program gives them.

    Raises:
        ConfigError: listing every one that is no finite number or names nothing known, or there are none.
    """
    faults = [
        f"weights: expected a finite number for {name!r}, found {number!r}"
        for name, number in given.items()
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number)
    ]
    faults += [
        f"weights: nothing is named {name!r}; there are {', '.join(names)}"
        for name in given
        if name not in names
    ]
    if faults or not given:
        raise ConfigError(*faults or ["weights: none given"])
    return {name: float(number) for name, number in given.items()}


def parse_feedback(text: str) -> dict[str, Any]:
    """The settings that "weight" or "weight,documents" stands for.

    Raises:
        ConfigError: it is not of that form, or no such feedback can be.
    """
    weight, comma, documents = text.partition(",")
    try:
        found: dict[str, Any] = {"feedback": float(weight)} | (
            {"feedback_documents": int(documents)} if comma else {}
        )
    except ValueError as error:
        raise ConfigError(f"--feedback: expected WEIGHT or WEIGHT,DOCUMENTS, found {text!r}") from error
    SearchSettings(**found)
    return found


@dataclass(frozen=True)
class Plan:
    """A workflow resolved against an index: who proposes candidates, and what is added up.

    Attributes:
        workflow: its name.
        first: the parts that propose.
        weights: of the parts that score.
        feedback: the pooled sets by which candidates are likened to the best of them; none without feedback.
        adapt: by part, how its weight follows the query; none where weights do not.
    """

    workflow: str
    first: tuple[str, ...]
    weights: Mapping[str, float]
    feedback: tuple[str, ...] = ()
    adapt: Mapping[str, float] = field(default_factory=dict)


def plan_for(workflow: Workflow, index: Index, settings: SearchSettings) -> Plan:
    """Resolve a workflow.

    Raises:
        ConfigError: the index lacks a part that the workflow needs, or the workflow is unknown.
    """
    return plan_of_parts(workflow, index.layouts, index.manifest.has_lexical, settings)


def plan_of_parts(
    workflow: Workflow, layouts: Mapping[str, SetLayout], has_lexical: bool, settings: SearchSettings
) -> Plan:
    """Resolve a workflow against the parts of an index that need not exist yet.

    Raises:
        ConfigError: as `plan_for`.
    """
    pooled = [name for name, layout in layouts.items() if layout.pooled]
    several = [name for name, layout in layouts.items() if not layout.pooled]
    lexical = [LEXICAL] if has_lexical else []
    listed = [name for name in several if layouts[name].kind in ("static", "lists")]
    inverted = [name for name in several if name in settings.exact or name in listed]
    static = any(layout.kind == "static" for layout in layouts.values())
    # A static set knows words only, so something contextual proposes beside it (HIL, figure 3).
    cheap = several if static and not pooled else inverted
    needed: dict[str, tuple[list[str], list[str]]] = {
        "hybrid": ([*lexical, *pooled, *cheap] or several, [*lexical, *pooled, *several]),
        "lexical": (lexical, lexical),
        "dense": (pooled, pooled),
        "words": (several, several),
        "dense-words": (pooled, [*pooled, *several] if several else []),
        "words-dense": (several, [*pooled, *several] if pooled else []),
    }
    if workflow not in needed:
        raise ConfigError(f"-w: unknown workflow {workflow!r}; choose one of {', '.join(needed)}")
    first, parts = needed[workflow]
    if not first or not parts:
        has = ", ".join([*lexical, *layouts])
        raise ConfigError(f"-w {workflow}: this index has no such part; it has {has}")
    # The other workflows say themselves which parts score.
    fed = pooled if settings.feedback and workflow == "hybrid" else []
    if len(parts) == 1:
        return Plan(workflow, tuple(first), {parts[0]: 1.0}, tuple(fed))
    weights = {part: settings.weights[part] for part in parts if settings.weights.get(part)}
    if not weights:
        raise ConfigError(f"-w {workflow}: none of its parts ({', '.join(parts)}) has a weight")
    if settings.scale == "ceiling":
        if negative := [part for part, weight in weights.items() if weight < 0]:
            raise ConfigError(
                f"weights: {negative[0]}={weights[negative[0]]:g} is below 0, and shares of a ceiling cannot "
                "be; choose another fusion, such as --fusion none, or another weight"
            )
        weights = {part: weight / sum(weights.values()) for part, weight in weights.items()}
    first = [part for part in first if part in weights] or first
    adapt = {part: settings.adapt[part] for part in weights if part in settings.adapt and settings.adapts}
    return Plan(workflow, tuple(first), weights, tuple(fed), adapt if len(weights) > 1 else {})
