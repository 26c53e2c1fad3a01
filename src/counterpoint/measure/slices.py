"""Slices of the queries, by BM25's success, by length or by metadata, and systems over them."""

from __future__ import annotations

import json
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.measure.significance import WinTieLoss, win_tie_loss
from counterpoint.types import Document, Qrels

__all__ = [
    "ALL",
    "NONE",
    "Facts",
    "Slicing",
    "means_over",
    "relevant_documents",
    "slice_by_field",
    "slice_by_length",
    "slice_by_rank",
    "slice_by_width",
    "wins_over",
    "with_all",
    "words_in",
]

ALL = "all"
NONE = "(none)"
MOST_SLICES = 50  # a field with more values is an id or a text, and its table would be useless

Values = Mapping[str, float]
Slices = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Slicing:
    """One way to divide the queries of an evaluation into slices.

    Attributes:
        name: what the slices are made by.
        slices: label to query ids; no slice is empty. A query with several values is in several slices.
        note: details needed to reproduce the slices.
    """

    name: str
    slices: Mapping[str, tuple[str, ...]]
    note: str = ""

    def labels(self) -> dict[str, list[str]]:
        """The slices of every query."""
        found: dict[str, list[str]] = {}
        for label, queries in self.slices.items():
            for query in queries:
                found.setdefault(query, []).append(label)
        return found


def slice_by_rank(values: Mapping[str, float], name: str) -> Slicing:
    """Split queries into the half with the highest values (`easy`) and the rest (`hard`).

    With BM25's values these are BM25-Easy and -Hard, by nDCG@10 in hybrid isotropy learning (table 4) and by
    RR@10 in RoC. With an odd number of queries, the hard half has one more. Many queries share a value
    (especially 0), so ties are ordered by rising id, and the note says where the cut is.
    """
    ranked = sorted(values, key=lambda query: (-values[query], query))
    middle = len(ranked) // 2
    easy, hard = ranked[:middle], ranked[middle:]
    slices = {label: tuple(half) for label, half in (("easy", easy), ("hard", hard)) if half}
    if not easy or not hard:
        return Slicing(name, slices, "there is only one query")
    lowest, highest = values[easy[-1]], values[hard[0]]
    note = f"easy from {lowest:.4f}, hard to {highest:.4f}"
    if lowest == highest:
        tied = sum(value == lowest for value in values.values())
        note += f"; the cut is among {tied} queries with the same value, ordered by id"
    return Slicing(name, slices, note)


def slice_by_length(
    lengths: Mapping[str, float | None], name: str, edges: Sequence[float] | None = None
) -> Slicing:
    """Bins of the queries' lengths, which are None if there is nothing to measure.

    The edges rise, and each belongs to the bin below it. If None, they are the quartiles.

    Raises:
        ConfigError: the edges do not rise.
    """
    known = [length for length in lengths.values() if length is not None]
    if edges is None:  # short texts may have equal quartiles, which are one edge
        edges = sorted(set(statistics.quantiles(known, n=4, method="inclusive"))) if len(known) > 1 else []
    if any(low >= high for low, high in pairwise(edges)):
        raise ConfigError(f"{name}: edges must rise, found {','.join(f'{edge:g}' for edge in edges)}")
    labels = ["all"]
    if edges:
        between = [f"above {low:g} to {high:g}" for low, high in pairwise(edges)]
        labels = [f"to {edges[0]:g}", *between, f"above {edges[-1]:g}"]
    labels_of = {
        query: {NONE if length is None else labels[bisect_left(edges, length)]}
        for query, length in lengths.items()
    }
    return _grouped(labels_of, [*labels, NONE], name)


def slice_by_width(lengths: Mapping[str, float | None], name: str, width: int = 40) -> Slicing:
    """Bins of equal width; RoC's figure 6 groups queries by every 40 words of their relevant documents.

    Raises:
        ConfigError: the width is below 1.
    """
    if width < 1:
        raise ConfigError(f"{name}: the width of bins must be at least 1, found {width}")
    longest = max((length for length in lengths.values() if length is not None), default=0)
    return slice_by_length(lengths, name, [width * at for at in range(1, max(1, ceil(longest / width)) + 1)])


