"""How α_CS and the gate's threshold of ColBERTer's long rows are chosen: on arXiv's abstracts by titles.

    python -m benchmarks.papers.colberter_choice DATA -o RUNS [--json FILE]

RUNS is the folder of `colberter.py train`, whose collection, lists and trained rows are used; rows of other
α_CS are trained next to them. arXiv's titles are neither trained on nor among the benchmark's collections.
The rule: of all that lose at most .01 nDCG@10 to the rows of tokens, the one with the fewest vectors.
"""

import argparse
import json
import random
from pathlib import Path

from benchmarks.common import parser_of, train_rows
from benchmarks.papers.colberter import data_of, evaluate_collection, folder_of, one_model
from benchmarks.papers.colberter_rows import row, words

from counterpoint.data import open_collection

SOURCE, NAME = "arxiv-title-abstract", "arxiv-sample"
QUERIES, DOCUMENTS = 500, 3000
SPARSE = (0.1, 0.2, 0.3)  # α_CS
THRESHOLDS = (1.025, 1.05, 1.075, 1.1, 1.15)
TOKENS, LOSS = "tokens 32, long", 0.01
SHOWN = "dense-words"


def sample(data, output):
    """Some titles of the split `dev` and their abstracts among others, drawn once, as a collection."""
    folder = output / NAME
    if folder.is_dir():
        return
    source = open_collection(data / SOURCE, passage_words=None)
    judged, texts = source.qrels("dev"), source.queries("dev")
    chosen = random.Random(1).sample(sorted(judged), QUERIES)
    wanted = {document for query in chosen for document in judged[query]}
    others = sorted(document.id for document in source.documents() if document.id not in wanted)
    wanted |= set(random.Random(2).sample(others, DOCUMENTS - len(wanted)))
    made = output / f"{NAME}.partial"
    (made / "qrels").mkdir(parents=True, exist_ok=True)
    documents = [
        # the title is the query, so it must not be in the document
        {"_id": document.id, "title": "", "text": document.text}
        for document in source.documents()
        if document.id in wanted
    ]
    for name, records in (("corpus", documents), ("queries", [{"_id": q, "text": texts[q]} for q in chosen])):
        text = "".join(json.dumps(record) + "\n" for record in records)
        (made / f"{name}.jsonl").write_text(text, encoding="utf-8")
    lines = [f"{q}\t{d}\t{grade}\n" for q in chosen for d, grade in judged[q].items()]
    text = "query-id\tcorpus-id\tscore\n" + "".join(lines)
    (made / "qrels" / "test.tsv").write_text(text, encoding="utf-8")
    made.rename(folder)


def row_of(sparse):
    return f"words 32, long, α_CS {sparse:g}"


def train(arguments):
    """The rows that `colberter.py train` has not."""
    recipes = {row_of(sparse): row(words(32), sparse=sparse, long=True) for sparse in SPARSE}
    train_rows(recipes, folder_of, arguments, *data_of(arguments.output / "collection", arguments))


def measure(arguments):
    """nDCG@10 and vectors a document of tokens, of words, and of every α_CS and threshold."""
    closed = {
        f"{row_of(sparse)}, gate {threshold}": (row_of(sparse), threshold)
        for sparse in SPARSE
        for threshold in THRESHOLDS
    }
    names = [TOKENS, "words 32, long", *map(row_of, SPARSE), *closed]
    model, settings = one_model(names, arguments.output, closed)
    where = argparse.Namespace(data=arguments.output, output=arguments.output)
    found = evaluate_collection(NAME, model, settings, where)
    return {
        name: {
            "nDCG@10": one["workflows"][SHOWN]["nDCG@10"],
            "vectors": one["vectors"] / found["documents"],
        }
        for name, one in found["rows"].items()
    }


def show(found):
    whole = found[TOKENS]
    print(f"| {SOURCE}: {QUERIES} titles, {DOCUMENTS} abstracts | nDCG@10 | vectors | of tokens |")
    print("|---|---|---|---|")
    for name, one in found.items():
        share = 100 * one["vectors"] / whole["vectors"]
        print(f"| {name} | {one['nDCG@10']:.4f} | {one['vectors']:.1f} | {share:.0f} % |")
    kept = [name for name, one in found.items() if one["nDCG@10"] >= whole["nDCG@10"] - LOSS]
    print(f"\nFewest vectors with at most {LOSS} lost: {min(kept, key=lambda name: found[name]['vectors'])}")


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="folder of the collections")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    parser.add_argument("--json", type=Path, help="save what was measured")
    arguments = parser.parse_args()
    arguments.jobs = 1
    for name in (TOKENS, "words 32, long"):
        if not (folder_of(name, arguments.output) / "model").is_dir():
            parser.error(f"{arguments.output} has no trained row {name!r}; run `colberter.py train` first")
    sample(arguments.data, arguments.output)
    train(arguments)
    found = measure(arguments)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    show(found)


if __name__ == "__main__":
    main()
