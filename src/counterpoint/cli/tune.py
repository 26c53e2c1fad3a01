"""`counterpoint tune`: tune the weights of the hybrid's parts on a split, and store them in the index."""

from __future__ import annotations

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
from counterpoint.library.options import BACKEND

if TYPE_CHECKING:
    from counterpoint.measure import Tuned, TunedShares

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

    `counterpoint search --help` explains the options of a search.
    """
    from counterpoint.index import keep_search
    from counterpoint.library import OpenIndex, settings_of
    from counterpoint.measure import parse_measure, tune_shares, tune_weight
    from counterpoint.search import LEXICAL

    if shares is not None and (part is not None or grid is not None):
        raise ConfigError("--shares tunes all parts on its own grid; leave --part and --grid out")
    tried = _grid(GRID if grid is None else grid)
    parse_measure(measure)
    judged = judgements_of(collection, split, bare=False)
    asked = judged.whole("tune").queries(judged.split), judged.qrels
    with OpenIndex(index, model, backend) as library:
        opened = library.index
        settings = settings_of(opened, shared.asked_of("hybrid", weights, fusion, feedback, adapt=adapt))
        if shares is not None and weights is None:
            # Include parts that an earlier tuning left without a weight.
            parts = [*settings.weights, *opened.layouts, *([LEXICAL] if opened.lexical is not None else [])]
            settings = replace(settings, weights=dict.fromkeys(parts, 1.0))
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
            found, result = all_, _of_shares(all_)
    if found.says_nothing and not dry_run:
        raise DataError(
            f"{measure} is {max(found.values.values()):.4f} at every weight that was tried, so there is "
            "nothing to choose by, and the index is unchanged; use harder queries, or another --measure"
        )
    if not dry_run:
        keep_search(index, found.settings.to_dict())
    note(*result.pop("notes"))
    result |= {
        "index": str(index), "split": judged.split, "measure": measure,
        "search": found.settings.to_dict(), "kept": not dry_run,
    }  # fmt: skip
    emit(result, lambda: _text(result), json)


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
    if not found.weight:
        notes = [f"the best weight is 0: {found.part} does not help here"]
    elif found.at_the_edge:
        notes = [f"the best weight, {found.weight:g}, is at the edge of the grid; try a wider --grid"]
    values = {f"{weight:.12g}": value for weight, value in found.values.items()}
    return {"part": found.part, "weight": found.weight, "values": values, "notes": notes}


def _of_shares(found: TunedShares) -> dict[str, Any]:
    best = dict(zip(found.parts, found.shares, strict=True))
    useless = [part for part, share in best.items() if not share]
    notes = [f"the best share is 0: {', '.join(useless)} does not help here"] if useless else []
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
    return "\n".join([*lines, escaped(f"chosen on {result['split']}; {said}")])
