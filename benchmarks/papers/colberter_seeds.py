"""ColBERTer's rows over several seeds: differences that its tables 2 to 4 claim, with intervals over seeds.

One evaluation of `colberter.py` for each seed is read. A difference is one of means over the collections.
"""

from statistics import mean

from benchmarks.common import read_json
from benchmarks.papers.colberter_tables import stored
from benchmarks.papers.seeds import print_table, spread, t_interval

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


def show_seeds(paths):
    """Print means over seeds, then the differences that `QUESTIONS` names."""
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


def value(found, row, workflow, measure):
    """A measure of a row in a workflow, mean over the collections; None where it was not searched."""
    cells = [one["rows"].get(row, {"workflows": {}})["workflows"].get(workflow) for one in found.values()]
    return None if None in cells else mean(cell[measure] for cell in cells)


def _row(seeds, row):
    having = [found for found in seeds if all(row in one["rows"] for one in found.values())]
    line = {"seeds": str(len(having)), "bytes a document": spread([stored(f, row) for f in having], 0)}
    for workflow in (DENSE, BOTH, "words", WORDS, ALL):
        for measure in ("nDCG@10", "R@100"):
            values = [value(found, row, workflow, measure) for found in having]
            if None not in values:
                line[f"{workflow}: {measure}"] = spread(values)
    return line


def _difference(seeds, first, second, measure):
    ends = [[value(found, *one, measure) for one in (first, second)] for found in seeds]
    gaps = [one - other for one, other in ends if None not in (one, other)]
    if len(gaps) < 2:
        return None
    low, high = t_interval(gaps)
    return f"{mean(gaps):.3f} [{low:.3f}, {high:.3f}]"
