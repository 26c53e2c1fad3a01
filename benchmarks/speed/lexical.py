"""BM25 of this toolkit next to bm25s and tantivy: building, size, opening, and seconds a query.

    python benchmarks/speed/lexical.py DATA [--documents 20000 0] [--queries 1000] [--json FILE]

DATA is a collection in BEIR layout. Its queries are asked in a random order. All systems get the terms of our
analysis, so "build" and the queries leave it out; its cost is printed. "First" is the first pass over all
queries on an index that was just opened. "Again" is the second pass, in which ours has the scores of terms in
memory. "ours, kernel" is a process that has loaded the compiled kernels, as one with vectors does. Times are
CPU times of one thread; queries are p50 / p95 in milliseconds. A query gives its best k documents in order.
tantivy has other constants (k1 1.2, b .75), quantises lengths, and skips documents that cannot be among the
best. bm25s stores scores instead of counts. A system that is not installed is left out.
"""

import argparse
import importlib.util
import json
import random
import time
from functools import cache
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from counterpoint.data import open_collection
from counterpoint.index.best import best_of
from counterpoint.index.checked import CheckedFolder, write_blocks
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.manifest import FileEntry

DEPTHS = (10, 1000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--documents", type=int, nargs="+", default=[20_000, 0], help="0: all")
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--systems", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(f"{'documents':>9} {'system':13}{'build s':>8}{'B/posting':>10}{'B/doc':>7}{'open ms':>8}", end="")
    print("".join(f"{f'k={k} {which}':>17}" for k in DEPTHS for which in ("first", "again")), flush=True)
    for count in options.documents:
        documents, queries, report = analysed(options.data, count, options.queries)
        print(f"# {len(documents)} documents: {report}", flush=True)
        for name in options.systems:
            if name in NEEDS and importlib.util.find_spec(NEEDS[name]) is None:
                continue
            row = {"documents": len(documents), "system": name, **measured(name, documents, queries)}
            rows.append(row | report)
            print(line_of(row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


def analysed(data, count, asked):
    """The terms of documents and queries, and the CPU that they took."""
    collection, analyzer = open_collection(data), LexicalSettings().analyzed()
    texts = [document.full_text for document in islice(collection.documents(), count or None)]
    started = time.process_time()
    documents = [analyzer.terms(text) for text in texts]
    spent = time.process_time() - started
    queries = list(collection.queries().values())
    random.Random(1).shuffle(queries)
    started = time.process_time()
    queries = [terms for text in queries[:asked] if (terms := analyzer.terms(text))]
    each = (time.process_time() - started) / len(queries)
    return documents, queries, {"analysis_s": round(spent, 2), "analysis_us_a_query": round(each * 1e6, 1)}


def measured(name, documents, queries):
    postings = sum(len(set(terms)) for terms in documents)
    with TemporaryDirectory() as folder:
        build, opened = SYSTEMS[name]
        started = time.process_time()
        build(documents, Path(folder))
        found = {"build_s": time.process_time() - started}
        size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
        found |= {
            "bytes": size,
            "bytes_a_posting": size / postings,
            "bytes_a_document": size / len(documents),
        }
        opened(Path(folder))(queries[0], 10)  # imports and compilation
        for k in DEPTHS:
            started = time.process_time()
            ask = opened(Path(folder))
            found["open_ms"] = (time.process_time() - started) * 1e3
            for which in ("first", "again"):
                spent = []
                for terms in queries:
                    started = time.process_time()
                    ask(terms, k)
                    spent.append((time.process_time() - started) * 1e3)
                p50, p95 = np.percentile(spent, [50, 95])
                found |= {f"k{k}_{which}_p50_ms": p50, f"k{k}_{which}_p95_ms": p95}
    return found


def line_of(row):
    """One row of the table; queries are p50 / p95 in milliseconds."""
    line = f"{row['documents']:>9} {row['system']:13}{row['build_s']:>8.1f}{row['bytes_a_posting']:>10.2f}"
    line += f"{row['bytes_a_document']:>7.0f}{row['open_ms']:>8.1f}"
    for k in DEPTHS:
        for which in ("first", "again"):
            p50, p95 = (row[f"k{k}_{which}_{p}_ms"] for p in ("p50", "p95"))
            line += f"{f'{p50:.3f} / {p95:.3f}':>17}"
    return line


class Terms:
    """In place of an analyzer, for texts that are terms already."""

    @staticmethod
    def terms(text):
        return text


def build_ours(documents, folder):
    builder = LexicalBuilder(LexicalSettings(), folder)
    builder._analyzer = Terms
    for terms in documents:
        builder.add(terms)
    builder.write(folder)
    write_blocks(folder, list(folder.iterdir()))


@cache
def listed(folder):
    """What a manifest has; read once for all openings."""
    return {path.name: FileEntry.of(path) for path in folder.iterdir()}


def open_ours(folder):
    lexical = Lexical([(CheckedFolder(folder, listed(folder)), None)], LexicalSettings())
    lexical._analyzer = Terms

    def ask(terms, k):
        scores = lexical.scores(terms)
        best = best_of(scores, k, matching=True, kernels=lexical.kernels)
        return best[np.argsort(-scores[best], kind="stable")]

    return ask


def open_with_kernel(folder):
    """As a process that has loaded the compiled kernels."""
    importlib.import_module("counterpoint.index.compiled.maxsim")
    return open_ours(folder)


def build_bm25s(documents, folder):
    import bm25s

    vocabulary = {}
    numbers = [[vocabulary.setdefault(term, len(vocabulary)) for term in terms] for terms in documents]
    model = bm25s.BM25(k1=0.9, b=0.4, method="lucene", backend="numpy")
    model.index((numbers, vocabulary), show_progress=False)
    model.save(str(folder))


def open_bm25s(backend):
    def opened(folder):
        import bm25s

        model = bm25s.BM25.load(str(folder))
        model.backend = backend
        if backend == "numba":
            model.activate_numba_scorer()
        vocabulary, most = model.vocab_dict, model.scores["num_docs"]

        def ask(terms, k):
            numbers = [vocabulary[term] for term in terms if term in vocabulary]
            if numbers:
                return model.retrieve([numbers], k=min(k, most), show_progress=False, n_threads=1)

        return ask

    return opened


@cache
def tantivy_schema():
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


def build_tantivy(documents, folder):
    import tantivy

    index = tantivy.Index(tantivy_schema(), str(folder))
    writer = index.writer(heap_size=256_000_000, num_threads=1)
    for terms in documents:
        writer.add_document(tantivy.Document(text=" ".join(terms)))
    writer.commit()
    writer.wait_merging_threads()


def open_tantivy(folder):
    import tantivy

    schema = tantivy_schema()
    searcher = tantivy.Index.open(str(folder)).searcher()

    def ask(terms, k):
        each = [(tantivy.Occur.Should, tantivy.Query.term_query(schema, "text", term)) for term in terms]
        return searcher.search(tantivy.Query.boolean_query(each), k, count=False).hits

    return ask


SYSTEMS = {
    "ours": (build_ours, open_ours),
    "ours, kernel": (build_ours, open_with_kernel),
    "bm25s numba": (build_bm25s, open_bm25s("numba")),
    "bm25s numpy": (build_bm25s, open_bm25s("numpy")),
    "tantivy": (build_tantivy, open_tantivy),
}
NEEDS = {"bm25s numba": "numba", "tantivy": "tantivy"}


if __name__ == "__main__":
    main()
