"""Tables of overlap and complementarity of runs, of their means over parts, and of wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, permutations
from math import isnan

from counterpoint.measure.overlap import Overlap, Shared
from counterpoint.measure.significance import WinTieLoss
from counterpoint.measure.tables import Cell, Table

__all__ = ["answered_header", "answered_rows", "shared_tables", "slices_table", "wins_table"]

CONDENSED = "Unjudged documents were removed first, as for the measures."


def shared_tables(
    collection: str, shared: Shared, by_answers: bool, baseline: str | None, condensed: bool = False
) -> list[Table]:
    """Make a table of the queries that each run answers, and one of complementarity by pair of runs.

    A run answers a query if it has a relevant document among its first k. Answer strings show the relevance
    of retrieved documents only, so there is no recall with them.

    Args:
        collection: its name.
        shared: the counts.
        by_answers: whether answer strings decide relevance instead of judgements.
        baseline: show pairs with this run only; None for all pairs.
        condensed: whether the runs were condensed lists; titles and a note say so.
    """
    answered, relevant, k = shared.answered, shared.relevant, shared.k
    first = f"first {k} {'judged ' if condensed else ''}documents"
    note = (CONDENSED,) if condensed else ()
    what = "an answer" if by_answers else "a relevant document"
    rows: list[list[str]] = []
    for name in answered.names:
        sizes = [_whole(answered.size(name)), _ratio(answered.share(name)), _whole(answered.only(name))]
        sizes += [_whole(relevant.size(name)), _whole(relevant.only(name))]
        rows.append([name, *sizes, *([] if by_answers else [_ratio(shared.recall[name])])])
    union = [_whole(answered.union), _ratio(1 - answered.failure), _whole(answered.union - answered.several)]
    union += [_whole(relevant.union), _whole(relevant.union - relevant.several)]
    rows.append(["union", *union, *([] if by_answers else [_ratio(shared.union_recall)])])
    header = ["run", "answered", "hit rate", "alone", "relevant", "alone"]
    failures = (answered.universe or 0) - answered.union
    sets = Table(
        f"Queries answered on {collection}, {first}",
        tuple([*header, *([] if by_answers else [f"R@{k}"])]),
        rows,
        (
            f"A query is answered by a run with {what} among its first {k}; alone: by no other run.",
            f"{failures:.0f} of {answered.universe} queries ({answered.failure:.1%}) are answered by none.",
            *note,
        ),
    )
    pairs = [pair for pair in permutations(answered.names, 2) if baseline in (None, *pair)]
    title = f"Complementarity on {collection}, {first}, {answered.universe} queries"
    return [sets, _pairs(title, shared, pairs, note)]


def _pairs(title: str, shared: Shared, pairs: Sequence[tuple[str, str]], notes: tuple[str, ...]) -> Table:
    answered, relevant = shared.answered, shared.relevant
    rows = []
    for d, s in pairs:
        union = answered.size(s) + answered.without(d, s)
        counts = [answered.size(d), answered.without(d, s), answered.both(d, s), union]
        counts.append((answered.universe or 0) - union)
        ratios = [_ratio(answered.complementarity(d, s)), _ratio(relevant.complementarity(d, s))]
        rows.append([f"{d} vs {s}", *map(_whole, counts), *ratios])
    return Table(
        title,
        ("D vs S", "|D|", "|D − S|", "|D ∩ S|", "|D ∪ S|", "failures", "RoC", "RoC of documents"),
        rows,
        ("RoC = |D − S| / |D| over queries answered; of documents: over relevant documents found.", *notes),
    )


def slices_table(
    title: str, first: str, slices: Mapping[str, Sequence[str]], means: Mapping[str, Mapping[str, float]],
    note: str = "",
) -> Table:  # fmt: skip
    """Make a table of means by slice and system, one row per slice; the best of a row is marked.

    `first` is the header of the column with the slices' labels.
    """
    systems = list(next(iter(means.values())))
    rows = []
    for label, queries in slices.items():
        best = max(means[label].values())
        cells = [Cell(f"{means[label][name]:.4f}", best=means[label][name] == best) for name in systems]
        rows.append([label, str(len(queries)), *cells])
    return Table(title, (first, "queries", *systems), rows, (note,) if note else ())


def wins_table(title: str, baseline: str, wins: Mapping[str, Mapping[str, WinTieLoss]]) -> Table:
    """Make a table of the shares of queries on which a system ranks better, equal, and worse."""
    rows = []
    for system, slices in wins.items():
        for label, counts in slices.items():
            shares = [f"{count / sum(counts):.1%}" for count in counts]
            rows.append([system, label, str(sum(counts)), *shares])
    header = ("run", "slice", "queries", f"better than {baseline}", "equal", "worse")
    return Table(title, header, rows)


def answered_header(names: Sequence[str]) -> list[str]:
    """Columns of `answered_rows`."""
    both = [f"{a} ∩ {b}" for a, b in combinations(names, 2)]
    return ["relevant", "answered by", *names, *both, *(f"RoC {a} vs {b}" for a, b in permutations(names, 2))]


def answered_rows(
    per_query: Mapping[str, Overlap], names: Sequence[str]
) -> dict[str, list[str | int | float]]:
    """One row per query: relevant documents, runs that answer it, counts of each run and pair, RoC of pairs.

    Here RoC is over the relevant documents of one query. Cells of missing runs and of an undefined RoC are
    empty.
    """
    return {query: _row(overlap, names) for query, overlap in per_query.items()}


def _row(overlap: Overlap, names: Sequence[str]) -> list[str | int | float]:
    there = set(overlap.names)
    ratios = {
        pair: overlap.complementarity(*pair) for pair in permutations(names, 2) if there.issuperset(pair)
    }
    return [
        int(overlap.universe or 0),
        " ".join(name for name in overlap.names if overlap.size(name)),
        *(overlap.size(name) if name in there else "" for name in names),
        *(overlap.both(*pair) if there.issuperset(pair) else "" for pair in combinations(names, 2)),
        *("" if isnan(ratios.get(pair, float("nan"))) else ratios[pair] for pair in permutations(names, 2)),
    ]


def _whole(value: float) -> str:
    return f"{value:.0f}"


def _ratio(value: float) -> str:
    return "–" if isnan(value) else f"{value:.4f}"
