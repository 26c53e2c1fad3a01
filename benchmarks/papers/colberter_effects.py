"""ColBERTer's figure 5: effect sizes of nDCG@10 over collections, unpaired, as the paper takes them.

Lists are condensed where a collection judges documents as not relevant, too, as all of the paper's do.
Elsewhere a condensed list holds relevant documents only, and its nDCG says nothing of what stood between,
so lists are measured as they are.
"""

from dataclasses import replace

from counterpoint.measure import (
    CompareSettings,
    as_markdown,
    compare,
    comparison_tables,
    evaluate,
    synthesise,
)
from counterpoint.plots import forest_plot

STANDALONE = "standalone"  # a dense retriever that is not part of the model; the paper's is TAS-Balanced
MEASURE, CONDENSED = "nDCG@10", "nDCG(judged_only=True)@10"


def values_of(runs, qrels):
    """How one collection is measured, and by system the value of every query.

    Args:
        runs: by system, deep enough to be condensed.
        qrels: judgements.
    """
    condensed = any(grade <= 0 for grades in qrels.values() for grade in grades.values())
    measure = CONDENSED if condensed else MEASURE
    values = {name: dict(evaluate(run, qrels, [measure]).per_query[measure]) for name, run in runs.items()}
    return {"measure": measure, "values": values}


def syntheses_of(found, pairs):
    """A summary by random effects for each pair that was searched on two collections or more.

    Args:
        found: by collection what was measured, `values_of` it under `effects`.
        pairs: of a treatment and a control.
    """
    made = []
    for treatment, control in pairs:
        settings = CompareSettings(baseline=control, effect="unpaired")
        for collection, seen in found.items():
            of = seen["effects"]["values"]
            if treatment in of:
                pair = compare(collection, MEASURE, {n: [of[n]] for n in (control, treatment)}, settings)
                made.append(replace(pair, measured_as=seen["effects"]["measure"]))
    return synthesise(made)


def show_effects(found, pairs):
    """A table a pair."""
    condensed = [name for name, seen in found.items() if seen["effects"]["measure"] == CONDENSED]
    print(f"\n## Effects (figure 5); condensed lists on {', '.join(condensed) or 'no collection'}\n")
    for synthesis in syntheses_of(found, pairs):
        print(as_markdown(comparison_tables(synthesis.comparisons, [synthesis])[-1]), end="\n\n")


def figure5(found, pairs):
    """The forest plot of all pairs, one below the other."""
    return forest_plot(syntheses_of(found, pairs))
