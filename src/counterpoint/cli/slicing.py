"""`--slice KIND`: parse slices of queries, and print and write their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, final

from counterpoint.cli.judgements import Judged
from counterpoint.cli.progress import reading
from counterpoint.cli.tables import text_table
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.measure import Report, Slicing
    from counterpoint.measure.slices import Facts

__all__ = ["KINDS", "SlicingData", "slice_rows", "slice_text", "slice_values", "slicing_of"]

KINDS = "bm25:RUN[:MEASURE], query-length[:4,8], document-length[:40,80], query.FIELD, document.FIELD"


@final
class SlicingData:
    """Properties that queries can be sliced by; each is read once, when it is first needed."""

    def __init__(self, judged: Judged, relevant_from: int, condensed: bool = False):
        self.judged, self.relevant_from, self.condensed = judged, relevant_from, condensed

    @cached_property
    def relevant(self) -> dict[str, list[Facts]]:
        """Length and metadata of each query's relevant documents, read in one pass."""
        from counterpoint.measure import relevant_documents

        collection = self.judged.whole("slices by documents")
        with reading(collection) as documents:
            return relevant_documents(documents, self.judged.qrels, self.relevant_from)

    @cached_property
    def document_lengths(self) -> dict[str, float | None]:
        """Mean number of words in each query's relevant documents; None for a query without any."""
        return {
            query: fmean(facts.words for facts in found) if found else None
            for query, found in self.relevant.items()
        }

    @cached_property
    def lengths(self) -> dict[str, float | None]:
        """Number of words in each query."""
        from counterpoint.measure.slices import words_in

        collection = self.judged.whole("slices by queries")
        return {query: words_in(text) for query, text in collection.queries(self.judged.split).items()}

    @cached_property
    def metadata(self) -> dict[str, list[dict[str, Any]]]:
        """Metadata of each query; empty if it has none."""
        found = self.judged.whole("slices by queries").query_metadata()
        return {query: [found[query]] if query in found else [] for query in self.judged.qrels}


def slicing_of(kind: str, data: SlicingData) -> Slicing:
    """Parse a slicing of the command line.

    Raises:
        ConfigError: the kind or field is unknown, or the judgements come without the collection it needs.
    """
    from counterpoint.measure import slice_by_field, slice_by_length

    head, _, rest = kind.partition(":")
    side, _, field = kind.partition(".")
    if head == "bm25" and rest:
        return _by_bm25(kind, rest, data)
    if head == "query-length":
        return slice_by_length(data.lengths, kind, _edges(kind, rest))
    if head == "document-length":
        return slice_by_length(data.document_lengths, kind, _edges(kind, rest))
    if side == "query" and field:
        return slice_by_field(data.metadata, field, kind)
    if side == "document" and field:
        records = {query: [facts.metadata for facts in found] for query, found in data.relevant.items()}
        return slice_by_field(records, field, kind)
    raise ConfigError(f"unknown slice {kind!r}; expected {KINDS}")


def _by_bm25(kind: str, rest: str, data: SlicingData) -> Slicing:
    """Split queries in half by the measure of a BM25 run, named after the last colon unless that is a file.

    It is measured like everything else: on condensed runs if asked for, with the same lowest relevant grade.
    """
    from counterpoint.measure import evaluate, slice_by_rank, with_judging
    from counterpoint.search import Run

    path, _, measure = (rest, "", "") if Path(rest).is_file() or ":" not in rest else rest.rpartition(":")
    (name,) = with_judging([measure or "nDCG@10"], condensed=data.condensed, relevant_from=data.relevant_from)
    return slice_by_rank(evaluate(Run.read(path), data.judged.qrels, [name]).per_query[name], kind)


def _edges(kind: str, text: str) -> list[float] | None:
    if not text:
        return None
    with suppress(ValueError):
        edges = [float(edge) for edge in text.split(",")]
        if all(map(isfinite, edges)):
            return edges
    raise ConfigError(f"slice {kind!r}: expected edges such as 40,80,120, found {text!r}")


def slice_values(slicings: Sequence[Slicing], reports: Mapping[str, Report]) -> list[dict[str, Any]]:
    """For each slicing, its slices: the number of queries, and every run's means."""
    found = []
    for slicing in slicings:
        parts = []
        for part, queries in slicing.slices.items():
            means = {run: dict(report.over(queries).measures) for run, report in reports.items()}
            parts.append({"part": part, "queries": len(queries), "runs": means})
        found.append({"slice": slicing.name, "note": slicing.note, "parts": parts})
    return found


def slice_rows(values: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """One row per slicing, slice and run, with the number of queries and the means."""
    for slicing in values:
        for part in slicing["parts"]:
            for run, means in part["runs"].items():
                yield [slicing["slice"], part["part"], part["queries"], run, *means.values()]


def slice_text(values: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> str:
    """One table per slicing, with its note."""
    blocks = []
    for slicing in values:
        rows = [row[1:] for row in slice_rows([slicing])]
        title = slicing["slice"] + (f" ({slicing['note']})" if slicing["note"] else "")
        blocks.append(f"\n{escaped(title)}\n{text_table(['part', 'queries', 'run', *measures], rows)}")
    return "\n".join(blocks)
