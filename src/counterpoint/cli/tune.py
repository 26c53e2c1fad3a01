"""`counterpoint tune`: choose the weight of a part of the hybrid on a split; the index remembers it."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from counterpoint.cli.console import Json, emit, note, progress
from counterpoint.cli.judgements import judgements_of
from counterpoint.cli.options import FusionName, IndexFolder, ModelName, Weights, model_of, settings_of

__all__ = ["tune"]

MOST = 1000  # weights


def tune(
    index: IndexFolder,
    collection: Annotated[
        str, typer.Argument(help="Collection with queries and judgements to choose by.", show_default=False)
    ],
    split: Annotated[
        str | None, typer.Option(help="Which judgements; never those that are tested on.", show_default=False)
    ] = "dev",
    part: Annotated[
        str | None,
        typer.Option(help="Whose weight; the set of one vector a text unless given.", show_default=False),
    ] = None,
    grid: Annotated[str, typer.Option(help="Weights that are tried: FROM:TO:STEP.")] = "0:2:0.1",
    measure: Annotated[str, typer.Option(help="What is to be best.")] = "AP",
    weights: Weights = None,
    fusion: FusionName = None,
    k: Annotated[int, typer.Option("-k", min=1, help="Documents retrieved for each query.")] = 1000,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Leave the index as it is.")] = False,
    model: ModelName = None,
    json: Json = False,
) -> None:
    """Choose the weight of a part of INDEX's hybrid on a split of COLLECTION; INDEX remembers it."""
    from counterpoint.errors import DataError
    from counterpoint.index import Index, keep_search
    from counterpoint.measure import parse_measure, tune_weight
    from counterpoint.search import Searcher

    tried = _grid(grid)
    parse_measure(measure)
    judged = judgements_of(collection, split, bare=False)
    queries = judged.whole("tune").queries(judged.split)
    with Index(index) as opened:
        settings = settings_of(opened, weights, fusion)
        searcher = Searcher(opened, model_of(opened, model, "hybrid"), settings)
        with progress("searching", "weights", len(tried)) as update:
            found = tune_weight(
                searcher, queries, judged.qrels, tried, part, measure=measure, depth=k, on_progress=update
            )
    if found.says_nothing and not dry_run:
        raise DataError(
            f"{measure} is {found.values[found.weight]:.4f} at every weight from {tried[0]:g} to "
            f"{tried[-1]:g}, so there is nothing to choose by, and the index is as it was; take harder "
            "queries, or another --measure"
        )
    if not dry_run:
        keep_search(index, found.settings.to_dict())
    if not found.weight:
        note(f"the best weight is 0: {found.part} does not help on {judged.split}")
    elif found.at_the_edge:
        note(f"the best weight, {found.weight:g}, is at the edge of the grid; try a wider --grid")
    result: dict[str, Any] = {
        "index": str(index), "split": judged.split, "part": found.part, "weight": found.weight,
        "measure": measure, "values": {f"{weight:g}": value for weight, value in found.values.items()},
        "search": found.settings.to_dict(), "kept": not dry_run,
    }  # fmt: skip
    emit(result, lambda: _text(result), json)


def _grid(text: str) -> list[float]:
    """FROM, FROM + STEP, … up to TO, without the rounding errors of sums.

    Raises:
        ConfigError: not such a grid.
    """
    from counterpoint.errors import ConfigError

    try:
        low, high, step = (Decimal(number) for number in text.split(":"))
        if not (0 <= low <= high and step > 0 and high.is_finite() and step.is_finite()):
            raise ValueError
        count = int((high - low) / step) + 1
    except (ValueError, InvalidOperation) as error:
        raise ConfigError(f"--grid: expected FROM:TO:STEP, as in 0:2:0.1, found {text!r}") from error
    if count > MOST:
        raise ConfigError(f"--grid: {text} are {count:,} weights, and each is searched; take {MOST} at most")
    return [float(low + at * step) for at in range(count)]


def _text(result: dict[str, Any]) -> str:
    best = f"{result['weight']:g}"
    lines = [f"{result['part']:>10}  {result['measure']}"]
    lines += [
        f"{weight:>10}  {value:.4f}{'  best' if weight == best else ''}"
        for weight, value in result["values"].items()
    ]
    said = "the index is searched by it" if result["kept"] else "the index is as it was"
    return "\n".join([*lines, f"chosen on {result['split']}; {said}"])
