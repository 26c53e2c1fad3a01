"""Approximate search of one vector per text (`index --ann hnsw`) compared with exact search.

    python -m benchmarks.speed.ann DATA [DATA ...] -o FOLDER [--documents 5000 20000] [--queries 500]
        [--model NAME]

DATA are collections. Documents and queries are encoded once, by the model's pooled set, and kept in FOLDER;
what was stopped goes on where it was. For each number of documents an index without a graph and one with it
are built and asked the same queries, one at a time, for their best 10. Recall is the share of the documents
that are truly best, by the same stored vectors, that the graph finds, asked for 100. Times are of the
processor, with the vectors of the queries at hand: set OMP_NUM_THREADS=1 for those of one core.
"""

import random
import shutil
import time
from pathlib import Path
from statistics import fmean

import numpy as np
from benchmarks.common import parser_of

from counterpoint.data import open_collection
from counterpoint.index import Index, IndexSettings, VectorSet, build_index
from counterpoint.loading import load_model
from counterpoint.search import Searcher
from counterpoint.types import Document, Ragged

CHUNK = 1000  # texts encoded between two files
SHOWN, DEPTH = 10, 100  # documents asked for where time is taken, and where recall is
KINDS = {"all": None, "graph": "hnsw"}


def encoded(model, texts, side, folder):
    """Vectors of texts, in the order of the texts; a file for each chunk."""
    folder.mkdir(parents=True, exist_ok=True)
    encode = model.encode_query if side == "query" else model.encode_document
    (pooled,) = (name for name, made in model.sets.items() if made.pooled)
    parts = []
    for start in range(0, len(texts), CHUNK):
        some = texts[start : start + CHUNK]
        path = folder / f"{side}-{start}-{len(some)}.npy"
        if not path.is_file():
            partial = path.with_suffix(".partial.npy")
            np.save(partial, encode(some)[pooled].values)
            partial.rename(path)
        parts.append(np.load(path))
    return np.concatenate(parts)


class Stored:
    """A model that has seen all texts before: encoding costs nothing."""

    def __init__(self, vectors):
        self.vectors = vectors
        self.sets = {"mean": VectorSet(len(next(iter(vectors.values()))), True, False)}

    def fingerprint(self):
        return "stored"

    def encode_document(self, texts):
        rows = np.stack([self.vectors[text] for text in texts])
        return {"mean": Ragged(rows, np.arange(len(texts) + 1))}

    encode_query = encode_document


def measured(documents, queries, model, folder):
    """By kind of index: seconds to build, bytes of its files, milliseconds a query, what it finds."""
    found = {}
    for kind, ann in KINDS.items():
        shutil.rmtree(folder, ignore_errors=True)
        started = time.process_time()
        build_index(documents, model, folder, IndexSettings(lexical=None, ann=ann))
        built = time.process_time() - started
        with Index(folder) as index:
            searcher = Searcher(index, model)
            run = searcher.run({query: query for query in queries}, DEPTH, workflow="dense")
            times = []
            for query in queries:
                started = time.process_time()
                searcher.search(query, SHOWN, workflow="dense")
                times.append(1000 * (time.process_time() - started))
            sizes = index.info()["bytes_by_purpose"]
        stored = sum(size for purpose, size in sizes.items() if purpose.endswith(": mean"))
        found[kind] = {"seconds": built, "bytes": stored, "ms": np.percentile(times, [50, 95])}
        found[kind]["top"] = [[document for document, _ in run[query]] for query in queries]
    return found


def recall(found, depth):
    pairs = zip(found["all"]["top"], found["graph"]["top"], strict=True)
    return fmean(len(set(best[:depth]) & set(near[:depth])) / len(best[:depth]) for best, near in pairs)


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, nargs="+", help="collections")
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--documents", type=int, nargs="+", default=[20000], help="the first of each")
    parser.add_argument("--queries", type=int, default=500, help="drawn from all splits")
    parser.add_argument("--model", default="minilm-dense")
    options = parser.parse_args()
    model = load_model(options.model)
    header = ["collection", "documents", "looks at", "build, s", "bytes a document", "ms a query (95 %)"]
    header += [f"recall@{depth}" for depth in (SHOWN, DEPTH)]
    print(f"| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for data in options.data:
        collection = open_collection(data, passage_words=None)
        texts = [document.full_text for document in collection.documents()][: max(options.documents)]
        asked = sorted(set(collection.queries().values()))
        asked = random.Random(1).sample(asked, min(options.queries, len(asked)))
        folder = options.output / data.name / options.model
        vectors = dict(zip(texts, encoded(model, texts, "document", folder), strict=True))
        vectors |= zip(asked, encoded(model, asked, "query", folder), strict=True)
        for count in options.documents:
            documents = [Document(str(i), text) for i, text in enumerate(texts[:count])]
            found = measured(documents, asked, Stored(vectors), folder / "index")
            for kind, row in found.items():
                shares = ["", ""] if kind == "all" else [f"{recall(found, k):.4f}" for k in (SHOWN, DEPTH)]
                median, most = row["ms"]
                cells = [data.name, f"{len(documents):,}", kind, f"{row['seconds']:.1f}"]
                cells += [f"{row['bytes'] / len(documents):,.0f}", f"{median:.2f} ({most:.2f})", *shares]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
