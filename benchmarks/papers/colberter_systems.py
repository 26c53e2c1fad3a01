"""The shipped ColBERTer models, BM25 and a dense retriever: tables 2 (column TAS) and 5, and figure 5.

    python -m benchmarks.papers.colberter_systems DATA/med DATA/cranfield -o WORK
        [--json FILE] [--plots FOLDER]

Each collection is indexed once by each system. Printed are, for each workflow, nDCG@10 and R@100, the
milliseconds of a query (one at a time on one thread; encoding it is apart, since all workflows do it) and the
bytes as the paper counts them; then what the refinement makes of a standalone retriever's first hundred in
place of its own, as table 2's column TAS has it, by MiniLM's own sentence vectors for TAS-Balanced. Figure 5
are forest plots of standardised mean differences in nDCG@10, as `colberter_effects.py` takes them:
Uni-ColBERTer and ColBERTer against BM25, and ColBERTer against the dense retriever.
"""

import json
import time
from pathlib import Path

import numpy as np
import torch
from benchmarks.common import parser_of
from benchmarks.papers.colberter_effects import figure5, show_effects, values_of

from counterpoint.data import open_collection
from counterpoint.encode import EncodeOptions
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate, stored_bytes
from counterpoint.search import Searcher

SYSTEMS = ("uni-colberter", "colberter")
DENSE, BM25 = "minilm-dense", "bm25"
WORKFLOWS = {"hybrid": 1, "dense-words": 2, "words-dense": 3, "dense": 4, "words": 5}
MEASURES = ("nDCG@10", "R@100")
PAIRS = (("uni-colberter", BM25), ("colberter", BM25), ("colberter", DENSE))
TIMED = 50


class Remembered:
    """A model that encodes each query once, so that a search can be timed without it."""

    def __init__(self, model):
        self.model, self.known = model, {}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def encode_query(self, texts):
        key = tuple(texts)
        if key not in self.known:
            self.known[key] = self.model.encode_query(texts, EncodeOptions(precision="fp32"))
        return self.known[key]


def indexed(collection, name, folder):
    """The folder of an index by one system, built unless it is there."""
    folder = folder / f"{collection.name}-{name}"
    if not (folder / "manifest.json").is_file():
        model = None if name == BM25 else load_model(name)
        settings = IndexSettings() if model is None else model.index_settings(name, lexical=None)
        build_index(collection.documents(), model, folder, settings)
    return folder


def milliseconds(searcher, queries, workflow):
    """The median over queries that are encoded already."""
    taken = []
    for text in list(queries.values())[:TIMED]:
        searcher.search(text, 10, workflow=workflow)
        started = time.perf_counter()
        searcher.search(text, 10, workflow=workflow)
        taken.append(1000 * (time.perf_counter() - started))
    return float(np.median(taken))


def measured(collection, folder):
    """Runs by system, and for the ColBERTers every workflow's figures."""
    split = next((name for name in collection.splits if "pool" in name), "test")
    qrels = collection.qrels(split)
    queries = {query: text for query, text in collection.queries(split).items() if query in qrels}
    runs, found = {}, {"queries": len(queries), "systems": {}}
    with Index(indexed(collection, BM25, folder)) as index:
        runs[BM25] = Searcher(index).run(queries, 1000, workflow="lexical")
    with Index(indexed(collection, DENSE, folder)) as index:
        runs[DENSE] = Searcher(index, load_model(DENSE)).run(queries, 1000, workflow="dense")
    for name in SYSTEMS:
        with Index(indexed(collection, name, folder)) as index:
            model = Remembered(load_model(name))
            model.model.encode_query(list(queries.values())[:5])  # the first calls are slow
            started = time.perf_counter()
            for text in list(queries.values())[:TIMED]:
                model.encode_query([text])
            encoding = 1000 * (time.perf_counter() - started) / min(TIMED, len(queries))
            searcher = Searcher(index, model)
            stored = index.info()["sets"]
            row = {
                "documents": len(index),
                "vectors": stored["words"]["vectors"] / len(index),
                "dim": stored["words"]["dim"],
                "encoding": encoding,
                "workflows": {},
            }
            for workflow in WORKFLOWS:
                run = searcher.run(queries, 1000, workflow=workflow)
                values = dict(evaluate(run, qrels, MEASURES).measures)
                row["workflows"][workflow] = {
                    **values,
                    "milliseconds": milliseconds(searcher, queries, workflow),
                }
                if workflow == "dense-words":
                    runs[name] = run
            first = runs[DENSE].top(100)
            other = searcher.run(queries, 100, workflow="dense-words", candidates=first)
            row["refined"] = dict(evaluate(other, qrels, MEASURES).measures)
        found["systems"][name] = row
    for name in (BM25, DENSE):
        found["systems"][name] = {"measures": dict(evaluate(runs[name], qrels, MEASURES).measures)}
    found["effects"] = values_of(runs, qrels)
    return found


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def show(found):
    """Tables 5 and 2, means over the collections."""
    print("| system | workflow | bytes a document | ms a query | of it encoding | nDCG@10 | R@100 |")
    print("|---|---|---|---|---|---|---|")
    for name in (BM25, DENSE):
        row = [mean(c["systems"][name]["measures"][m] for c in found.values()) for m in MEASURES]
        print(f"| {name} | | | | | {row[0]:.3f} | {row[1]:.3f} |")
    for name in SYSTEMS:
        cells = [c["systems"][name] for c in found.values()]
        documents = sum(cell["documents"] for cell in cells)
        vectors = sum(cell["vectors"] * cell["documents"] for cell in cells) / documents
        size = stored_bytes(1, vectors, cells[0]["dim"], exact=True)
        encoding = mean(cell["encoding"] for cell in cells)
        for workflow, number in WORKFLOWS.items():
            of = [cell["workflows"][workflow] for cell in cells]
            took = encoding + mean(one["milliseconds"] for one in of)
            print(
                f"| {name} | {number} {workflow} | {size:,.0f} | {took:.1f} | {encoding:.1f} "
                f"| {mean(one['nDCG@10'] for one in of):.3f} | {mean(one['R@100'] for one in of):.3f} |"
            )
    print("\n| refined by | own first hundred | first hundred of the dense retriever |\n|---|---|---|")
    for name in SYSTEMS:
        cells = [c["systems"][name] for c in found.values()]
        own = mean(cell["workflows"]["dense-words"]["nDCG@10"] for cell in cells)
        other = mean(cell["refined"]["nDCG@10"] for cell in cells)
        print(f"| {name} | {own:.3f} | {other:.3f} |")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", nargs="+", type=Path, help="collections in BEIR layout")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the indexes")
    parser.add_argument("--json", type=Path, help="save what was measured")
    parser.add_argument("--plots", type=Path, help="draw figure 5 into this folder")
    options = parser.parse_args()
    if options.plots and len(options.data) < 2:
        parser.error("--plots: a forest plot needs two collections or more")
    torch.set_num_threads(1)
    found = {}
    for path in options.data:
        found[path.name] = measured(open_collection(path, passage_words=None), options.output)
    show(found)
    show_effects(found, PAIRS)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    if options.plots:
        options.plots.mkdir(parents=True, exist_ok=True)
        figure5(found, PAIRS).save(options.plots / "figure5.svg")


if __name__ == "__main__":
    main()
