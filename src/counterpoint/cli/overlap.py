"""`counterpoint overlap`: the overlap of the results of an index's parts, or of saved runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from counterpoint.cli.console import Json, emit, note, warned
from counterpoint.cli.judgements import Judged, judgements_of
from counterpoint.cli.named import named_places, run_name
from counterpoint.cli.options import BackendName, ModelName, Split, cutoffs_of
from counterpoint.cli.outputs import check_outputs
from counterpoint.cli.progress import progress
from counterpoint.cli.tables import text_table
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped
from counterpoint.library.options import BACKEND

if TYPE_CHECKING:
    from counterpoint.library import OpenIndex
    from counterpoint.measure import Overlap, Shared
    from counterpoint.search import Run

__all__ = ["overlap"]


def overlap(
    collection: Annotated[
        str, typer.Argument(help="Collection with judgements, or with only --run a qrels file")
    ],
    index: Annotated[Path | None, typer.Option(help="Search this index")] = None,
    parts: Annotated[
        str | None, typer.Option(help="Compare these parts, as in lexical,mean (default: all)")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Compare a TREC run: FILE or NAME=FILE (repeatable)")
    ] = None,
    k: Annotated[str, typer.Option("-k", help="Set the cutoffs, separated by commas")] = "10,100,1000",
    split: Split = None,
    relevant_from: Annotated[int, typer.Option(min=1, help="Set the lowest relevant grade")] = 1,
    model: ModelName = None,
    backend: BackendName = BACKEND,
    plot: Annotated[Path | None, typer.Option(help="Draw the overlap (.svg, .png or .pdf)")] = None,
    plot_of: Annotated[
        Literal["found", "relevant", "answered"] | None,
        typer.Option(help="Draw documents (default), relevant ones, or queries"),
    ] = None,
    json: Json = False,
) -> None:
    """Show which documents first stages find in common and alone, and the recall of their union.

    The parts of an index are its vector sets and "lexical". --plot-of answered draws the queries for which a
    relevant document was found.

    Example: counterpoint overlap my-collection/ --index my-index --parts lexical,mean -k 10,100
    """
    from counterpoint.library import OpenIndex
    from counterpoint.measure import share_of
    from counterpoint.plots import check_format
    from counterpoint.search import Run

    cutoffs = cutoffs_of(k, "-k")
    if index is None and not run:
        raise ConfigError("nothing to compare; give --index, or --run twice or more")
    if index is None and parts is not None:
        raise ConfigError("--parts selects parts of an index; name it with --index")
    if index is None and model is not None:
        raise ConfigError("--model encodes the queries for an index; name it with --index")
    if plot is None and plot_of is not None:
        raise ConfigError("--plot-of says what --plot draws; name its file with --plot")
    if plot is not None:
        check_format(plot)
    check_outputs({"--plot": plot})
    judged = judgements_of(collection, split, bare=index is None)
    runs = {name: Run.read(path) for name, path in named_places(run or [], run_name, "runs").items()}
    if index is not None:
        found = _search(OpenIndex(index, model, backend), parts, judged, max(cutoffs))
        if both := found.keys() & runs.keys():
            raise ConfigError(f"a run is called {min(both)!r}, as is a part of the index; name it NAME=FILE")
        runs = {**found, **runs}
    shared = [share_of(runs, judged.qrels, cutoff, relevant_from) for cutoff in cutoffs]
    if plot is not None:
        _draw(plot, plot_of or "found", shared)
    emit(
        {
            "collection": collection,
            "split": judged.split,
            "index": None if index is None else str(index),
            "runs": list(runs),
            "cutoffs": [x.to_dict() for x in shared],
        },
        lambda: "\n\n".join(map(_text, shared)),
        json,
    )


def _search(library: OpenIndex, parts: str | None, judged: Judged, depth: int) -> dict[str, Run]:
    from counterpoint.library import SearchOptions
    from counterpoint.search import LEXICAL

    with library as opened:
        queries = judged.whole("--index").queries(judged.split)
        has = [*([LEXICAL] if opened.index.lexical is not None else []), *opened.index.layouts]
        wanted = has if parts is None else parts.replace(",", " ").split()
        workflow = LEXICAL if wanted == [LEXICAL] else "hybrid"
        with warned():
            searcher = opened.searcher(SearchOptions(workflow=workflow))
        with progress("searching", "queries", len(queries) * len(wanted)) as update:
            return searcher.rank_parts(queries, depth, wanted, update)


def _draw(path: Path, what: str, shared: Sequence[Shared]) -> None:
    """Draw one diagram per cutoff. If all sets are empty, only note it: the table is still to come."""
    from counterpoint.plots.venn import overlap_plot

    overlaps = [(f"first {x.k}", getattr(x, what)) for x in shared]
    if any(overlap.union for _, overlap in overlaps):
        overlap_plot(overlaps).save(path)
    else:
        note(f"--plot-of {what}: no run has any, so there is nothing to draw; {path} was not written")


def _text(shared: Shared) -> str:
    found, relevant, answered = shared.found, shared.relevant, shared.answered
    rows: list[list[str | int | float]] = []
    for name in found.names:
        sizes = [x for kind in (found, relevant, answered) for x in (kind.size(name), kind.only(name))]
        rows.append([name, *sizes, shared.recall[name]])
    unions = [x for kind in (found, relevant, answered) for x in (kind.union, kind.union - kind.several)]
    rows.append(["union", *unions, shared.union_recall])
    header = [
        f"first {shared.k}", "documents", "alone", "relevant", "alone", "queries", "alone", f"R@{shared.k}",
    ]  # fmt: skip
    lines = [text_table(header, rows)]
    if found.union:
        lines.append(f"{found.several / found.union:.2%} of the documents were found by several")
    lines += [_sentence(answered, a, b) for a in found.names for b in found.names if a != b]
    lines.append(f"{answered.failure:.1%} of {answered.universe} queries were answered by none")
    return "\n".join(lines)


def _sentence(answered: Overlap, first: str, second: str) -> str:
    ratio = answered.complementarity(first, second)
    shown = f"{ratio:.4f}" if math.isfinite(ratio) else "–"
    return escaped(f"RoC of {first} against {second}: {shown}")
