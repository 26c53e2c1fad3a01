"""Stages, measures and curves from the `metrics.jsonl` of a training run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.cli.tables import text_table
from counterpoint.errors import DataError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.plots import Picture

__all__ = ["curves", "read_metrics", "summary", "training_text"]

CURVES = (  # a picture's name, its numbers, and its vertical axis
    ("loss", "loss", "loss"),
    ("divergence", "alignment.kl", "KL₁(document side ‖ query side)"),
    ("cosine", "watch.*.cosine", "mean cosine of two texts of a side"),
    ("rank", "watch.*.rank", "effective rank of a side"),
)


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """Read the lines of a run's metrics; skip a last line that is still being written.

    Raises:
        DataError: a line is not one that `train` writes, or there are no lines.
    """
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        try:
            found = json.loads(line)
            counts = {"number": int(found["number"]), "step": int(found["step"])}
            records.append({**found, **counts, "stage": str(found["stage"])})
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"not a line of metrics ({error!r})", path=path, line=number) from error
    if not records:
        raise DataError("no metrics yet; the run has only begun", path=path)
    return records


def summary(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The stages, and by measure on the development set its values at steps counted over all stages."""
    from counterpoint.plots.curves import measures_of

    measures = {one.name: list(zip(one.steps, one.values, strict=True)) for one in measures_of(records)}
    return {"stages": _stages(records), "measures": measures}


def curves(records: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Picture]]:
    """One picture for each kind of number in the run."""
    from counterpoint.plots.curves import curves_of, curves_plot, measures_of, stages_of

    if measures := measures_of(records):
        yield "measures", curves_plot(measures, value="on the development set", stages=stages_of(records))
    deltas = curves_of(records, "alignment.delta")
    for name, pattern, axis in CURVES:
        if found := curves_of(records, pattern):
            levels = {"δ": deltas[0].values[-1]} if deltas and name == "divergence" else {}
            yield name, curves_plot(found, value=axis, stages=stages_of(records), levels=levels)


def training_text(result: Mapping[str, Any]) -> str:
    """The stages as a table, and the first and best value of each measure."""
    header = ["stage", "steps", "first loss", "lowest", "last", "ended early"]
    keys = ("stage", "steps", "first_loss", "lowest_loss", "last_loss", "stopped")
    cells = [["–" if stage.get(key) is None else stage[key] for key in keys] for stage in result["stages"]]
    table = text_table(header, cells)
    return "\n\n".join([table, *(_development(name, found) for name, found in result["measures"].items())])


def _stages(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each stage's steps, its first, lowest and last loss, and why it ended early."""
    found = []
    for number in dict.fromkeys(record["number"] for record in records):
        mine = [record for record in records if record["number"] == number]
        losses = [record["loss"] for record in mine if "loss" in record]
        stage = {"stage": mine[0]["stage"], "steps": mine[-1]["step"]}
        if losses:
            stage |= {"first_loss": losses[0], "lowest_loss": min(losses), "last_loss": losses[-1]}
        stopped = [record["stopped"] for record in mine if "stopped" in record]
        found.append({**stage, "stopped": stopped[-1] if stopped else None})
    return found


def _development(name: str, found: Sequence[tuple[int, float]]) -> str:
    best = max(found, key=lambda point: point[1])
    first = found[0]
    return f"{escaped(name)}: {first[1]:.4f} at step {first[0]}, at best {best[1]:.4f} at step {best[0]}"
