"""What `roc.py` has saved of several seeds, in the form that `roc_universe.py` saves.

Only the collection that was trained on is taken: seeds are compared on its queries, by `roc_seeds.py`.
"""

import sys

from benchmarks.papers.roc_rows import START


def joined(saved):
    """Evaluations by the names of their seeds, as one.

    None if no row that makes vectors was trained. The start, which has no seed, is left out. What BM25 finds
    must be the same in all.
    """
    weights = {
        seed: {row: weight for row, weight in found["weights"].items() if row != START}
        for seed, found in saved.items()
    }
    if not any(weights.values()):
        return None
    measured = {seed: found["collections"][found["trained on"]] for seed, found in saved.items()}
    (first, one), *others = measured.items()
    for seed, other in others:
        if other["systems"]["BM25"] != one["systems"]["BM25"]:
            sys.exit(f"{first} and {seed} differ in queries or in what BM25 finds for them")
    queries = list(one["words"])

    def listed(values):
        return [values[query] for query in queries]

    def of_seed(seed):
        found = measured[seed]
        changed = found["adversarial"]["systems"]
        return {
            "weights": weights[seed],
            "systems": {
                name: {measure: listed(values) for measure, values in of.items()}
                for name, of in found["systems"].items()
            },
            "perturbed": {name: listed(of["RR@10"]) for name, of in changed.items()},
            "shared": found["shared"],
        }

    seeds = {seed: of_seed(seed) for seed in saved}
    name = saved[first]["trained on"]
    return {
        "documents": one["documents"],
        "queries": [f"{name}/{query}" for query in queries],
        "words": listed(one["words"]),
        "changed": one["adversarial"]["changed"],
        "BM25": seeds[first]["systems"]["BM25"],
        "BM25 perturbed": seeds[first]["perturbed"]["BM25"],
        "seeds": seeds,
    }
