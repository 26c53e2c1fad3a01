"""Time of evaluating a run of MS MARCO's size from its file: ours and pytrec-eval's.

    python -m benchmarks.speed.evaluate [--queries 6980] [--documents 1000] [--rounds 5]

Each round runs both in processes of their own, one after the other, so that neither finds the other's memory;
the fastest round of each counts. Both read the same files and compute the same five measures.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

MEASURES = {"nDCG@10": "ndcg_cut_10", "R@100": "recall_100", "AP": "map", "RR": "recip_rank", "P@10": "P_10"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs=2, metavar=("SYSTEM", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only:
        print(json.dumps(SYSTEMS[options.only[0]](Path(options.only[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), options.queries, options.documents)
        results = {name: [alone(name, folder) for _ in range(options.rounds)] for name in SYSTEMS}
    report(results, options)


def make(folder: Path, queries: int, documents: int) -> None:
    """A run with distinct scores, and one relevant document a query somewhere in its top 30."""
    rng = np.random.default_rng(0)
    with open(folder / "run", "w") as run, open(folder / "qrels", "w") as qrels:
        for query in range(1_000_000, 1_000_000 + queries):
            found = rng.choice(8_841_823, size=documents, replace=False)
            scores = np.sort(rng.normal(20, 5, size=documents))[::-1]
            run.writelines(
                f"{query} Q0 {document} {rank} {score:.6f} made\n"
                for rank, (document, score) in enumerate(zip(found, scores, strict=True), 1)
            )
            qrels.write(f"{query} 0 {found[rng.integers(30)]} 1\n")


def alone(name: str, folder: str) -> dict:
    """One round in a process of its own; the time of starting it does not count."""
    command = [sys.executable, __file__, "--only", name, folder]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def by_pytrec_eval(folder: Path) -> dict:
    import pytrec_eval

    started = time.perf_counter()
    with open(folder / "run") as run, open(folder / "qrels") as qrels:
        results, judged = pytrec_eval.parse_run(run), pytrec_eval.parse_qrel(qrels)
    read = time.perf_counter()
    wanted = {"ndcg_cut.10", "recall.100", "map", "recip_rank", "P.10"}
    values = pytrec_eval.RelevanceEvaluator(judged, wanted).evaluate(results)
    done = time.perf_counter()
    means = {
        ours: sum(row[theirs] for row in values.values()) / len(values) for ours, theirs in MEASURES.items()
    }
    return {"read": read - started, "evaluate": done - read, "means": means}


def by_counterpoint(folder: Path) -> dict:
    from counterpoint.data import read_qrels
    from counterpoint.measure import evaluate
    from counterpoint.search import Run

    started = time.perf_counter()
    run, qrels = Run.read(folder / "run"), read_qrels(folder / "qrels")
    read = time.perf_counter()
    means = evaluate(run, qrels, list(MEASURES)).measures
    return {"read": read - started, "evaluate": time.perf_counter() - read, "means": dict(means)}


SYSTEMS = {"pytrec-eval": by_pytrec_eval, "counterpoint": by_counterpoint}


def report(results: dict, options: argparse.Namespace) -> None:
    best = {name: min(rounds, key=lambda r: r["read"] + r["evaluate"]) for name, rounds in results.items()}
    theirs, ours = best["pytrec-eval"], best["counterpoint"]
    for name, mean in theirs["means"].items():
        assert abs(mean - ours["means"][name]) < 1e-9, f"{name}: {mean} and {ours['means'][name]} differ"
    print(f"{options.queries:,} queries x {options.documents:,} documents, {', '.join(MEASURES)}; seconds\n")
    print(f"{'':14}{'read':>8}{'evaluate':>10}{'together':>10}")
    for name, row in best.items():
        print(f"{name:14}{row['read']:>8.2f}{row['evaluate']:>10.2f}{row['read'] + row['evaluate']:>10.2f}")
    ratio = (ours["read"] + ours["evaluate"]) / (theirs["read"] + theirs["evaluate"])
    print(f"\ncounterpoint takes {ratio:.2f} times pytrec-eval's time")


if __name__ == "__main__":
    main()
