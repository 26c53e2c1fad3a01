"""Tables of what `roc.py` measured, with the figures of Lee et al. 2023 next to them."""

from statistics import mean

from benchmarks.papers.roc_claims import apart, perturbed, quality, shares, verdicts
from benchmarks.papers.roc_figures import print_figures
from benchmarks.papers.roc_rows import (
    ALIKE,
    CLEAR,
    DROPPED,
    HEAVY,
    HIDDEN,
    NAIVE,
    OURS,
    PAIRS,
    SCALED_CLEAR,
    START,
    VECTORS,
)
from benchmarks.papers.roc_statistics import ALPHA, pair_tests, tests

from counterpoint.measure import Cell, Table, as_markdown

ROWS = (START, *VECTORS)
TABLE1 = {CLEAR: (0.05, 0.51), OURS: (0.12, 1.19)}  # RoC, R@100, over the naive sum
TABLE3 = {  # MAP and R@100 on Natural Questions, on coCondenser; * 100
    "BM25": (26.59, 73.70),
    NAIVE: (34.32, 89.03),
    f"BM25 + {NAIVE}": (34.47, 88.94),
    f"BM25 + {CLEAR}": (34.93, 89.45),
    f"BM25 + {OURS}": (35.97, 90.13),
}
TABLE4 = {  # on BERT-base: R@20 on Natural Questions, MAP and nDCG@20 on Robust04
    NAIVE: (78.92, 33.65, 49.32),
    "E": (80.87, 35.54, 52.19),
    "I": (79.24, 34.08, 51.42),
    OURS: (81.28, 36.43, 53.27),
}
TABLE5 = {
    NAIVE: (0.32, 34.47),
    CLEAR: (0.37, 34.93),
    "E": (0.42, 34.94),
    "I": (0.38, 35.62),
    OURS: (0.47, 35.97),
}
TABLE6 = {"SparTerm": 26.33, "SparTerm + I": 26.78, "interactive BERT": 41.76, "interactive BERT + I": 42.20}
LETTERS, DAGGER = {NAIVE: "n", CLEAR: "c"}, {NAIVE: "†"}  # what a hybrid differs from significantly
DAGGERS = (
    "†, −†: the hybrid of CLEAR, E, I or I + E is better, worse than the naive sum, tested as in table 3"
)
FIGURE1 = {NAIVE: (15.2, 32.4, 46.5), CLEAR: (20.0, 34.0, 41.8)}  # |D − S|, |D ∩ S|, failures; % of queries


def shown(number, paper=None, form=".2f"):
    return "–" if number is None else f"{number:{form}}" + ("" if paper is None else f" ({paper:{form}})")


def told(title, header, rows, *notes):
    print(f"\n{as_markdown(Table(title, tuple(header), rows, notes))}")


# -- tables ------------------------------------------------------------------------------------------------


def show(found):
    """Every table that there is something for, then what becomes of the paper's claims."""
    own, others = apart(found)
    print(f"Trained on {found['trained on']}. Figures × 100 but for RoC; in brackets the paper's.")
    rows = [row for row in ROWS if row in found["weights"]]
    _weights(found, rows)
    if own:
        _table1(found, own, rows)
    _table3(found, rows)
    _table4(found, own, others, rows)
    _table5(found, own, others, rows)
    for name in own:
        measured = found["collections"][name]
        if "pairs" in measured:
            _table6(measured["pairs"])
        print_figures(name, measured, rows)
        if "adversarial" in measured:
            _figure5(measured, rows)
    verdicts(found)


def _weights(found, rows):
    weights = {row: found["weights"][row] for row in rows}
    chosen = [[row, f"{said['weight']:.1f}{', edge' * said['edge']}"] for row, said in weights.items()]
    edge = any(said["edge"] for said in weights.values())
    note = "edge: of the grid; the best λ may lie beyond." if edge else "None is at the edge of the grid."
    told(
        "λ, chosen by AP on training queries held out; each part over the most it could be",
        ["", "λ"],
        chosen,
        note,
    )


def _table1(found, own, rows):
    if NAIVE not in rows:
        return
    base = shares(found, own, NAIVE), quality(found, own, f"BM25 + {NAIVE}", "R@100")
    lines = []
    for row in (CLEAR, SCALED_CLEAR, "E", HEAVY, "I", DROPPED, OURS):
        if row in rows:
            ours, recall = shares(found, own, row), quality(found, own, f"BM25 + {row}", "R@100")
            paper = TABLE1.get(row, (None, None))
            sets = [shown(ours[at] - base[0][at], form="+.2f") for at in (0, 1)]
            roc = shown(ours[3] - base[0][3], paper[0], "+.3f")
            raised = marks(found, own, f"BM25 + {row}", "R@100", DAGGER)
            lines.append([row, *sets, roc, Cell(shown(recall - base[1], paper[1], "+.2f"), raised)])
    header = ["", "|D − S|", "|D ∩ S|", "RoC", "R@100 of the hybrid"]
    title = f"Table 1: {own[0]}, differences to the naive sum; sets in % of the queries"
    told(title, header, lines, f"{DAGGERS}.")


