"""One large collection of several, and exact scores of all its documents by BM25 and by vectors.

Texts are tokenised and BM25 scores are computed once for all rows. A part is divided by the most that it
could be, as a search does: BM25 by the sum of the query's idf, cosines by 1. A hybrid is the sum of BM25 and
λ cosines over all documents. The first 100 count.
"""

import random
from dataclasses import dataclass, replace

import numpy as np
import torch

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.measure import evaluate
from counterpoint.search import Run

DEPTH, CUTOFF, BATCH = 100, 10, 256
MEASURES = ("AP", "R@100", "nDCG@10", "RR@10")


@dataclass(frozen=True)
class Questions:
    """Queries of the large collection, and their judgements."""

    texts: dict[str, str]
    qrels: dict[str, dict[str, int]]

    def values(self, run, measures=MEASURES):
        """Measure to the values of the queries, in their order."""
        per_query = evaluate(run, self.qrels, list(measures)).per_query
        return {m: [round(float(per_query[m].get(query, 0.0)), 4) for query in self.texts] for m in measures}


def drawn_questions(data, splits, most):
    """At most so many queries of each collection, of the split that `splits` names."""
    texts, qrels = {}, {}
    for name, split in splits.items():
        collection = open_collection(data / name, passage_words=None)
        judged, known = collection.qrels(split), collection.queries(split)
        for query in random.Random(1).sample(sorted(judged), min(most, len(judged))):
            texts[f"{name}/{query}"] = known[query]
            qrels[f"{name}/{query}"] = {f"{name}/{d}": grade for d, grade in judged[query].items()}
    return Questions(texts, qrels)


def all_documents(data, names):
    """The documents of all collections; an id has its collection's name in front."""
    return [
        replace(document, id=f"{name}/{document.id}")
        for name in names
        for document in open_collection(data / name, passage_words=None).documents()
    ]


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def bm25_table(documents, queries, folder):
    """BM25 of each query and document over the most that the query allows; the index is kept."""
    if not (folder / "manifest.json").is_file():
        build_index(iter(documents), None, folder)
    with Index(folder) as index:
        if index.names_of(np.arange(len(index))) != [document.id for document in documents]:
            raise SystemExit(f"{folder} has other documents; choose another --output")
        rows = [index.lexical.scores(text) / (index.lexical.ceiling(text) or 1.0) for text in queries]
    return torch.from_numpy(np.stack(rows).astype(np.float32)).to(device())


class Texts:
    """Texts that are tokenised once, for several models of one tokenizer.

    Args:
        encoder: of one of the models.
        side: "query" or "document".
    """

    def __init__(self, encoder, texts, side):
        rows = encoder.rows(texts, side)
        self.order = sorted(range(len(rows)), key=lambda at: len(rows[at]))
        pieces = [self.order[start : start + BATCH] for start in range(0, len(rows), BATCH)]
        self.batches = [encoder.pad([rows[at] for at in piece], side) for piece in pieces]

    @torch.inference_mode()
    def vectors(self, encoder):
        """A model's pooled vectors, of length 1."""
        where = device()
        encoder.to(where).eval()
        made = []
        for batch in self.batches:
            with torch.autocast(where, torch.bfloat16, enabled=where == "cuda"):
                made.append(encoder(batch.to(where))["mean"].values[:, 0].float())
        vectors = torch.empty(len(self.order), made[0].shape[1], device=where)
        vectors[torch.tensor(self.order, device=where)] = torch.cat(made)
        return vectors


def run_of(scores, queries, names):
    """The first documents of each query; a score of 0 is no answer."""
    best = scores.topk(min(DEPTH, len(names)), dim=1)
    values, places = best.values.cpu().numpy(), best.indices.cpu().numpy()
    return Run(
        {
            query: {names[at]: float(value) for at, value in zip(place, row, strict=True) if value}
            for query, place, row in zip(queries, places, values, strict=True)
        }
    )


def failures(run, qrels):
    """Queries without a relevant document among the first ten."""
    return {
        query
        for query, grades in qrels.items()
        if not any(grades.get(document, 0) > 0 for document, _ in list(run[query])[:CUTOFF])
    }


def tuned(bm25, cosines, questions, names, grid):
    """λ with the highest AP; of equals, the first."""
    values = {}
    for weight in grid:
        run = run_of(bm25 + weight * cosines, questions.texts, names)
        values[weight] = evaluate(run, questions.qrels, ["AP"]).measures["AP"]
    weight = max(values, key=values.get)
    return {"weight": weight, "edge": weight in (grid[0], grid[-1]), "AP": values[weight]}
