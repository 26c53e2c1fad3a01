"""Whitening of many rows from a stream: speed as a share of the machine's own matrix products, and memory.

    python -m benchmarks.speed.whitening [--rows 10000000] [--dim 128] [--flows 200000 [--steps 1000]]

Blocks of correlated float32 rows are generated one by one and thrown away; making them is outside the clock.
`fit` accumulates the covariance in float64, 2·d² operations a row, and is compared with a large square
product in float64; the map itself is a product in float32, and is compared with one in float32. Squares are
timed before and after, and the faster counts. The time includes all that a user pays in addition: conversion,
centring, checks, masks. `--flows` also trains Glow and NICE, on so many rows.
"""

import json
import resource
import sys
import time

import torch
from benchmarks.common import parser_of

from counterpoint.transform import Glow, Nice, Whitening
from counterpoint.transform.flow import FlowTraining
from counterpoint.vectors import Vectors

BLOCK = 100_000


class Stream:
    """Blocks of rows; counts the seconds that making them takes."""

    def __init__(self, rows, dim):
        self.rows, self.seconds, self.draw = rows, 0.0, torch.Generator().manual_seed(0)
        self.mixing = torch.randn(dim, dim, generator=self.draw) / dim**0.5
        self.offset = torch.randn(dim, generator=self.draw)

    def __iter__(self):
        for start in range(0, self.rows, BLOCK):
            started = time.perf_counter()
            size = min(BLOCK, self.rows - start)
            block = torch.randn(size, len(self.offset), generator=self.draw) @ self.mixing + self.offset
            self.seconds += time.perf_counter() - started
            yield block


def peak(dtype, size=3000):
    """Operations a second of a square product."""
    left, right = torch.randn(2, size, size, dtype=dtype)
    left @ right
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        left @ right
        best = min(best, time.perf_counter() - started)
    return 2 * size**3 / best


def peaks():
    return peak(torch.float64), peak(torch.float32)


def memory():
    """Highest resident memory of this process so far, in MiB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def timed_fit(transform, stream):
    started = time.perf_counter()
    transform.fit(stream)
    return time.perf_counter() - started - stream.seconds


def timed_flows(options):
    """Seconds, and seconds of the processor, that each flow takes."""
    training = FlowTraining(steps=options.steps, sample=options.flows)
    found = {"flow_rows": options.flows, "flow_steps": options.steps}
    for name, kind in (("glow", Glow), ("nice", Nice)):
        used = time.process_time()
        seconds = timed_fit(kind(options.dim, fitting=training), Stream(options.flows, options.dim))
        found |= {f"{name}_seconds": seconds, f"{name}_cpu_seconds": time.process_time() - used}
    return found


def timed_map(transform, stream):
    total = 0.0
    for block in stream:
        started = time.perf_counter()
        transform(Vectors(block[None], torch.ones(1, len(block), dtype=torch.bool)))
        total += time.perf_counter() - started
    return total


def main():
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--flows", type=int, metavar="ROWS", help="also train Glow and NICE on so many rows")
    parser.add_argument("--steps", type=int, default=FlowTraining().steps, help="of flows")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    before = peaks()
    base = memory()
    whitening = Whitening(options.dim)
    fitting = timed_fit(whitening, Stream(options.rows, options.dim))
    after_fit = memory()
    mapping = timed_map(whitening, Stream(options.rows, options.dim))
    double, single = (max(pair) for pair in zip(before, peaks(), strict=True))
    operations = 2 * options.rows * options.dim**2
    found = {
        "rows": options.rows, "dim": options.dim, "threads": torch.get_num_threads(),
        "fit_seconds": fitting, "fit_rows_per_second": options.rows / fitting,
        "fit_of_float64_peak": operations / fitting / double,
        "map_seconds": mapping, "map_rows_per_second": options.rows / mapping,
        "map_of_float32_peak": operations / mapping / single,
        "float64_peak": double, "float32_peak": single,
        "memory_before_mib": base, "memory_after_fit_mib": after_fit, "memory_after_map_mib": memory(),
    }  # fmt: skip
    if options.flows:
        found |= timed_flows(options)
    print(
        json.dumps(found)
        if options.json
        else "\n".join(f"{name:24}{value:,.3f}" for name, value in found.items())
    )


if __name__ == "__main__":
    main()
