"""How much faster query encoders of fewer layers are: those of DAFT's table 2, cut from MiniLM.

    python -m benchmarks.papers.daft_times DATA/squad11-dev

Test queries are encoded one at a time on one thread, tokenising included. Models are timed as they begin:
training changes weights, not times.
"""

import time
from pathlib import Path

import numpy as np
from benchmarks.common import parser_of
from benchmarks.papers.daft_rows import KEPT, layer_rows
from benchmarks.papers.seeds import print_table

from counterpoint.data import open_collection
from counterpoint.encode import EncodeOptions

PASSES = 6  # of each query; the least time counts
RESAMPLES = 2000


def models():
    """By name, the rows that differ in layers."""
    first = {}
    for name, layers in KEPT.items():
        first.setdefault(str(layers), name)
    recipes = layer_rows((1,))
    return {name: recipes[name, 1].model.setup().eval() for name in first.values()}


def milliseconds(model, queries):
    """Of each query."""
    found = []
    for query in queries:
        started = time.perf_counter()
        model.encode_query([query], EncodeOptions(precision="fp32"))
        found.append(1000 * (time.perf_counter() - started))
    return found


def faster(taken):
    """Of each, compared with the slowest: how many percent less it takes, and how many times faster it is.

    The interval is over queries, by a bootstrap.

    Args:
        taken: by row, the milliseconds of each query.
    """
    slowest = max(taken.values(), key=np.sum)
    drawn = np.random.default_rng(0).integers(0, len(slowest), (RESAMPLES, len(slowest)))
    table = {}
    for row, one in taken.items():
        low, high = np.quantile(slowest[drawn].sum(axis=1) / one[drawn].sum(axis=1), (0.025, 0.975))
        times = float(slowest.sum() / one.sum())
        cells = {"ms a query": float(one.mean()), "% less": 100 * (1 - 1 / times)}
        table[row] = {**cells, "times faster": times, "95 %": f"[{low:.2f}, {high:.2f}]"}
    return table


def main():
    import torch

    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    asked = open_collection(arguments.data, passage_words=None).queries("test")
    queries, timed = list(asked.values())[: arguments.queries], models()
    # In turn, since the speed of a machine varies.
    passes = [{row: milliseconds(model, queries) for row, model in timed.items()} for _ in range(PASSES)]
    print_table(faster({row: np.min([one[row] for one in passes], axis=0) for row in timed}))


if __name__ == "__main__":
    main()
