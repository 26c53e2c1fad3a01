"""What the default model reaches: BM25, cosine, MaxSim and the default on any collections in BEIR layout.

    python -m benchmarks.default.measure DATA/scifact DATA/cranfield …
        [--splits msmarco-v2-dl21-pool=dl21-pool] [--systems NAME …] [--backends auto onnx]

Builds two indexes of each collection in a temporary folder (the default, and one that keeps float16 vectors
of every word-piece instead of whole words), and prints nDCG@10 and R@100 of each system, bytes a document of
the vectors and of the whole index, and milliseconds a query (encoding included). Each of the backends encodes
the queries in turn.
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import get_args

from benchmarks.common import parser_of

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.library.options import BACKEND, Backend
from counterpoint.library.stored import encoder_of
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.search import Searcher, SearchSettings

MEASURES = ["nDCG@10", "R@100"]
TOKENS = {"weights": {"tokens": 1.0}, "idf": {}}
DENSE = {"weights": {"mean": 0.28, "words": 0.52}}
HALF = {"weights": {"mean": 0.15, "words": 0.85}, "adapt": {}}  # what weights.py chooses for vectors
FIXED = {"weights": {"mean": 0.25, "words": 0.75}, "adapt": {}}
BEFORE = {"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "adapt": {}}
SYSTEMS = (  # name, model, codec, workflow, settings that are not the model's own
    ("BM25", "minilm", "1-bit", "lexical", {}),
    ("cosine", "minilm", "1-bit", "dense", {}),
    ("MaxSim of tokens", "minilm-tokens", "float16", "words", TOKENS),
    ("whole words", "minilm", "1-bit", "words", {}),
    ("cosine and whole words", "minilm", "1-bit", "dense-words", FIXED),
    ("cosine and whole words, adapted", "minilm", "1-bit", "dense-words", {}),
    ("default without BM25", "minilm", "1-bit", "hybrid", DENSE),
    ("vectors, chosen alike", "minilm", "1-bit", "hybrid", HALF),
    ("default without feedback", "minilm", "1-bit", "hybrid", {"feedback": 0.0}),
    ("default with the weights of before", "minilm", "1-bit", "hybrid", BEFORE),
    ("default", "minilm", "1-bit", "hybrid", {}),
    ("default, tokens", "minilm-tokens", "float16", "hybrid", {}),
)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("collections", nargs="+")
    parser.add_argument("--splits", nargs="*", default=[], help="NAME=SPLIT where it is not 'test'")
    names = [system[0] for system in SYSTEMS]
    parser.add_argument(
        "--systems", nargs="+", default=names, choices=names, metavar="NAME", help="only these"
    )
    parser.add_argument("--backends", nargs="+", default=[BACKEND], choices=get_args(Backend))
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--save-runs", type=Path, metavar="FOLDER", help="also write FOLDER/COLLECTION/SYSTEM.trec"
    )
    options = parser.parse_args()
    splits = dict(pair.split("=") for pair in options.splits)
    rows = []
    for source in options.collections:
        split = splits.get(Path(source).name, "test")
        for row in measure(source, split, options):
            rows.append(row)
            print(
                f"{row['collection']:22} {row['system']:34} {row['backend']:5} "
                f"{row['nDCG@10']:.4f} {row['R@100']:.4f} "
                f"{row['vector_bytes_per_document']:>10,.0f} B {row['bytes_per_document']:>10,.0f} B "
                f"{row['ms']:>8.1f} ms",
                flush=True,
            )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def measure(source: str, split: str, options: argparse.Namespace):
    collection = open_collection(source)
    queries, qrels = collection.queries(split), collection.qrels(split)
    built: dict[tuple[str, str], Path] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for system, preset, codec, workflow, changes in SYSTEMS:
            if system not in options.systems:
                continue
            model = load_model(preset)
            folder = built.setdefault((preset, codec), Path(scratch) / f"{preset}-{codec}")
            if not folder.exists():
                settings = model.index_settings(preset, codec=codec)
                build_index(collection.documents(), model, folder, settings)
            for backend in options.backends:
                with Index(folder) as index:
                    settings = replace(SearchSettings.for_index(index), **changes)
                    searcher = Searcher(index, encoder_of(index, backend=backend), settings)
                    started = time.perf_counter()
                    run = searcher.run(queries, 100, workflow=workflow)
                    seconds = time.perf_counter() - started
                    info = index.info()
                if options.save_runs:
                    name = system if len(options.backends) == 1 else f"{system} {backend}"
                    save(run, options.save_runs / collection.name, name)
                yield {
                    "collection": collection.name,
                    "system": system,
                    "backend": backend,
                    **evaluate(run, qrels, MEASURES).measures,
                    "vector_bytes_per_document": vector_bytes(info) / info["documents"],
                    "bytes_per_document": info["bytes_per_document"],
                    "ms": 1000 * seconds / len(queries),
                }


def save(run, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    run.write(folder / f"{name.replace(',', '').replace(' ', '-')}.trec")


def vector_bytes(info) -> int:
    return sum(found["bytes"] for found in info["sets"].values())


if __name__ == "__main__":
    main()
