"""What `isotropy_sources.py` draws of collections, and its hidden states and scores on the device."""

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from counterpoint.data import open_collection
from counterpoint.encode.batching import token_batches
from counterpoint.learn import DevelopmentSet, first_stage
from counterpoint.measure import evaluate
from counterpoint.search import Run

TRAINING, HELD_OUT, TEST = 1600, 100, 150  # queries of a source; of other collections, all test queries
DOCUMENTS, FITTED = 2000, 5000  # searched, of a collection; that maps may be fitted to, of a source
DEPTH = 100  # documents of BM25 that are reranked
BUDGET = 16_384  # positions encoded at a time
TOGETHER = 8  # queries scored at a time
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# -- texts ----------------------------------------------------------------------------------------------


@dataclass
class Part:
    """Some queries of a collection in a fixed order, their judgements, and BM25's best documents of each."""

    queries: dict
    qrels: dict
    first: dict


@dataclass
class Drawn:
    """A sample of a collection, the same in every run.

    Attributes:
        texts: documents: those that are judged for a query drawn, then others up to `DOCUMENTS`.
        parts: "test", and of a source "dev" (held out) and "train".
        fit: texts of documents drawn from the whole collection, whether judged or not.
    """

    name: str
    texts: dict
    parts: dict
    fit: list

    @cached_property
    def place(self):
        return {document: at for at, document in enumerate(self.texts)}

    def trained(self):
        """Places of the documents that are judged for training queries."""
        found = {document for grades in self.parts["train"].qrels.values() for document in grades}
        return sorted(self.place[document] for document in found)


def draw(path, source):
    """Draw from a collection; a source without a split `test` is tested on `dev`."""
    collection, random = open_collection(path, passage_words=None), np.random.default_rng(0)
    every = {document.id: document.full_text for document in collection.documents()}
    test = "test" if "test" in collection.splits else "dev"
    drawn = {"test": some(collection, test, TEST if source else None, random)}
    if source:
        queries, qrels = some(collection, "train", TRAINING + HELD_OUT, random)
        names = list(queries)
        for part, kept in (("dev", names[:HELD_OUT]), ("train", names[HELD_OUT:])):
            drawn[part] = {name: queries[name] for name in kept}, {name: qrels[name] for name in kept}
    order = [list(every)[at] for at in random.permutation(len(every)).tolist()]
    judged = {document for _, qrels in drawn.values() for grades in qrels.values() for document in grades}
    ids = [document for document in order if document in judged]
    ids += [document for document in order if document not in judged][: max(0, DOCUMENTS - len(ids))]
    texts = {document: every[document] for document in ids}
    parts = {part: Part(*found, candidates(*found, texts)) for part, found in drawn.items()}
    return Drawn(path.name, texts, parts, [every[document] for document in order[:FITTED]])


def some(collection, split, count, random):
    """Queries with a relevant document, in a random order, and their judgements."""
    queries, qrels = collection.queries(split), collection.qrels(split)
    judged = sorted(query for query, grades in qrels.items() if any(grade > 0 for grade in grades.values()))
    kept = [judged[at] for at in random.permutation(len(judged)).tolist()][:count]
    return {query: queries[query] for query in kept}, {query: qrels[query] for query in kept}


def candidates(queries, qrels, texts):
    """BM25's best documents of each query."""
    run = first_stage(DevelopmentSet(queries, texts, qrels), DEPTH)
    return {query: [document for document, _ in run[query]] for query in queries}


def write(drawn, folder):
    """A source's documents and training queries as a collection, and its triples as n-way lists.

    The negatives of a list are BM25's best documents, found once for all rows.
    """
    folder.mkdir(parents=True, exist_ok=True)
    train, triples = drawn.parts["train"], folder.with_suffix(".jsonl")
    lines(folder / "corpus.jsonl", [{"_id": name, "text": text} for name, text in drawn.texts.items()])
    lines(folder / "queries.jsonl", [{"_id": name, "text": text} for name, text in train.queries.items()])
    lists = []
    for query, grades in train.qrels.items():
        negatives = [document for document in train.first[query] if document not in grades]
        lists += [[query, document, *negatives] for document, grade in grades.items() if grade > 0]
    lines(triples, lists)
    return folder, triples


def lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


# -- vectors --------------------------------------------------------------------------------------------


@dataclass
class Rows:
    """Vectors of many texts, one text's below the other's."""

    values: torch.Tensor
    lengths: torch.Tensor

    @cached_property
    def places(self):
        """Of each text its rows, padded with the last one, and which of them are real."""
        at = torch.arange(int(self.lengths.max()), device=self.lengths.device)
        start = self.lengths.cumsum(0) - self.lengths
        return start[:, None] + at.minimum(self.lengths[:, None] - 1), at < self.lengths[:, None]

    def take(self, texts):
        places, real = self.places
        chosen = torch.as_tensor(texts, device=self.values.device)
        return Rows(self.values[places[chosen][real[chosen]]], self.lengths[chosen])

    def means(self):
        """The mean of each text's rows, as texts of one row."""
        places, real = self.places
        found = [
            self.values[at].float().masked_fill(~kept[..., None], 0).sum(1)
            for at, kept in zip(places.split(512), real.split(512), strict=True)
        ]
        return Rows(torch.cat(found) / self.lengths[:, None], torch.ones_like(self.lengths))

    def unit(self):
        return Rows(torch.nn.functional.normalize(self.values.float(), dim=1), self.lengths)


@torch.inference_mode()
def states(encoder, read, side):
    """Hidden states of tokenised texts, in half precision, of all their positions."""
    found = [None] * len(read)
    for batch in token_batches([len(row) for row in read], BUDGET):
        tokens = encoder.pad([read[at] for at in batch], side).to(DEVICE)
        for at, values in zip(batch, encoder.backbone(tokens), strict=True):
            found[at] = values[: len(read[at])].half()
    return Rows(torch.cat(found), torch.tensor([len(rows) for rows in found], device=DEVICE))


@torch.inference_mode()
def scores(queries, documents):
    """For every query and document, the sum over the query's rows of the highest product."""
    places, real = documents.places
    made, owners = [], torch.arange(len(queries.lengths), device=queries.values.device)
    owners = owners.repeat_interleave(queries.lengths)
    for start in range(0, len(queries.lengths), TOGETHER):
        chosen = (owners >= start) & (owners < start + TOGETHER)
        products = documents.values @ queries.values[chosen].T
        best = products[places].masked_fill(~real[..., None], -torch.inf).amax(1)
        of_query = owners[chosen][:, None] == torch.arange(start, start + TOGETHER, device=owners.device)
        made.append(best @ of_query.float())
    return torch.cat(made, 1)[:, : len(queries.lengths)].T


def ndcg(drawn, part, queries, documents):
    """nDCG@10 of each query of a part after reranking, in its order."""
    found, part = scores(queries, documents).cpu().numpy(), drawn.parts[part]
    run = {
        query: {document: float(found[at, drawn.place[document]]) for document in part.first[query]}
        for at, query in enumerate(part.queries)
    }
    report = evaluate(Run(run), part.qrels, ("nDCG@10",))
    return [round(report.per_query["nDCG@10"][query], 4) for query in part.queries]