def slice_by_field(records: Mapping[str, Sequence[Mapping[str, object]]], field: str, name: str) -> Slicing:
    """Make a slice for each value of a metadata field, by falling number of queries; `(none)` for no value.

    The records of a query are its own metadata, or those of its relevant documents. A list counts as each of
    its members. Values that are not strings are written as in JSON.

    Raises:
        ConfigError: nothing has that field, or it has too many different values for a table.
    """
    values = {query: {v for r in found for v in _values(r.get(field))} for query, found in records.items()}
    counts = Counter(value for labels in values.values() for value in labels)
    if not counts:
        fields = sorted({key for found in records.values() for record in found for key in record})
        raise ConfigError(f"{name}: nothing has a field {field!r}; there are: {', '.join(fields) or 'none'}")
    if len(counts) > MOST_SLICES:
        raise ConfigError(
            f"{name} has {len(counts)} different values among these queries, such as {min(counts)!r}; "
            f"choose a field with at most {MOST_SLICES}"
        )
    labels = sorted(counts, key=lambda label: (-counts[label], label))
    return _grouped({query: found or {NONE} for query, found in values.items()}, [*labels, NONE], name)


def _values(value: object) -> list[str]:
    if value is None:
        return []
    members = value if isinstance(value, list) else [value]
    return [member if isinstance(member, str) else json.dumps(member, sort_keys=True) for member in members]


def _grouped(labels_of: Mapping[str, set[str]], labels: Sequence[str], name: str) -> Slicing:
    slices = {label: tuple(q for q, found in labels_of.items() if label in found) for label in labels}
    return Slicing(name, {label: queries for label, queries in slices.items() if queries})


@dataclass(frozen=True)
class Facts:
    """A document's length with its title, in words separated by white space, and its metadata."""

    words: int
    metadata: Mapping[str, object]


def relevant_documents(
    documents: Iterable[Document], qrels: Qrels, relevant_from: int = 1
) -> dict[str, list[Facts]]:
    """The relevant documents of every judged query, from one pass over the collection.

    Relevant documents that the collection lacks are left out.
    """
    relevant = {
        query: [document for document, grade in grades.items() if grade >= relevant_from]
        for query, grades in qrels.items()
    }
    wanted = {document for found in relevant.values() for document in found}
    facts = {d.id: Facts(words_in(d.full_text), d.metadata) for d in documents if d.id in wanted}
    return {query: [facts[d] for d in found if d in facts] for query, found in relevant.items()}


def words_in(text: str) -> int:
    """Number of words separated by white space."""
    return len(text.split())


def with_all(queries: Iterable[str], slicing: Slicing | None) -> dict[str, tuple[str, ...]]:
    """The slice `all`, then those of a slicing."""
    return {ALL: tuple(queries), **({} if slicing is None else slicing.slices)}


def means_over(systems: Mapping[str, Values], slices: Slices) -> dict[str, dict[str, float]]:
    """Each system's mean over the queries of each slice: slice to system to mean."""
    return {
        label: {name: float(np.mean([values[q] for q in queries])) for name, values in systems.items()}
        for label, queries in slices.items()
    }


def wins_over(
    systems: Mapping[str, Values], baseline: str, slices: Slices
) -> dict[str, dict[str, WinTieLoss]]:
    """By system and slice, count the queries on which it is better than a baseline, equal or worse.

    With RR@10 and BM25's hard half, this is RoC's figure 4: which of two systems ranks the first relevant
    document higher.

    Raises:
        ConfigError: no system has the baseline's name.
    """
    if baseline not in systems:
        raise ConfigError(f"no system is called {baseline!r}; there are {', '.join(systems)}")
    control = systems[baseline]
    return {
        name: {
            label: win_tie_loss(np.array([values[q] - control[q] for q in queries]))
            for label, queries in slices.items()
        }
        for name, values in systems.items()
        if name != baseline
    }
