"""What encoding one query costs by each backend, and how far its vectors turn from torch's.

    OMP_NUM_THREADS=1 python benchmarks/speed/queries.py INDEX DATA [--split test] [--queries 200]
        [--json FILE]

INDEX is an index of DATA, a collection in BEIR layout. Its queries are encoded one by one, by each backend in
turn. Printed are CPU milliseconds (10 %, median, 95 %), tokenising and all heads included. Then, for each
vector set, the mean and the least cosine of a row and that of torch.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from counterpoint.data import open_collection
from counterpoint.index import Index
from counterpoint.index.paths import compile_all
from counterpoint.library.stored import encoder_of

BACKENDS = ("int8", "onnx", "torch")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--split", default="test")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    compile_all()
    texts = list(open_collection(options.data).queries(options.split).values())[: options.queries]
    index = Index(options.index)
    encoders = {backend: encoder_of(index, backend=backend) for backend in BACKENDS}
    vectors = {backend: [one.encode_query([text]) for text in texts] for backend, one in encoders.items()}
    spent = {backend: [] for backend in BACKENDS}
    fresh = {backend: encoder_of(index, backend=backend) for backend in BACKENDS}  # they have read no text
    for one in fresh.values():
        one.encode_query(["the first query loads what is needed"])
    for text in texts:
        for backend, one in fresh.items():
            start = time.process_time()
            one.encode_query([text])
            spent[backend].append(1e3 * (time.process_time() - start))
    found = {
        backend: {
            "CPU ms": [float(value) for value in np.percentile(spent[backend], [10, 50, 95])],
            "cosines": {name: cosines(vectors[backend], vectors["torch"], name) for name in index.sets},
        }
        for backend in BACKENDS
    }
    for backend, measured in found.items():
        times = " / ".join(f"{value:.2f}" for value in measured["CPU ms"])
        near = "; ".join(
            f"{name} {mean:.4f}, {least:.4f}" for name, (mean, least) in measured["cosines"].items()
        )
        print(f"{backend:8}{times:24}{near}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def cosines(made, wanted, name):
    """The mean and the least cosine of rows."""
    rows = [np.concatenate([one[name].values for one in some]) for some in (made, wanted)]
    lengths = np.prod([np.linalg.norm(each, axis=1) for each in rows], axis=0)
    there = lengths > 0
    found = (rows[0] * rows[1]).sum(1)[there] / lengths[there]
    return float(found.mean()), float(found.min())


if __name__ == "__main__":
    main()
