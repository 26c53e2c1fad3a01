"""MaxSim of one query with every document: our kernels next to numpy and maxsim-cpu, on the same vectors.

    OMP_NUM_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/speed/kernels.py [--documents 12000] [--dim 128]
        [--rows 92] [--query 16] [--json FILE]

Vectors are synthetic: unit vectors around the centres of clusters. Times are CPU time, the least of several
passes in milliseconds. Nothing is left out: a query is rotated, rounded and arranged each time. GOP/s counts
two operations for each component of each pair of rows; "of peak" compares them with the product of int8
matrices by torch on one thread, where the processor has instructions for that (VNNI). GB/s are to be compared
with reading memory. Recall is that of float32's best.
"""

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from counterpoint.index import Asked, SetLayout
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.ours import is_of_index
from counterpoint.index.paths import Meter, compile_all, described
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.several import SeveralStore
from counterpoint.types import Document, Ragged

CODECS = ("int8", "4-bit", "2-bit", "1-bit")
PASSES = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("documents", 12_000), ("dim", 128), ("rows", 92), ("query", 16), ("queries", 5)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    documents, queries = vectors_of(options)
    compile_all()
    peak, memory = int8_peak(), bandwidth()
    print(f"{described()['kernel']}; int8 product {said_of(peak)}, reading memory {memory:.1f} GB/s")
    print(f"{len(documents.values):,} vectors of {options.dim}, {options.query} rows a query")
    exact = [np.argsort(-by_numpy(documents, query), kind="stable") for query in queries]
    rows = []
    for name, scores, size in systems(documents, queries):
        times, found = zip(*(least_of(scores, query) for query in queries), strict=True)
        ms = 1000 * float(np.median(times))
        operations = 2 * len(documents.values) * options.query * options.dim
        row = {"system": name, "ms": ms, "GOP/s": operations / ms / 1e6, "bytes a vector": size}
        row |= {"of peak": peak and row["GOP/s"] / peak, "GB/s": size * len(documents.values) / ms / 1e6}
        row |= {f"R@{k}": recall(exact, found, k) for k in (10, 100)}
        rows.append(row)
        print(
            f"{name:22}{ms:>9.2f} ms{row['GOP/s']:>8.0f} GOP/s"
            + (f"{row['of peak']:>7.0%} of peak" if peak else "")
            + f"{row['GB/s']:>7.1f} GB/s{size:>8.1f} B{row['R@10']:>7.3f}{row['R@100']:>7.3f}",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps({"peak": peak, "memory": memory, "rows": rows}, indent=1))


def vectors_of(options: argparse.Namespace) -> tuple[Ragged, list[np.ndarray]]:
    """Documents that each draw on a few clusters, and queries near rows of one of them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(4096, options.dim)).astype(np.float32)
    lengths = rng.integers(options.rows // 2, options.rows * 3 // 2, options.documents)
    topics = rng.integers(0, 4096, (options.documents, 12))
    owners = np.repeat(np.arange(options.documents), lengths)
    values = centres[topics[owners, rng.integers(0, 12, len(owners))]]
    values += rng.normal(size=values.shape).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    queries = []
    for position in rng.integers(0, options.documents, options.queries):
        near = values[offsets[position] : offsets[position + 1]]
        query = near[rng.integers(0, len(near), options.query)]
        query = query + 0.08 * rng.normal(size=query.shape).astype(np.float32)
        queries.append(query / np.linalg.norm(query, axis=1, keepdims=True))
    return Ragged(values, offsets), queries


def by_numpy(documents: Ragged, query: np.ndarray) -> np.ndarray:
    """One product of matrices, then the maximum of each document's rows."""
    return np.maximum.reduceat(query @ documents.values.T, documents.offsets[:-1], axis=1).sum(axis=0)


def systems(documents: Ragged, queries: list[np.ndarray]):
    """Name, what scores a query, and bytes a vector, of each system."""
    yield "numpy, float32", lambda query: by_numpy(documents, query), 4.0 * documents.dim
    if importlib.util.find_spec("maxsim_cpu"):
        import maxsim_cpu

        parts = [documents[i] for i in range(len(documents))]
        yield (
            "maxsim-cpu, float32",
            lambda query: np.asarray(maxsim_cpu.maxsim_scores_variable(query, parts)),
            4.0 * documents.dim,
        )
    for codec in CODECS:
        with TemporaryDirectory() as name:
            layout = SetLayout(documents.dim, "several", codec)
            with SegmentWriter(Path(name), {"v": layout}) as writer:
                ids = [Document(str(i), "") for i in range(len(documents))]
                writer.append(ids, {"v": documents})
            files = [path for path in Path(name).glob("v.*") if is_of_index(path)]
            size = sum(path.stat().st_size for path in files) / len(documents.values)
            store = SeveralStore("v", layout, [Piece(CheckedFolder(Path(name)), len(documents), layout)])
            yield f"ours, {codec}", scores_of(store), size
            if codec == "int8":
                store._meter = Plain()
                yield f"ours, {codec}, numpy", scores_of(store), size


def scores_of(store: SeveralStore) -> Callable[[np.ndarray], np.ndarray]:
    return lambda query: store.all_scores([Asked(query)])[0]


class Plain(Meter):
    """One that never changes over to compiled kernels."""

    def kernels(self, products: int) -> None:
        return None


def least_of(scores: Callable[[np.ndarray], np.ndarray], query: np.ndarray) -> tuple[float, np.ndarray]:
    """CPU seconds of the quickest pass, and the documents, best first."""
    times = []
    for _ in range(PASSES):
        started = time.process_time()
        found = scores(query)
        times.append(time.process_time() - started)
    return min(times), np.argsort(-found, kind="stable")


def recall(exact: list[np.ndarray], found: tuple[np.ndarray, ...], k: int) -> float:
    pairs = zip(exact, found, strict=True)
    return float(np.mean([len(set(a[:k].tolist()) & set(b[:k].tolist())) / k for a, b in pairs]))


def int8_peak() -> float | None:
    """GOP/s of torch's product of int8 matrices on one thread; None where it takes longer than of float32."""
    import torch

    torch.set_num_threads(1)

    def speed(size: int, kind: torch.dtype) -> float:
        left, right = (torch.randint(-127, 127, (size, size)).to(kind) for _ in range(2))
        product = torch._int_mm if kind == torch.int8 else torch.mm
        product(left, right)
        return max(2 * size**3 / seconds(lambda: product(left, right)) / 1e9 for _ in range(3))

    if speed(512, torch.int8) < speed(512, torch.float32):
        return None
    return speed(2048, torch.int8)


def said_of(peak: float | None) -> str:
    return "slower than of float32" if peak is None else f"{peak:.0f} GOP/s"


def bandwidth() -> float:
    """GB/s of summing half a gigabyte that no cache holds, on one thread."""
    table = np.ones(2**26, np.float64)
    return max(table.nbytes / seconds(lambda: table.sum()) / 1e9 for _ in range(3))


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


if __name__ == "__main__":
    main()
