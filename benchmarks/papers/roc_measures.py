"""What `roc.py` measures of rows that make vectors: BM25, a row's vectors and both, on one collection."""

from dataclasses import asdict, dataclass, replace
from statistics import mean

from benchmarks.papers.roc_indexes import WEIGHTS, index_changed, index_rows, opened
from benchmarks.papers.roc_rows import ALIKE, NAIVE, START

from counterpoint.data import Collection
from counterpoint.measure import (
    Adversary,
    Tally,
    evaluate,
    perturb,
    relevant_documents,
    share_of,
    tune_weight,
)
from counterpoint.search import Searcher, SearchSettings

MEASURES = ("AP", "R@20", "R@100", "nDCG@10", "nDCG@20", "RR@10")
GRID = tuple(at / 10 for at in range(21))  # the paper's
DEPTH, TUNED = 1000, 200  # documents a query; where λ is chosen
CUTOFF = 10  # of RoC


@dataclass(frozen=True)
class JudgedQueries:
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


def tuned(row, judged, output):
    """λ of a row, and AP at each weight of the grid."""
    with opened(row, judged, output) as (index, model):
        searcher, asked = Searcher(index, model), (judged.queries, judged.qrels)
        found = tune_weight(searcher, *asked, GRID, "mean", measure="AP", depth=TUNED)
    values = {f"{weight:g}": value for weight, value in found.values.items()}
    return {"weight": found.weight, "edge": found.at_the_edge, "values": values}


def searched(row, weights, judged, output):
    """Runs of BM25, of a row's vectors alone and of BM25 with λ times these, of the union of both lists.

    And that sum again with the naive sum's λ, which all rows then have alike.
    """
    own, alike = (weights[name]["weight"] for name in (row, NAIVE if NAIVE in weights else START))
    systems = {
        "BM25": ("lexical", own),
        row: ("dense", own),
        f"BM25 + {row}": ("hybrid", own),
        f"BM25 + {row}{ALIKE}": ("hybrid", alike),
    }
    with opened(row, judged, output) as (index, model):
        plain, found = SearchSettings.for_index(index), {}
        for system, (workflow, weight) in systems.items():
            settings = replace(plain, weights={**WEIGHTS, "mean": weight})
            found[system] = Searcher(index, model, settings).run(judged.queries, DEPTH, workflow=workflow)
        return found


def evaluate_rows(judged, weights, output):
    """Every row on a collection: values of each query, and how its vectors' answers and BM25's overlap."""
    index_rows(weights, judged, output)
    systems, shared = {}, {}
    for row in weights:
        runs = searched(row, weights, judged, output)
        systems |= {system: judged.values(run) for system, run in runs.items()}
        sides = {"D": runs[row], "S": runs["BM25"]}
        shared[row] = share_of(sides, judged.qrels, CUTOFF, judged.lowest).to_dict()
    facts = relevant_documents(judged.collection.documents(), judged.qrels, judged.lowest)
    return {
        "documents": sum(1 for _ in judged.collection.documents()),
        "queries": len(judged.queries),
        "words": {query: mean(f.words for f in found) if found else None for query, found in facts.items()},
        "systems": systems,
        "shared": shared,
    }


def evaluate_adversarial(judged, weights, output, thesaurus):
    """The same where relevant documents have synonyms in place of their queries' words (figure 5)."""
    adversary = Adversary(judged.queries, judged.qrels, thesaurus, relevant_from=judged.lowest)
    changed = replace(
        judged,
        name=f"{judged.name}-adversarial-{len(judged.queries)}",
        collection=perturb(judged.collection, adversary, Tally()),
    )
    index_changed(weights, changed, output, original=judged)
    systems = {}
    for row in weights:
        runs = searched(row, weights, changed, output)
        systems |= {system: changed.values(run) for system, run in runs.items()}
    tally = Tally()
    for document in judged.collection.documents():  # counted apart, since the indexes may have been there
        adversary.change(document, tally)
    return {"changed": asdict(tally), "systems": systems}
