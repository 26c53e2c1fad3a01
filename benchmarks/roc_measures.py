"""What `roc.py` measures of rows that make vectors: BM25, a row's vectors and both, on one collection."""

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from statistics import mean

import numpy as np
from hil import folder_of
from roc_rows import NAIVE, START, Budget, rows

from counterpoint.data import Collection
from counterpoint.encode import DualEncoder, Encoder, TextInput
from counterpoint.index import Index, build_index
from counterpoint.measure import (
    Adversary,
    Tally,
    evaluate,
    perturb,
    relevant_documents,
    share_of,
    tune_weight,
)
from counterpoint.model import Model, load_model
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Ragged

MEASURES = ("AP", "R@20", "R@100", "nDCG@10", "nDCG@20", "RR@10")
GRID = tuple(at / 10 for at in range(21))  # the paper's
DEPTH, TUNED = 1000, 200  # documents a query; where λ is chosen
CUTOFF = 10  # of RoC
WEIGHTS = {"lexical": 1.0, "mean": 1.0}


@dataclass(frozen=True)
class Material:
    """A collection, what is asked of it, and the lowest grade that is relevant there."""

    name: str
    collection: Collection
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    lowest: int = 1

    def of(self, queries):
        """The same collection with some of the queries."""
        texts = {query: self.queries[query] for query in queries}
        return replace(self, queries=texts, qrels={query: self.qrels[query] for query in queries})

    def asked(self, measure):
        """A measure with the lowest relevant grade; nDCG takes grades as they are."""
        base, at, k = measure.partition("@")
        return measure if self.lowest == 1 or base == "nDCG" else f"{base}(rel={self.lowest}){at}{k}"

    def values(self, run):
        """Measure to query to value."""
        report = evaluate(run, self.qrels, [self.asked(measure) for measure in MEASURES])
        return {measure: dict(report.per_query[self.asked(measure)]) for measure in MEASURES}


class Known:
    """A model that takes the vectors of texts which an index has from there, and makes the others."""

    def __init__(self, model, index, texts):
        self.model, self.index = model, index
        self.places = {text: at for at, text in enumerate(texts)}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def encode_document(self, texts):
        made = iter(self.model.encode_document([text for text in texts if text not in self.places])["mean"])
        found = [
            self.index.take("mean", np.array([self.places[text]]))[0] if text in self.places else next(made)
            for text in texts
        ]
        return {"mean": Ragged.from_list(found, dim=self.model.sets["mean"].dim)}


def row_model(row, output):
    """A row's model, for documents of the length that abstracts have; `start` is what all rows start from."""
    model = rows(Budget())[NAIVE].model if row == START else load_model(folder_of(row, output))
    query = model.encoder.query
    encoder = Encoder(query.backbone, dict(query.heads), TextInput(64), TextInput(256))
    return Model(DualEncoder(encoder), search={"weights": WEIGHTS}, codec="float16").setup().eval()


@contextmanager
def indexed(row, material, output, original=None):
    """The index of a collection with a row's model, built where it is missing, and the model."""
    model = row_model(row, output)
    folder = output / "indexes" / material.name / folder_of(row, output).name
    if not (folder / "manifest.json").is_file():
        documents, settings = material.collection.documents(), model.index_settings()
        if original is None:
            build_index(documents, model, folder, settings)
        else:
            with indexed(row, original, output) as (index, _):
                texts = [document.full_text for document in original.collection.documents()]
                build_index(documents, Known(model, index, texts), folder, settings)
    with Index(folder) as index:
        yield index, model


def tuned(index, model, material):
    """λ, and AP at each weight of the grid."""
    found = tune_weight(
        Searcher(index, model), material.queries, material.qrels, GRID, "mean", measure="AP", depth=TUNED
    )
    values = {f"{weight:g}": value for weight, value in found.values.items()}
    return {"weight": found.weight, "edge": found.at_the_edge, "values": values}


def searched(row, weight, material, output, original=None):
    """Runs of BM25, of a row's vectors alone and of BM25 with λ times these, of the union of both lists."""
    with indexed(row, material, output, original) as (index, model):
        weights = {**WEIGHTS, "mean": weight}
        searcher = Searcher(index, model, replace(SearchSettings.for_index(index), weights=weights))
        workflows = {"BM25": "lexical", row: "dense", f"BM25 + {row}": "hybrid"}
        return {
            system: searcher.run(material.queries, DEPTH, workflow=workflow)
            for system, workflow in workflows.items()
        }


def evaluate_rows(material, weights, output):
    """Every row on a collection: values of each query, and what its vectors answer beside BM25."""
    systems, shared = {}, {}
    for row, found in weights.items():
        runs = searched(row, found["weight"], material, output)
        systems |= {system: material.values(run) for system, run in runs.items()}
        sides = {"D": runs[row], "S": runs["BM25"]}
        shared[row] = share_of(sides, material.qrels, CUTOFF, material.lowest).to_dict()
    facts = relevant_documents(material.collection.documents(), material.qrels, material.lowest)
    return {
        "documents": sum(1 for _ in material.collection.documents()),
        "queries": len(material.queries),
        "words": {query: mean(f.words for f in found) if found else None for query, found in facts.items()},
        "systems": systems,
        "shared": shared,
    }


def evaluate_adversarial(material, weights, output, thesaurus):
    """The same where relevant documents have synonyms in place of their queries' words (figure 5)."""
    adversary = Adversary(material.queries, material.qrels, thesaurus, relevant_from=material.lowest)
    changed = replace(
        material,
        name=f"{material.name}-adversarial-{len(material.queries)}",
        collection=perturb(material.collection, adversary, Tally()),
    )
    systems = {}
    for row, found in weights.items():
        runs = searched(row, found["weight"], changed, output, original=material)
        systems |= {system: changed.values(run) for system, run in runs.items()}
    tally = Tally()
    for document in material.collection.documents():  # counted apart, since the indexes may have been there
        adversary.change(document, tally)
    return {"changed": asdict(tally), "systems": systems}
