"""`counterpoint plan`: what an index of some size needs, from measured figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, final

import typer

from counterpoint.cli.console import Json, emit
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.scale import Advice, IndexKind, Machine, Needs, Workload

__all__ = ["plan"]

WORDS, MODEL = 120, "minilm"


def plan(
    documents: Annotated[str, typer.Option(help="Number of passages, such as 200k, 50M or 1.5B")],
    qps: Annotated[float, typer.Option(help="Queries per second at the busiest time")] = 10.0,
    words: Annotated[int | None, typer.Option(min=1, help="Words of a passage (default: 120)")] = None,
    model: Annotated[str | None, typer.Option(help="minilm (the default), minilm-dense or none")] = None,
    codec: Annotated[str | None, typer.Option(help="Codec of the vectors (default: the model's)")] = None,
    index: Annotated[
        Path | None, typer.Option(metavar="INDEX", help="Take bytes per document from this index")
    ] = None,
    cores: Annotated[int, typer.Option(min=1, help="Processors of a machine")] = 16,
    memory: Annotated[str, typer.Option(help="Memory of a machine")] = "64GB",
    latency: Annotated[float, typer.Option(help="Milliseconds that a query may take")] = 200.0,
    replicas: Annotated[int, typer.Option(min=1, help="Machines that have each shard, at least")] = 1,
    json: Json = False,
) -> None:
    """Estimate the machines, memory, disk and processors that an index needs.

    The estimate computes with measured figures. Where they are unsure it gives a range. It prints what it
    assumed. --index takes the bytes per document from an index of yours, in place of --words, --model and
    --codec: index a sample of your documents for that.
    """
    from counterpoint.scale import Machine, Workload, advice, figures, needs_of, parse_bytes, parse_count

    if index is not None and (words, model, codec) != (None, None, None):
        raise ConfigError("--index has words, model and codec; leave --words, --model and --codec out")
    known = figures()
    kind = known.kind(model or MODEL, codec, words or WORDS) if index is None else _kind_of(index)
    load = Workload(parse_count(documents, "--documents"), qps, latency, replicas)
    machine = Machine(cores, parse_bytes(memory, "--memory"))
    low, high = (needs_of(known.costs(kind, load.documents, end), load, machine) for end in (False, True))
    shown = _Shown(load, machine, kind, low, high)
    source = str(index) if index is not None else f"{model or MODEL} ({codec or 'its own codec'})"
    result = {
        "documents": load.documents, "qps": qps, "latency_ms": latency, "replicas": replicas,
        "machine": asdict(machine), "index": source, "words": kind.words,
        "bytes_per_document": dict(kind.stored), "low": asdict(low), "high": asdict(high),
        "advice": asdict(told := advice(low, high, load)), "sources": dict(known.sources),
    }  # fmt: skip
    emit(result, lambda: "\n".join(_lines(shown, source, told, known.sources)), json)


def _kind_of(folder: Path) -> IndexKind:
    from counterpoint.index import Index
    from counterpoint.scale import kind_of

    with Index(folder) as opened:
        return kind_of(opened.disk_usage())


@final
@dataclass(frozen=True)
class _Shown:
    load: Workload
    machine: Machine
    kind: IndexKind
    low: Needs
    high: Needs


def _lines(of: _Shown, source: str, told: Advice, sources: Mapping[str, Any]) -> Iterator[str]:
    from counterpoint.scale import BUSY, FULL, shown_bytes, shown_count, shown_hours

    load, low, high = of.load, of.low, of.high
    yield f"{shown_count(load.documents)} passages, {load.qps:g} queries per second: {told.way}"
    yield from (f"  {reason}" for reason in told.reasons)
    yield ""
    yield f"{'machines':22}{_between(low.machines, high.machines)} of {of.machine.cores} cores and " + (
        f"{shown_bytes(of.machine.memory)}"
    )
    yield f"{'cores':22}{_between(low.cores, high.cores)}"
    yield f"{'memory':22}{_between(low.memory, high.memory, shown_bytes)} in all"
    yield f"{'disk':22}{_between(low.disk, high.disk, shown_bytes)}, which every machine must see"
    yield f"{'disk during a build':22}{_between(low.disk_at_build, high.disk_at_build, shown_bytes)}"
    yield f"{'shards':22}{_between(low.shards, high.shards)}"
    if high.shards > 1:
        yield f"{'processes per shard':22}{_between(low.processes, high.processes)} (serve --replicas)"
    yield f"{'a query, alone':22}{_between(low.latency, high.latency, _milliseconds)}"
    yield f"{'encoding':22}{_between(low.encode_hours, high.encode_hours, shown_hours)} of one core"
    yield f"{'writing':22}{_between(low.write_hours, high.write_hours, shown_hours)} in one process"
    yield ""
    yield "what costs processors (CPU time of a query):"
    yield from _shares(low.query, high.query, _milliseconds)
    yield "what costs disk (bytes of a passage):"
    yield from _shares(of.kind.stored, of.kind.stored, shown_bytes)
    yield ""
    yield "assumed:"
    yield f"  passages of {of.kind.words:,.0f} words; bytes of {escaped(source)}"
    yield f"  processors are busy {100 * BUSY:.0f} % of the time; {100 * FULL:.0f} % of the memory is used"
    machines = "one machine" if load.replicas == 1 else f"{load.replicas} machines"
    yield f"  a query may take {load.latency:g} ms; a process answers one at a time"
    yield f"  each shard is on at least {machines}, and its processes there share what they read"
    yield "  the low end of memory: what every query reads; the high end: all but the texts"
    yield "measured:"
    for name, each in sources.items():
        yield f"  {name}: {each['what']} ({each['where']}, {each['date']}, {each['commit']})"


def _between(low: float, high: float, shown: Any = lambda value: f"{value:,.0f}") -> str:
    """A range for people; one value if both ends look alike."""
    first, last = shown(min(low, high)), shown(max(low, high))
    return first if first == last else f"{first} to {last}"


def _shares(low: Mapping[str, float], high: Mapping[str, float], shown: Any) -> Iterator[str]:
    """The largest items, with their share at the high end."""
    total = sum(high.values())
    for name, size in sorted(high.items(), key=lambda item: -item[1])[:5]:
        if size >= 0.01 * total:
            yield f"  {100 * size / total:>3.0f} %  {escaped(name)}, {_between(low[name], size, shown)}"


def _milliseconds(value: float) -> str:
    return f"{value:,.1f} ms" if value < 10 else f"{value:,.0f} ms"
