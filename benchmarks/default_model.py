"""What the default model reaches: BM25, cosine, MaxSim and the default on any collections in BEIR layout.

    python benchmarks/default_model.py DATA/scifact DATA/cranfield … [--splits msmarco-v2-dl21-pool=dl21]

Builds two indexes of each collection in a temporary folder (the default, and float16 vectors of every
word-piece), and prints nDCG@10 and R@100 of each workflow, bytes a document, and milliseconds a query.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.model import load_model
from counterpoint.search import Searcher

MEASURES = ["nDCG@10", "R@100"]
SYSTEMS = (  # name, model, codec, workflow
    ("BM25", "minilm", "int4", "lexical"),
    ("cosine", "minilm", "int4", "dense"),
    ("whole words", "minilm", "int4", "words"),
    ("default", "minilm", "int4", "hybrid"),
    ("default, float16", "minilm", "float16", "hybrid"),
    ("MaxSim of tokens", "minilm-tokens", "float16", "words"),
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--splits", nargs="*", default=[], help="NAME=SPLIT where it is not 'test'")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    splits = dict(pair.split("=") for pair in options.splits)
    rows = []
    for source in options.collections:
        split = splits.get(Path(source).name, "test")
        for row in measure(source, split):
            rows.append(row)
            print(
                f"{row['collection']:22} {row['system']:18} {row['nDCG@10']:.4f} {row['R@100']:.4f} "
                f"{row['bytes_per_document']:>10,.0f} B {row['ms']:>8.1f} ms",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def measure(source: str, split: str):
    collection = open_collection(source)
    queries, qrels = collection.queries(split), collection.qrels(split)
    built: dict[tuple[str, str], Path] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for system, name, codec, workflow in SYSTEMS:
            model = load_model(name)
            folder = built.setdefault((name, codec), Path(scratch) / f"{name}-{codec}")
            if not folder.exists():
                settings = model.index_settings(name, codec=codec)
                build_index(collection.documents(), model, folder, settings)
            with Index(folder) as index:
                started = time.perf_counter()
                run = Searcher(index, model).run(queries, 100, workflow=workflow)
                seconds = time.perf_counter() - started
                size = index.info()["bytes_per_document"]
            means = evaluate(run, qrels, MEASURES).measures
            yield {
                "collection": collection.name,
                "system": system,
                **means,
                "bytes_per_document": size,
                "ms": 1000 * seconds / len(queries),
            }


if __name__ == "__main__":
    main()
