"""`counterpoint tune`: tune the weights of the hybrid's parts on a split, and store them in the index."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from math import comb
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli import options as shared
from counterpoint.cli.console import Json, emit, note, warned
from counterpoint.cli.judgements import judgements_of
from counterpoint.cli.progress import progress
from counterpoint.errors import ConfigError, DataError
from counterpoint.escapes import escaped
from counterpoint.library.options import BACKEND, SearchOptions

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.measure import Tuned, TunedShares
    from counterpoint.search import SearchSettings

__all__ = ["tune"]

GRID = "0:2:0.1"  # the paper's
MOST = 1000  # weights or combinations tried


def tune(
    index: shared.IndexFolder,
    collection: Annotated[str, typer.Argument(help="Collection with queries and judgements")],
    split: Annotated[str, typer.Option(help="Tune on this split; never on the test split")] = "dev",
    part: Annotated[str | None, typer.Option(help="Part to tune (default: the pooled vectors)")] = None,
    grid: Annotated[str | None, typer.Option(help="Try weights FROM:TO:STEP (default: 0:2:0.1)")] = None,
    shares: Annotated[
        int | None, typer.Option(help="Tune all parts: share 1 among them in this many steps")
    ] = None,
    measure: Annotated[str, typer.Option(help="Measure to optimise")] = "AP",
    weights: shared.Weights = None,
    adapt: shared.Adapt = None,
    fusion: shared.FusionName = None,
    feedback: shared.Feedback = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Retrieve this many documents per query")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Leave the index unchanged")] = False,
    model: shared.ModelName = None,
    backend: shared.BackendName = BACKEND,
    json: Json = False,
) -> None:
    """Tune the weights of INDEX's hybrid on a split of COLLECTION, and store them in INDEX.

    Weights follow each query as the index says, also with --weights. `counterpoint search --help` explains
    the options of a search.
    """
    from counterpoint.index import keep_search
    from counterpoint.library import OpenIndex
    from counterpoint.measure import parse_measure, tune_shares, tune_weight

    if shares is not None and (part is not None or grid is not None):
        raise ConfigError("--shares tunes all parts on its own grid; leave --part and --grid out")
    tried = _grid(GRID if grid is None else grid)
    parse_measure(measure)
    judged = judgements_of(collection, split, bare=False)
    asked = judged.whole("tune").queries(judged.split), judged.qrels
    if judged.split == "test":
        note("weights chosen on test make figures on test too good; choose on one split, report another")
    with OpenIndex(index, model, backend) as library:
        options = SearchOptions(weights=weights, adapt=adapt, fusion=fusion, feedback=feedback)
        settings = _settings(library.index, options, all_parts=shares is not None and weights is None)
        with warned():
            searcher = library.searcher().with_settings(settings)
        if shares is None:
            with progress("searching", "weights", len(tried)) as update:
                one = tune_weight(searcher, *asked, tried, part, measure=measure, depth=k, on_progress=update)
            found, result = one, _of_weight(one)
        else:
            parts = [name for name, weight in searcher.settings.weights.items() if weight]
            with progress("searching", "weights", _ways(shares, len(parts))) as update:
                all_ = tune_shares(searcher, *asked, shares, measure=measure, depth=k, on_progress=update)
            found, result = all_, _of_shares(all_, shares)
    if found.says_nothing:
        raise DataError(
            f"{measure} is {max(found.values.values()):.4f} at every weight that was tried, so there is "
            "nothing to choose by, and the index is unchanged; use harder queries, or another --measure"
        )
    if not dry_run:
        keep_search(index, found.settings.to_dict())
    note(*result.pop("notes"))
    asking = {
        "--index": index, "--split": judged.split, "--measures": measure, "-k": k, "--fusion": fusion,
        "--feedback": feedback, "--model": model, "--backend": None if backend == BACKEND else backend,
    }  # fmt: skip
    result |= {
        "index": str(index), "split": judged.split, "measure": measure,
        "search": found.settings.to_dict(), "adapts": found.settings.follows_query, "kept": not dry_run,
        "evaluate": _evaluate(collection, asking, None if not dry_run else found.settings),
    }  # fmt: skip
    emit(result, lambda: _text(result), json)


def _settings(index: Index, options: SearchOptions, *, all_parts: bool) -> SearchSettings:
    """The settings to begin with. They are stored, so weights follow the query as they did, unless asked."""
    from counterpoint.library import settings_of
    from counterpoint.search import LEXICAL, SearchSettings

    if options.adapt is None and options.weights is not None:
        own = SearchSettings.for_index(index)
        options = replace(options, adapt=bool(own.adapt) and not own.fixed_weights)
    settings = settings_of(index, options)
    if not all_parts:
        return settings
    # Include parts that an earlier tuning left without a weight.
    parts = [*settings.weights, *index.layouts, *([LEXICAL] if index.lexical is not None else [])]
    return replace(settings, weights=dict.fromkeys(parts, 1.0))


def _evaluate(collection: str, asking: Mapping[str, Any], unkept: SearchSettings | None) -> str:
    """The command that measures the best weights again; with all settings that the index does not keep."""
    words = ["counterpoint", "evaluate", collection]
    for option, value in asking.items():
        if value is not None and not (unkept is None and option in ("--fusion", "--feedback")):
            words += [option, str(value)]
    if unkept is not None:
        weights = (f"{part}={repr(weight).removesuffix('.0')}" for part, weight in unkept.weights.items())
        words += ["--weights", " ".join(weights), *(["--adapt"] if unkept.follows_query else [])]
    return shlex.join(words)


def _grid(text: str) -> list[float]:
    """Parse a grid: FROM, FROM + STEP, … up to TO, without the rounding errors of sums."""
    try:
        low, high, step = (Decimal(number) for number in text.split(":"))
        if not (0 <= low <= high and step > 0 and high.is_finite() and step.is_finite()):
            raise ValueError
        count = int((high - low) / step) + 1
    except (ValueError, InvalidOperation) as error:
        raise ConfigError(f"--grid: expected FROM:TO:STEP, as in 0:2:0.1, found {text!r}") from error
    if count > MOST:
        raise ConfigError(f"--grid: {text} has more than {MOST} weights, and each is searched; use fewer")
    return [float(low + at * step) for at in range(count)]


def _ways(steps: int, parts: int) -> int:
    """Number of ways to share the steps among the parts."""
    if steps < 1:
        raise ConfigError(f"--shares: expected the number of steps, 1 or more, found {steps}")
    count = comb(steps + parts - 1, parts - 1) if parts else 0
    if count > MOST:
        raise ConfigError(
            f"--shares: {steps} steps of {parts} parts give {count:,} combinations; use {MOST:,} at most"
        )
    return count


def _of_weight(found: Tuned) -> dict[str, Any]:
    notes = []
    if len(found.values) == 1:
        notes = ["the grid has one weight, so nothing was compared"]
    elif not found.weight:
        notes = [f"the best weight is 0: {found.part} does not help here"]
    elif found.at_the_edge:
        notes = [f"the best weight, {found.weight:g}, is at the edge of the grid; try a wider --grid"]
    values = {f"{weight:.12g}": value for weight, value in found.values.items()}
    return {"part": found.part, "weight": found.weight, "values": values, "notes": notes}


def _of_shares(found: TunedShares, steps: int) -> dict[str, Any]:
    best = dict(zip(found.parts, found.shares, strict=True))
    most = max(found.values.values())
    as_good = [shares for shares, value in found.values.items() if value == most]
    without = [part for at, part in enumerate(found.parts) if not any(shares[at] for shares in as_good)]
    said = f"the best leaves out {' and '.join(without)}; no share between 0 and 1/{steps} was tried"
    notes = [said] if without else []
    values = {
        " ".join(f"{part}={share:g}" for part, share in zip(found.parts, shares, strict=True)): value
        for shares, value in found.values.items()
    }
    return {"shares": best, "values": values, "notes": notes}


def _text(result: dict[str, Any]) -> str:
    """One line per weight in the grid's order; shares best first, in the form of `--weights`."""
    values = result["values"]
    best = max(values, key=values.__getitem__)
    if "shares" in result:
        values = dict(sorted(values.items(), key=lambda item: -item[1]))
    wide = max(10, *map(len, values))
    lines = [escaped(f"{result.get('part', 'shares'):>{wide}}  {result['measure']}")]
    lines += [
        escaped(f"{name:>{wide}}  {value:.4f}{'  best' * (name == best)}") for name, value in values.items()
    ]
    said = "the index now uses it" if result["kept"] else "the index is unchanged"
    lines.append(escaped(f"chosen on {result['split']}; {said}"))
    if result["adapts"]:
        lines.append("measured with weights that follow each query (--adapt)")
    elif result["search"].get("fixed_weights"):
        lines.append("measured with weights that are the same for every query (--no-adapt)")
        if result["kept"]:
            lines.append("the index keeps how weights follow a query; search or tune with --adapt to use it")
    return "\n".join([*lines, escaped(f"to measure the best again: {result['evaluate']}")])
