"""One machine, shards on it, several machines, or another engine: what a workload asks for, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from counterpoint.scale.formulas import Needs, Workload

__all__ = ["Advice", "Way", "advice"]

Way = Literal["one machine", "shards on one machine", "shards on several machines", "another engine"]

WEEK = 168.0  # hours
MANY = 16  # machines


@final
@dataclass(frozen=True)
class Advice:
    """How to run an index.

    Attributes:
        way: the simplest that does.
        reasons: sentences.
    """

    way: Way
    reasons: tuple[str, ...]


def advice(low: Needs, high: Needs, workload: Workload) -> Advice:
    """The simplest way to run an index, judged by the high end of what it needs.

    Another engine is for what ours does not do: write by several processes, and search millions of vectors
    without comparing all of them. The bounds, a week and `MANY` machines, are a judgement.
    """
    limits = []
    if low.write_hours > WEEK:
        limits.append(f"one process writes an index, and would take {low.write_hours / 24:,.0f} days or more")
    if low.latency > workload.latency:
        limits.append(
            f"no number of shards answers within {workload.latency:g} ms: at best {low.latency:,.0f} ms"
        )
    if low.machines > MANY:
        limits.append(f"{low.machines} machines or more, since every query compares every pooled vector")
    if limits:
        return Advice("another engine", (*limits, "docs/exporters.md lists engines that take an export"))
    unsure = []
    if high.latency > workload.latency:
        unsure.append(
            f"a query alone may take {high.latency:,.0f} ms, over the limit of {workload.latency:g} ms: "
            "measure with a part of your documents"
        )
    if high.machines > 1:
        if low.machines == 1:
            unsure.append("one machine may do: measure with a part of your documents")
        how = f"divide the index into {high.shards} shards, and search them over a Ray cluster"
        return Advice("shards on several machines", (how, *unsure))
    if high.shards > 1:
        how = (
            f"divide the index into {high.shards} shards, and search each in {high.processes} processes: "
            f"index --shards {high.shards}, serve --ray local --replicas {high.processes}"
        )
        return Advice("shards on one machine", (how, *unsure))
    return Advice("one machine", ("the index fits, and one process answers in time: no shards are needed",))
