"""Search settings: the parts of the score, their weights, and the number of candidates."""

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
    "parts_of",
    "plan_for",
    "plan_of_parts",
]

Workflow = Literal["hybrid", "lexical", "dense", "words", "dense-words", "words-dense"]

WORKFLOWS: Mapping[Workflow, str] = MappingProxyType(
    {
        "hybrid": "BM25, the pooled vectors and sets with an inverted index propose (every set, if one is "
        "static and none is pooled), every part scores (ColBERTer's 1, with BM25)",
        "lexical": "BM25 only",
        "dense": "pooled vectors only (ColBERTer's 4)",
        "words": "late interaction only: over every document, or those in an inverted index of exact words "
        "or of centroids (ColBERTer's 5)",
        "dense-words": "pooled vectors propose, pooled vectors and late interaction score (ColBERTer's 2)",
        "words-dense": "late interaction proposes, pooled vectors and late interaction score (ColBERTer's 3)",
    }
)

FUSIONS = ("ceiling", "min-max", "z-score", "rrf", "none")
"""Short names of the ways to make parts comparable; see `SearchSettings.with_fusion`."""

REFINED = 100  # chosen by the rule in docs/default-model.md


@dataclass(frozen=True)
class SearchSettings:
    """How the parts of a score are combined.

    Attributes:
        weights: weight of each part that the hybrid uses; parts left out are not used.
        idf: for each vector set, the power of idf that the query's rows are multiplied by. The idf is that of
            the row's word in the indexed documents. Sets left out are not weighted. Rows of no word ([CLS],
            [MASK]) count 0.
        adapt: for each part, how its weight follows the query; empty for fixed weights. For BM25, the weight
            is multiplied by this power of the share of the query's idf that the collection has. For a
            multi-vector set, the weight is full if candidates have on average this many vectors; with fewer
            it is multiplied by the square of the fraction. The vector sets keep their total weight. A part
            that scores all candidates equally gets weight 0. Used only if parts are divided by their ceilings
            and not changed otherwise.
        scale: `ceiling` divides a part by the highest value that it could reach for this query: the sum of
            idf for BM25, otherwise the sum of the query vectors' lengths. This makes parts comparable,
            independent of the other documents found. It also turns weights into shares, so that a score of 1
            is a perfect match in every part. `none` leaves parts and weights unchanged.
        normalise: additional normalisation over the candidates of a query.
        method: `convex` adds the weighted parts, `rrf` the reciprocals of their ranks.
        candidates: minimum number of documents that each first stage proposes.
        refined: of the candidates of several first stages, the number that the other parts score: the best by
            the sum of what the proposing parts score, each divided by its ceiling. At least twice as many as
            were asked for. Used only where parts are divided by their ceilings and then added.
        exact: vector sets in which only rows with equal ids match. Their score is Σ max(0, best match) over
            the query's rows. So a word without a match and a word with only a negative match both add 0,
            whether an inverted index or a match matrix is used.
        floor: other vector sets whose best similarity is raised to 0 if it is negative.
        exhaustive: score every vector, even if the index has a sketch, a graph or lists, and every candidate.
        probes: for token sets with lists of centroids, the number of lists probed per query vector; more find
            more and take longer.
        feedback: weight of pseudo-relevance feedback (see `Feedback`), where all parts of the hybrid together
            weigh 1. Candidates are also ranked by their similarity to the best documents in the pooled sets,
            whatever the weights of these. If parts are divided by their ceilings, all shares are scaled to
            sum to 1 again. 0 for none; an index without a pooled set has none.
        feedback_documents: number of best documents that feedback uses.
        fixed_weights: give every query the same weights; `adapt` stays for searches that ask for it.

    Raises:
        ConfigError: lists every setting of the wrong type, a negative `feedback` or number in `adapt`, and
            less than 1 of `feedback_documents`, `candidates`, `refined` or `probes`.
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
    fixed_weights: bool = False
    refined: int = REFINED

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        faults = [
            fault
            for name, hint in hints.items()
            for fault in faults_of(plain(getattr(self, name)), hint, f"search.{name}")
        ]
        least = {"feedback": 0, "feedback_documents": 1, "candidates": 1, "refined": 1, "probes": 1}
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
        """Whether a set's negative best similarities are raised to 0."""
        return name in self.exact or name in self.floor

    def checked(self, index: Index) -> SearchSettings:
        """Return these settings if the index's sets support them.

        Raises:
            ConfigError: `exact` or `floor` names a set that does not support it.
        """
        check_matching("exact", self.exact, index.layouts)
        check_matching("floor", self.floor, index.layouts)
        return self

    def apart_from_weights(self) -> SearchSettings:
        """The settings without weights and feedback."""
        return replace(self, weights={}, adapt={}, fixed_weights=False, feedback=0.0, feedback_documents=1)

    def with_weights(self, weights: Mapping[str, float]) -> SearchSettings:
        """The same settings with these weights for every query."""
        return replace(self, weights=weights, fixed_weights=bool(self.adapt))

    @property
    def adapts(self) -> bool:
        """Whether weights can follow the query: parts are divided by their ceilings and then added."""
        return self.scale == "ceiling" and self.normalise == "none" and self.method == "convex"

    @property
    def follows_query(self) -> bool:
        """Whether weights follow the query: they can, `adapt` says how, and they are not fixed."""
        return self.adapts and bool(self.adapt) and not self.fixed_weights

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as the manifest keeps it."""
        copied = {"weights": dict(self.weights), "idf": dict(self.idf), "adapt": dict(self.adapt)}
        found = {**asdict(self), **copied, "exact": list(self.exact), "floor": list(self.floor)}
        for name, default in (("fixed_weights", False), ("refined", REFINED)):
            if found[name] == default:
                del found[name]  # earlier versions do not know it
        return found

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> SearchSettings:
        """The inverse of `to_dict`.

        Raises:
            ConfigError: lists every setting that does not exist or has the wrong type.
        """
        hints = get_type_hints(SearchSettings)
        if unknown := [name for name in data if name not in hints]:
            raise ConfigError(
                f"search: unknown setting {', '.join(map(repr, unknown))}; expected {', '.join(hints)}"
            )
        return SearchSettings(**data)

    @staticmethod
    def for_index(index: Index) -> SearchSettings:
        """The search settings stored in the index; equal weights if none are stored."""
        parts = [*index.layouts, *([LEXICAL] if index.manifest.has_lexical else [])]
        return SearchSettings.for_parts(parts, index.manifest.settings["search"])

    @staticmethod
    def for_parts(parts: Sequence[str], said: Mapping[str, Any] | None) -> SearchSettings:
        """Settings from plain data, with equal weights of all parts if it has no weights."""
        return SearchSettings.from_dict({"weights": dict.fromkeys(parts, 1.0), **(said or {})})

    def with_fusion(self, name: str) -> SearchSettings:
        """The same settings with another way to make parts comparable, one of `FUSIONS`.

        Raises:
            ConfigError: the name is unknown.
        """
        if name not in FUSIONS:
            raise ConfigError(f"fusion: unknown {name!r}; choose {', '.join(FUSIONS[:-1])} or {FUSIONS[-1]}")
        changed = {"ceiling": {"scale": name}, "rrf": {"method": name}}.get(name, {"normalise": name})
        return replace(self, **({"scale": "none", "normalise": "none", "method": "convex"} | changed))


def parse_weights(text: str, names: Sequence[str] | None = None) -> dict[str, float]:
    """Parse "name=number name=number".

    Args:
        text: entries separated by spaces or commas.
        names: known parts; None to accept any name.

    Raises:
        ConfigError: lists every entry that is malformed or has an unknown name.
    """
    weights, faults = {}, []
    for entry in text.replace(",", " ").split():
        name, _, number = entry.rpartition("=")
        if name in weights:
            faults.append(f"weights: {name} is given twice; give each part one weight")
        try:
            weights[name] = float(number)
            if not isfinite(weights[name]):
                raise ValueError
        except ValueError:
            faults.append(f"weights: expected name=number, found {entry!r}")
            continue
        if names is not None and name not in names:
            faults.append(f"weights: unknown part {name!r}; expected {', '.join(names)}")
    if faults or not weights:
        raise ConfigError(*faults or ["weights: none given"])
    return weights


def check_weights(given: Mapping[str, float], names: Sequence[str]) -> dict[str, float]:
    """Check weights by part.

    Raises:
        ConfigError: lists every weight that is not finite or has an unknown name; or there are none.
    """
    faults = [
        f"weights: expected a finite number for {name!r}, found {number!r}"
        for name, number in given.items()
        if isinstance(number, bool) or not isinstance(number, int | float) or not isfinite(number)
    ]
    faults += [
        f"weights: unknown part {name!r}; expected {', '.join(names)}" for name in given if name not in names
    ]
    if faults or not given:
        raise ConfigError(*faults or ["weights: none given"])
    return {name: float(number) for name, number in given.items()}


def parse_feedback(text: str) -> dict[str, Any]:
    """Parse "weight" or "weight,documents" into settings of feedback.

    Raises:
        ConfigError: the text is malformed, or a number is out of range.
    """
    weight, comma, documents = text.partition(",")
    try:
        found: dict[str, Any] = {"feedback": float(weight)} | (
            {"feedback_documents": int(documents)} if comma else {}
        )
    except ValueError as error:
        raise ConfigError(f"feedback: expected WEIGHT or WEIGHT,DOCUMENTS, found {text!r}") from error
    SearchSettings(**found)
    return found


@dataclass(frozen=True)
class Plan:
    """A workflow resolved for an index: the parts that propose candidates, and those that score.

    Attributes:
        workflow: its name.
        first: the parts that propose candidates.
        weights: weights of the parts that score.
        feedback: the pooled sets that feedback uses; empty without feedback.
        adapt: for each part, how its weight follows the query; empty for fixed weights.
    """

    workflow: str
    first: tuple[str, ...]
    weights: Mapping[str, float]
    feedback: tuple[str, ...] = ()
    adapt: Mapping[str, float] = field(default_factory=dict)


def plan_for(workflow: Workflow, index: Index, settings: SearchSettings) -> Plan:
    """Resolve a workflow for an index.

    Raises:
        ConfigError: the index lacks a part that the workflow needs, or the workflow is unknown.
    """
    return plan_of_parts(workflow, index.layouts, index.manifest.has_lexical, settings)


def plan_of_parts(
    workflow: Workflow, layouts: Mapping[str, SetLayout], has_lexical: bool, settings: SearchSettings
) -> Plan:
    """Resolve a workflow for the parts of an index that may not exist yet.

    Raises:
        ConfigError: as `plan_for`.
    """
    first, parts = parts_of(workflow, layouts, has_lexical, settings)
    # The other workflows fix which parts score.
    pooled = [name for name, layout in layouts.items() if layout.pooled]
    fed = pooled if settings.feedback and workflow == "hybrid" else []
    if len(parts) == 1:
        return Plan(workflow, tuple(first), {parts[0]: 1.0}, tuple(fed))
    weights = {part: settings.weights[part] for part in parts if settings.weights.get(part)}
    if not weights:
        stored = "" if settings.weights else "; SearchSettings.for_index(index) has the stored weights"
        raise ConfigError(f"workflow {workflow}: none of its parts ({', '.join(parts)}) has a weight{stored}")
    if settings.scale == "ceiling":
        if negative := [part for part, weight in weights.items() if weight < 0]:
            raise ConfigError(
                f"weights: {negative[0]}={weights[negative[0]]:g} is below 0, which a share of a ceiling "
                "cannot be; choose another fusion, such as --fusion none, or another weight"
            )
        weights = {part: weight / sum(weights.values()) for part, weight in weights.items()}
    first = [part for part in first if part in weights] or first
    adapt = {part: settings.adapt[part] for part in weights if part in settings.adapt}
    adapt = adapt if len(weights) > 1 and settings.follows_query else {}
    return Plan(workflow, tuple(first), weights, tuple(fed), adapt)


def parts_of(
    workflow: Workflow, layouts: Mapping[str, SetLayout], has_lexical: bool, settings: SearchSettings
) -> tuple[list[str], list[str]]:
    """The parts of an index that propose candidates in a workflow, and those that can score.

    Raises:
        ConfigError: as `plan_for`.
    """
    pooled = [name for name, layout in layouts.items() if layout.pooled]
    several = [name for name, layout in layouts.items() if not layout.pooled]
    lexical = [LEXICAL] if has_lexical else []
    listed = ("static", "lists")
    inverted = [name for name in several if name in settings.exact or layouts[name].kind in listed]
    static = any(layout.kind == "static" for layout in layouts.values())
    # A static set only knows words, so a contextual set proposes as well (HIL, figure 3).
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
        raise ConfigError(f"unknown workflow {workflow!r}; choose one of {', '.join(needed)}")
    first, parts = needed[workflow]
    if not first or not parts:
        has = ", ".join([*lexical, *layouts])
        raise ConfigError(f"workflow {workflow}: this index has no such part; it has {has}")
    return first, parts
