"""How long an index takes to open and to answer, as a program uses it.

    OMP_NUM_THREADS=1 python benchmarks/speed/answers.py INDEX DATA [--split test] [--queries 200]
        [--backend auto] [--json FILE]

INDEX is an index of DATA, a collection in BEIR layout. Printed are bytes a document with all files, CPU
milliseconds of opening and of the first answer, p50 and p95 of CPU and wall milliseconds of an answer with
encoding and without (where the query was asked before), and resident memory.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np

import counterpoint as cp
from counterpoint.data import open_collection
from counterpoint.index.paths import compile_all, described

WARM = 20  # queries before times are taken


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("data")
    parser.add_argument("--split", default="test")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    texts = list(open_collection(options.data).queries(options.split).values())[: options.queries + WARM]
    compile_all()
    opening, notes = timed(lambda: cp.open(options.index, backend=options.backend, cached=len(texts)))
    first, _ = timed(lambda: notes.search(texts[0]))
    for text in texts[1:WARM]:
        notes.search(text)
    found = {
        "kernel": described()["kernel"],
        "bytes a document": notes.index.info()["bytes_per_document"],
        "opening": opening[0],
        "first answer": first[0],
    }
    for name in ("with encoding", "without"):
        times = np.array([timed(lambda text=text: notes.search(text))[0] for text in texts[WARM:]])
        for kind, column in zip(("CPU", "wall"), times.T, strict=True):
            found |= {f"{name}, {kind}, p{p}": float(np.percentile(column, p)) for p in (50, 95)}
    found["resident MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for name, value in found.items():
        print(f"{name:28}{value if isinstance(value, str) else f'{value:,.2f}'}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


def timed(work) -> tuple[tuple[float, float], object]:
    """CPU and wall milliseconds of a call, and its result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return (1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)), result


if __name__ == "__main__":
    main()
