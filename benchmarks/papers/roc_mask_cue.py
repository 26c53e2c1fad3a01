"""Whether a cross-encoder of `roc.py` takes [MASK] itself for a sign of relevance.

    python -m benchmarks.papers.roc_mask_cue DATA -o RUNS [--rows NAME …]

For questions of nq-qed that no row was trained on, a paragraph that answers and BM25's best four that do not
are scored as they are, and with [MASK] in place of word-pieces: of those that the question has, too, and of
as many others. A model that goes by what a document says loses by either; one that has learnt from documents
with hidden matches that [MASK] stands where a match stood gains by both.
"""

import random
from pathlib import Path

import numpy as np
import torch
from benchmarks.common import folder_of, parser_of
from benchmarks.papers.roc_indexes import opened
from benchmarks.papers.roc_measures import JudgedQueries
from benchmarks.papers.roc_rows import START

from counterpoint.data import open_collection
from counterpoint.encode import load_interactive
from counterpoint.learn.matches import exact_matches
from counterpoint.search import Searcher

ROWS = ("interactive BERT", "interactive BERT + I", "interactive BERT + I, dropped")
OTHERS = 4  # documents a question that do not answer it


def triples(judged, count, output):
    """Question, text and whether it answers: one that does, then those that do not."""
    chosen = random.Random(2).sample(sorted(judged.queries), count)
    with opened(START, judged, output) as (index, _):
        run = Searcher(index).run(judged.of(chosen).queries, 50, workflow="lexical")
    texts = {document.id: document.full_text for document in judged.collection.documents()}
    for query in chosen:
        relevant = {document for document, grade in judged.qrels[query].items() if grade > 0}
        found = [document for document, _ in run[query]]
        right = [document for document in found if document in relevant][:1]
        wrong = [document for document in found if document not in relevant][:OTHERS]
        if right and len(wrong) == OTHERS:
            yield from ((judged.queries[query], texts[d], d in relevant) for d in right + wrong)


def hidden(row, share, matching, tokenizer, draw):
    """A pair with [MASK] in place of a share of the document's matches, or of as many other word-pieces."""
    document = np.flatnonzero(row.texts == 1)
    matches = exact_matches(row.ids[row.texts == 0].tolist(), row.ids, tokenizer.special_ids)
    matches = matches[row.texts[matches] == 1]
    if matching:
        at = matches[draw.random(len(matches)) < share]
    else:
        others = np.setdiff1d(document, matches)
        at = draw.choice(others, min(len(others), max(1, round(share * len(matches)))), replace=False)
    return row.masked(at, tokenizer.mask_id)


@torch.inference_mode()
def scores(model, rows):
    found = [model(model.pad(rows[start : start + 40])) for start in range(0, len(rows), 40)]
    return torch.cat(found).float().numpy()


def main():
    parser = parser_of(__doc__)
    parser.add_argument("data", type=Path, help="folder of the collections")
    parser.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs of roc.py")
    parser.add_argument("--rows", nargs="+", default=ROWS, metavar="NAME")
    parser.add_argument("--questions", type=int, default=100)
    options = parser.parse_args()
    collection = open_collection(options.data / "nq-qed", passage_words=None)
    judged = JudgedQueries("nq-qed", collection, collection.queries("dev"), collection.qrels("dev"))
    pairs = list(triples(judged, options.questions, options.output))
    right = np.array([answers for _, _, answers in pairs])
    print("| | hidden | share | answers it | does not | answer first |\n|---|---|---|---|---|---|")
    for name in options.rows:
        model = load_interactive(folder_of(name, options.output)).setup().eval()
        rows = model.rows([query for query, _, _ in pairs], [text for _, text, _ in pairs])
        plain, draw = scores(model, rows), np.random.default_rng(0)
        cells = f"{plain[right].mean():.2f} | {plain[~right].mean():.2f} | {first(plain):.3f}"
        print(f"| {name} | – | – | {cells} |")
        for matching in (True, False):
            for share in (0.15, 0.5):
                changed = [hidden(row, share, matching, model.backbone.tokenizer, draw) for row in rows]
                now = scores(model, changed)
                gain = now - plain
                what = "matches" if matching else "as many others"
                cells = f"{gain[right].mean():+.2f} | {gain[~right].mean():+.2f} | {first(now):.3f}"
                print(f"| | {what} | {share:g} | {cells} |", flush=True)


def first(values):
    """How often the one that answers is before all others."""
    by_question = values.reshape(-1, 1 + OTHERS)
    return float((by_question[:, 0] > by_question[:, 1:].max(axis=1)).mean())


if __name__ == "__main__":
    main()