def _table3(found, rows):
    for name, measured in found["collections"].items():
        systems = ["BM25", *(system for row in rows for system in (row, f"BM25 + {row}"))]
        best = {
            m: max(quality(found, [name], s, m) for s in systems) for m in ("AP", "R@100", "nDCG@10", "RR@10")
        }
        lines = []
        for system in systems:
            paper = TABLE3.get(system, (None, None)) if name == found["trained on"] else (None, None)
            cells = []
            for measure, said in zip(best, (*paper, None, None), strict=True):
                value = quality(found, [name], system, measure)
                raised = marks(found, [name], system, measure, LETTERS)
                cells.append(Cell(shown(value, said), raised, value == best[measure]))
            lines.append([system, *cells])
        told(f"Table 3: {name}, {measured['queries']} queries", ["", *best], lines)
    print(
        "\nn, c: better than the naive sum, than CLEAR's hybrid; −n, −c: worse "
        "(two-sided paired t-test, Bonferroni over the hybrids and both of these, p < 0.05)."
    )


def marks(found, names, system, measure, letters):
    """The letters of a hybrid that differs significantly from the naive sum or from CLEAR's."""
    return " ".join(
        ("" if gap > 0 else "−") + letters[base]
        for (row, base), (gap, p) in tests(found, names, measure).items()
        if f"BM25 + {row}" == system and base in letters and p < ALPHA
    )


def _table4(found, own, others, rows):
    lines = []
    for row in (NAIVE, CLEAR, SCALED_CLEAR, "E", HEAVY, "I", DROPPED, OURS):
        if row in rows:
            asked = [(own, "R@20"), (others, "AP"), (others, "nDCG@20")]
            paper = TABLE4.get(row, (None,) * 3)
            cells = [
                Cell(
                    shown(quality(found, names, f"BM25 + {row}", measure), said),
                    marks(found, names, f"BM25 + {row}", measure, DAGGER),
                )
                for (names, measure), said in zip(asked, paper, strict=True)
            ]
            lines.append([f"BM25 + {row}", *cells])
    header = ["", f"{''.join(own) or 'trained on'}: R@20", "others: AP", "others: nDCG@20"]
    title = "Table 4: ablations of the hybrid (the paper: DPR, Natural Questions, Robust04)"
    told(title, header, lines, f"{DAGGERS}, over the queries of all of them together.")


def _table5(found, own, others, rows):
    columns = ["|D − S|", "|D ∩ S|", "failures", "RoC", "RoC of documents", "RoC@1", "hybrid AP"]
    for names, where in ((own, "".join(own)), (others, "means of the others")):
        lines = []
        for row in rows if names else ():
            paper = TABLE5.get(row, (None, None)) if names == own else (None, None)
            figure = FIGURE1.get(row, (None,) * 3) if names == own else (None,) * 3
            sets = shares(found, names, row)
            ratios = map(shown, sets[3:], (paper[0], None, None), (".3f",) * 3)
            hybrid = shown(quality(found, names, f"BM25 + {row}", "AP"), paper[1])
            raised = marks(found, names, f"BM25 + {row}", "AP", DAGGER)
            lines.append([row, *map(shown, sets[:3], figure), *ratios, Cell(hybrid, raised)])
        if lines:
            title = f"Table 5, figures 1 and 3: {where}, first 10 documents, sets in % of the queries"
            told(title, ["", *columns], lines, f"RoC@1: of the first document alone. {DAGGERS}.")


def _table6(measured):
    systems, lines = measured["systems"], []
    tested = pair_tests(systems)
    for plain in PAIRS:
        for name in (plain, *(plain + hidden for hidden in HIDDEN)):
            if name in systems:
                figures = [
                    100 * mean(systems[system][measure].values())
                    for system in (name, f"BM25 + {name}")
                    for measure in ("AP", "nDCG@20")
                ]
                p = shown(tested[name][1], form=".3f") if name in tested else ""
                lines.append([name, shown(figures[0], TABLE6.get(name)), *map(shown, figures[1:]), p])
    bm25 = (100 * mean(systems["BM25"][measure].values()) for measure in ("AP", "nDCG@20"))
    note = "BM25 itself: AP {:.2f}, nDCG@20 {:.2f}. In brackets MAP on Natural Questions. ".format(*bm25)
    note += "p: of AP, two-sided paired t-test, Bonferroni over all of them. Dropped: taken out, not masked."
    title = f"Table 6: BM25's first 50 in another order, {measured['queries']} queries"
    header = ["", "AP", "nDCG@20", "with BM25: AP", "with BM25: nDCG@20", "p against without"]
    told(title, header, lines, note)


def _figure5(measured, rows):
    lines = []
    for system in ("BM25", *(f"BM25 + {row}" for row in rows)):
        own = perturbed(measured, system)
        alike = own if system == "BM25" else perturbed(measured, system + ALIKE)
        lines.append([system, *_fall(own), *_fall(alike)])
    counts = measured["adversarial"]["changed"]
    note = (
        f"{counts['changed']} of {counts['documents']} relevant documents changed; "
        f"{counts['replaced']} of {counts['matched']} words that match a query became synonyms."
    )
    columns = ["original", "perturbed", "apart"]
    header = ["", *columns, *(f"{column}{ALIKE}" for column in columns)]
    told("Figure 5: RR@10, as they are and perturbed", header, lines, note)


def _fall(sides):
    if sides is None:
        return [shown(None)] * 3
    before, after = sides
    return [shown(before), shown(after), shown(after - before, form="+.2f")]
