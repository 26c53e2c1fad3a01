"""From measured costs to machines: plain arithmetic, for one end of what was measured.

A figure that is unsure is a range. All is computed twice, with every figure at its low end and at its high
end, so a result is a range, too. Nothing here knows which end it computes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

from counterpoint.errors import ConfigError

__all__ = [
    "BUSY",
    "FULL",
    "Costs",
    "Machine",
    "Needs",
    "Stage",
    "Workload",
    "cores_for",
    "latency_of",
    "machines_for",
    "needs_of",
    "query_cost",
    "shards_for",
    "sum_of_lines",
]

BUSY = 0.6
"""The share of its processors that a machine spends on queries on average, so that peaks wait little."""
FULL = 0.8
"""The share of its memory that is planned with."""
HOUR = 3.6e6  # milliseconds


@final
@dataclass(frozen=True)
class Stage:
    """The CPU time of a stage of a query, in milliseconds.

    Attributes:
        name: of the stage.
        once: for each query.
        per_shard: for each shard that is asked.
        per_million: for each million documents.
    """

    name: str
    once: float = 0.0
    per_shard: float = 0.0
    per_million: float = 0.0


@final
@dataclass(frozen=True)
class Costs:
    """What was measured of one kind of index.

    Attributes:
        stored: bytes of a document on disk by purpose.
        resident: bytes of a document that queries read again and again, so that they must be in memory.
        building: further bytes of a document on disk while the index is built.
        stages: of a query.
        process: bytes of a process that are no file.
        encode: CPU milliseconds of a document in the encoder.
        write: CPU milliseconds of a document in the one process that writes the index.
        divide: CPU milliseconds of a document when the index is divided.
    """

    stored: Mapping[str, float]
    resident: float
    building: float
    stages: Sequence[Stage]
    process: float
    encode: float
    write: float
    divide: float


@final
@dataclass(frozen=True)
class Workload:
    """What is asked of an index.

    Args:
        documents: passages, if documents are cut.
        qps: queries a second.
        latency: milliseconds that a query may take if nothing waits.
        replicas: on how many machines each shard is at least.

    Raises:
        ConfigError: a number is not above 0.
    """

    documents: float
    qps: float
    latency: float
    replicas: int = 1

    def __post_init__(self) -> None:
        if min(self.documents, self.qps, self.latency, self.replicas) <= 0:
            raise ConfigError(f"plan: numbers must be above 0, found {self}")


@final
@dataclass(frozen=True)
class Machine:
    """A machine: its processors, and its bytes of memory."""

    cores: int
    memory: float


@final
@dataclass(frozen=True)
class Needs:
    """What a workload needs.

    Attributes:
        disk: bytes of the index.
        disk_at_build: bytes while it is built, or divided anew.
        memory: bytes, over all machines. The processes of a machine share what they read of a shard.
        query: CPU milliseconds of a query by stage.
        latency: milliseconds of a query if nothing waits.
        cores: processors, over all machines.
        shards: parts that the index is divided into.
        processes: for each shard; each answers one query at a time.
        machines: that have this memory and these processors.
        encode_hours: of one processor.
        write_hours: of the one process that writes and divides the index.
    """

    disk: float
    disk_at_build: float
    memory: float
    query: Mapping[str, float]
    latency: float
    cores: int
    shards: int
    processes: int
    machines: int
    encode_hours: float
    write_hours: float


def sum_of_lines(lines: Mapping[str, tuple[float, float]], words: float) -> dict[str, float]:
    """For each purpose, bytes of a document of so many words: a fixed part, and a part for each word.

    >>> sum_of_lines({"documents": (50.0, 7.5)}, 120)
    {'documents': 950.0}
    """
    return {purpose: fixed + slope * words for purpose, (fixed, slope) in lines.items()}


def query_cost(stages: Sequence[Stage], documents: float, shards: int) -> dict[str, float]:
    """CPU milliseconds of one query over all shards, by stage."""
    return {
        each.name: each.once + each.per_shard * shards + each.per_million * documents / 1e6 for each in stages
    }


def latency_of(stages: Sequence[Stage], documents: float, shards: int) -> float:
    """Milliseconds of one query if nothing waits: shards scan at the same time, all else is in turn."""
    return sum(
        each.once + each.per_shard * shards + each.per_million * documents / 1e6 / shards for each in stages
    )


def shards_for(stages: Sequence[Stage], documents: float, latency: float) -> int:
    """The fewest shards with which a query takes at most so long.

    If it takes longer with any number, the number with which it is fastest.
    """
    once = sum(each.once for each in stages)
    shard = sum(each.per_shard for each in stages)
    scan = sum(each.per_million for each in stages) * documents / 1e6
    spare = latency - once
    # once + shard·s + scan/s ≤ latency, a quadratic in s
    under = spare * spare - 4 * shard * scan
    if spare > 0 and under >= 0:
        return max(1, math.ceil(2 * scan / (spare + math.sqrt(under)) - 1e-9))
    return max(1, math.ceil(math.sqrt(scan / max(shard, 1e-3))))


def cores_for(milliseconds: float, qps: float) -> int:
    """Processors for so many queries a second of so much CPU time, busy for `BUSY` of the time."""
    return max(1, math.ceil(milliseconds / 1000 * qps / BUSY - 1e-9))


def machines_for(memory: float, cores: int, machine: Machine, replicas: int) -> int:
    """The fewest machines with this memory and these processors; replicas are on different ones."""
    by_memory = math.ceil(memory / (FULL * machine.memory) - 1e-9)
    return max(by_memory, math.ceil(cores / machine.cores), replicas)


def needs_of(costs: Costs, workload: Workload, machine: Machine) -> Needs:
    """What a workload needs, by these costs, on machines of this kind."""
    documents, disk = workload.documents, sum(costs.stored.values()) * workload.documents
    held = costs.resident * documents
    fewest = math.ceil(held / (FULL * machine.memory) - 1e-9)  # a shard is on one machine
    shards = max(1, fewest, shards_for(costs.stages, documents, workload.latency))
    query = query_cost(costs.stages, documents, shards)
    cores = max(cores_for(sum(query.values()), workload.qps), shards)
    processes = max(math.ceil(cores / shards), workload.replicas)
    copies = max(math.ceil(processes / machine.cores), workload.replicas)
    memory = held * copies + costs.process * processes * shards
    return Needs(
        disk=disk,
        disk_at_build=2 * disk + costs.building * documents,
        memory=memory,
        query=query,
        latency=latency_of(costs.stages, documents, shards),
        cores=cores,
        shards=shards,
        processes=processes,
        machines=machines_for(memory, cores, machine, workload.replicas),
        encode_hours=costs.encode * documents / HOUR,
        write_hours=(costs.write + (costs.divide if shards > 1 else 0.0)) * documents / HOUR,
    )
