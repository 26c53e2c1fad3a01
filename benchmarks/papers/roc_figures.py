"""RoC's figures 3, 4 and 6 of what `roc.py` measured, on the collection trained on: printed, and drawn."""

import sys

from benchmarks.papers.roc_rows import CLEAR, NAIVE, OURS

from counterpoint.measure import (
    Overlap,
    as_markdown,
    means_over,
    slice_by_rank,
    slice_by_width,
    slices_table,
    wins_over,
    wins_table,
)
from counterpoint.plots.slices import lengths_plot, wins_plot
from counterpoint.plots.venn import overlap_plot

WIDTH = 40  # words a bin, of the relevant documents


def print_figures(name, measured, rows):
    """Figures 4 and 6 as tables; figure 3 is in table 5, and figure 5 a table of its own."""
    title = f"Figure 4: RR@10 on the half of {name} that BM25 ranks worse, against BM25"
    print(f"\n{as_markdown(wins_table(title, 'BM25', hard_wins(measured, rows)))}")
    by_length = bins(measured)
    means = means_over(average_precision(measured, rows), by_length)
    title = f"Figure 6: AP on {name} by words of the relevant documents"
    print(f"\n{as_markdown(slices_table(title, 'words', by_length, means))}")


def draw(name, measured, rows, folder):
    """Figures 3, 4 and 6 as pictures; figure 3 where one of its rows is there."""
    folder.mkdir(parents=True, exist_ok=True)
    shown = [row for row in (NAIVE, CLEAR, OURS) if row in rows]
    if shown:
        circles = [(row, overlap(measured["shared"][row]["answered"])) for row in shown]
        title = f"queries of {name} answered, first 10"
        overlap_plot(circles, title, of_universe=True).save(folder / "figure3.svg")
    else:
        said = f"figure 3 is not drawn: it is of {NAIVE}, {CLEAR} and {OURS}, and none is there"
        print(said, file=sys.stderr)
    wins = {system: parts["hard"] for system, parts in hard_wins(measured, rows).items()}
    wins_plot(wins, "RR@10 against BM25, BM25-hard").save(folder / "figure4.svg")
    systems = average_precision(measured, [row for row in shown if row != NAIVE])
    systems |= {row: measured["systems"][row]["AP"] for row in shown[:1]}
    means = means_over(systems, bins(measured))
    lines = {system: {label: means[label][system] for label in means} for system in systems}
    lengths_plot(lines, "AP").save(folder / "figure6.svg")


def hard_wins(measured, rows):
    """System to `hard` to queries on which it ranks better than BM25, equal and worse."""
    hard = {"hard": hard_half(measured)}
    names = ["BM25", *(system for row in rows for system in (row, f"BM25 + {row}"))]
    return wins_over({name: measured["systems"][name]["RR@10"] for name in names}, "BM25", hard)


def hard_half(measured):
    """The queries that BM25 ranks worse."""
    return slice_by_rank(measured["systems"]["BM25"]["RR@10"], "BM25").slices["hard"]


def bins(measured):
    """Queries by the length of their relevant documents; those of unknown length are left out."""
    known = {query: words for query, words in measured["words"].items() if words is not None}
    return slice_by_width(known, "words", WIDTH).slices


def average_precision(measured, rows):
    names = ["BM25", *(f"BM25 + {row}" for row in rows)]
    return {name: measured["systems"][name]["AP"] for name in names}


def overlap(saved):
    """What `Overlap.to_dict` has saved."""
    regions = {tuple(region["in"]): region["size"] for region in saved["regions"]}
    return Overlap(tuple(saved["sizes"]), regions, saved["universe"])
