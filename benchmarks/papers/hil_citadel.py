"""HIL's table 7: CITADEL and CITADEL-HIL, trained by their recipes and reranking with an index of their own.

Their parts match under keys, so they are no MaxSim of all rows, and `hil.py` scores them by an index instead.
"""

import sys
from dataclasses import replace

from counterpoint.index import Index, build_index
from counterpoint.learn import BM25Negatives
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.recipe import DataSettings, load_recipe
from counterpoint.search import Searcher

CITADELS = ("CITADEL", "CITADEL-HIL")


def citadel(name, budget):
    """The recipe under a budget of `hil_rows`: heads learn, and the backbone unless it is frozen."""
    found = load_recipe(name.lower())
    *fits, training = found.stages
    fits = [replace(fit, documents=fit.documents and budget.fitted) for fit in fits]
    same = {"steps": budget.steps, "batch": budget.batch, "negatives": (BM25Negatives(count=1, depth=50),)}
    if budget.frozen:
        learning = {"remember": 4.0, "lr": 1e-3}
    else:
        learning = {"remember": 0.0, "lr": 2e-5, "learn": ("*",), "lr_factors": {"query.heads.*": 10.0}}
    training = replace(training, **same, **learning, evaluate_every=None, keep="last")
    data = DataSettings(development=None, held_out=0)
    return replace(found, name="row", stages=[*fits, training], data=data, seed=budget.seed)


def reranked(trained, place, documents, judged, first):
    """What the trained ones of the two make of BM25's best documents.

    Args:
        trained: by name, the folder of the run.
        place: folder for their indexes.
        documents: of the collection.
        judged: queries and qrels.
        first: a run of BM25, as deep as is reranked.

    Returns:
        by name: nDCG@10, and `queries`, that of each query.
    """
    queries, qrels = judged
    found = {}
    for name, folder in trained.items():
        model = load_model(folder)
        at = place / name
        if not (at / "manifest.json").is_file():
            print(f"[{name}] ", end="", file=sys.stderr, flush=True)
            build_index(iter(documents), model, at, model.index_settings())
        with Index(at) as index:
            run = Searcher(index, model)(queries, first)
        measured = evaluate(run, qrels, ("nDCG@10",))
        found[name] = {**measured.measures, "queries": dict(measured.per_query["nDCG@10"])}
    return found
