"""ColBERTer's rows over several seeds: differences that its tables 2 to 4 claim, with intervals over seeds.

One evaluation of `colberter.py` for each seed is read. A difference is one of means over the collections.
Last comes figure 5, the summary effect over the collections for each seed.
"""

from statistics import mean

from benchmarks.common import read_json
from benchmarks.papers.colberter_effects import syntheses_of
from benchmarks.papers.colberter_tables import stored
from benchmarks.papers.seeds import print_table, spread, spread_with_interval, t_interval

DENSE, WORDS, BOTH, ALL = "dense", "words-dense", "dense-words", "hybrid"
SMALL, UNI = "words 8, α_CS 0.75, exact", "words 1, α_CS 0.75, exact"
QUESTIONS = {  # (row, workflow) − (row, workflow), fixed before any row was trained with a second seed
    "one vector per word against one per token": (("words 32", BOTH), ("tokens 32", BOTH)),
    "what a gate costs, α_CS ½": (("words 32, α_CS 0.5", BOTH), ("words 32", BOTH)),
    "α_CS ¾": (("words 32, α_CS 0.75", BOTH), ("words 32", BOTH)),
    "α_CS 1": (("words 32, α_CS 1", BOTH), ("words 32", BOTH)),
    "a threshold after training, against tokens": (
        ("words 32, long, α_CS 0.1, gate 1.075", BOTH),
        ("tokens 32, long", BOTH),
    ),
    "fewer vectors against fewer components": (("words 16", BOTH), ("tokens 8", BOTH)),
    "workflow 2 against 3, 8 components": ((SMALL, BOTH), (SMALL, WORDS)),
    "workflow 2 against 3, one component": ((UNI, BOTH), (UNI, WORDS)),
    "the full hybrid against workflow 2, 8 components": ((SMALL, ALL), (SMALL, BOTH)),
    "the full hybrid against workflow 2, one component": ((UNI, ALL), (UNI, BOTH)),
    "both halves against the pooled vector": ((UNI, BOTH), (UNI, DENSE)),
    "without the loss on CLS, the pooled vector": (
        ("tokens 32, fixed, α_CLS 0", DENSE),
        ("tokens 32", DENSE),
    ),
}


def show_seeds(paths, pairs):
    """Print means over seeds, the differences that `QUESTIONS` names, and the effects of pairs of systems."""
    seeds = [read_json(path) for path in paths]
    if len(compared := {tuple(found) for found in seeds}) > 1:
        raise SystemExit(f"the seeds were evaluated on different collections: {sorted(compared)}")
    rows = {row: None for found in seeds for one in found.values() for row in one["rows"]}
    print_table({row: _row(seeds, row) for row in rows}, "row")
    table = {}
    for what, (first, second) in QUESTIONS.items():
        line = {measure: _difference(seeds, first, second, measure) for measure in ("nDCG@10", "R@100")}
        if None not in line.values():
            table[f"{what}: {', '.join(first)} − {', '.join(second)}"] = line
    print("\nDifferences of means over the collections, with 95 % intervals over seeds\n")
    print_table(table, "difference")
    print("\nCandidates of the standalone retriever − the row's own (table 2), nDCG@10\n")
    print_table({row: {"difference": _change(seeds, row)} for row in rows}, "row")
    print("\nSummary effects over the collections (figure 5), by seed, each with its 95 % interval\n")
    effects = [_summaries(found, pairs) for found in seeds]
    names = dict.fromkeys(name for found in effects for name in found)
    print_table({n: {str(i): f.get(n, "") for i, f in enumerate(effects, 1)} for n in names}, "pair")


def value(found, row, workflow, measure):
    """A measure of a row in a workflow, mean over the collections; None where it was not searched."""
    cells = [one["rows"].get(row, {"workflows": {}})["workflows"].get(workflow) for one in found.values()]
    return None if None in cells else mean(cell[measure] for cell in cells)


def _row(seeds, row):
    having = [found for found in seeds if all(row in one["rows"] for one in found.values())]
    line = {
        "seeds": str(len(having)),
        "vectors a document": spread_with_interval([_vectors(found, row) for found in having], 1),
        "bytes a document": spread([stored(found, row) for found in having], 0),
    }
    for workflow in (DENSE, BOTH, "words", WORDS, ALL):
        for measure in ("nDCG@10", "R@100"):
            values = [value(found, row, workflow, measure) for found in having]
            if None not in values:
                line[f"{workflow}: {measure}"] = spread(values)
    return line


def _vectors(found, row):
    """Vectors of words or tokens per document, over all collections."""
    cells = found.values()
    return sum(one["rows"][row]["vectors"] for one in cells) / sum(one["documents"] for one in cells)


def _difference(seeds, first, second, measure):
    return _gap([[value(found, *one, measure) for one in (first, second)] for found in seeds])


def _change(seeds, row):
    """What a row gains if it refines the standalone retriever's candidates in place of its own."""
    return _gap([[_refined(found, row), value(found, row, BOTH, "nDCG@10")] for found in seeds])


def _refined(found, row):
    cells = [one["rows"].get(row) for one in found.values()]
    return None if None in cells else mean(cell["refined"]["nDCG@10"] for cell in cells)


def _gap(ends):
    gaps = [one - other for one, other in ends if None not in (one, other)]
    if len(gaps) < 2:
        return None
    low, high = t_interval(gaps)
    return f"{mean(gaps):.3f} [{low:.3f}, {high:.3f}]"


def _summaries(found, pairs):
    """The summary effect of each pair in one evaluation."""
    made = {f"{one.treatment} − {one.control}": one.summary for one in syntheses_of(found, pairs)}
    return {
        n: f"{one.estimate:+.3f} [{one.interval.low:+.3f}, {one.interval.high:+.3f}]"
        for n, one in made.items()
    }
