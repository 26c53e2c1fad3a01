"""RoC's claims over seeds: means with ranges and intervals, differences, verdicts.

These are of what `roc_universe.py` has saved, or `roc.py` of several seeds (`roc_joined.py`).

The comparisons are fixed: `QUESTIONS` for values of queries, `RATIOS` for RoC, which is no mean over queries.
RoC's interval of one seed is of resampled queries; over seeds, Student's t.
"""

import numpy as np
from benchmarks.papers.roc_claims import verdicts
from benchmarks.papers.roc_rows import ALIKE, CLEAR, EMBEDDING, NAIVE, OURS, SCALED_CLEAR, VECTORS
from benchmarks.papers.roc_statistics import draws, rank_correlation
from benchmarks.papers.seeds import differences, print_table, spread_with_interval, t_interval

HYBRID = {row: f"BM25 + {row}" for row in VECTORS}
QUESTIONS = {
    "I + E and the naive sum": (OURS, NAIVE),
    "I + E and CLEAR": (OURS, CLEAR),
    "I + E and CLEAR on 20 cosines": (OURS, SCALED_CLEAR),
    "E and I": ("E", "I"),
    "E and the naive sum": ("E", NAIVE),
    "I and the naive sum": ("I", NAIVE),
    "CLEAR and the naive sum": (CLEAR, NAIVE),
}
RATIOS = (*QUESTIONS.values(), ("E", CLEAR), ("I", CLEAR), (OURS, "E"), (OURS, "I"))
COLLECTION = "all collections"


def show_seeds(saved):
    """Print everything that rows and seeds are there for."""
    seeds = saved["seeds"]
    print(f"{saved['documents']} documents, {len(saved['queries'])} test queries, seeds {', '.join(seeds)}\n")
    if "start" in saved:
        _start(saved["start"])
    groups = sorted({name.partition("/")[0] for name in saved["queries"]})
    for group in (None, *groups) if len(groups) > 1 else groups:
        print(f"\n{group or COLLECTION}\n")
        print_table({"BM25": _bm25(saved, group)} | _rows(saved, group), "row")
    for title, values in _measured(saved).items():
        print(f"\n{title}\n")
        print_table(differences(values, _pairs(values)), "difference")
    print("\nRoC@10\n")
    print_table(_ratios(saved), "difference")
    _correlations(saved)
    for seed in seeds:
        print(f"\nSeed {seed}")
        verdicts(found_of(saved, seed))


def _start(start):
    """Which start was chosen, and by what."""
    print_table({str(fresh): shares for fresh, shares in start["tried"].items()}, "new layers")
    met = "meets the rule" if start["met"] else "no candidate meets the rule"
    print(f"\nFailures on {start['queries']} training queries held out; BM25 alone {start['BM25']:.3f}.")
    print(f"Chosen: {start['new layers']} new layers, {met}.\n")


# -- means -------------------------------------------------------------------------------------------------


def sets(d, s, drawn=None):
    """|D − S|, |D ∩ S| and failures as shares of the queries, and RoC; of each set of queries in `drawn`."""
    drawn = np.ones((1, len(d))) if drawn is None else drawn
    alone, both, failures = (drawn @ part.astype(float) for part in (d & ~s, d & s, ~(d | s)))
    answered = alone + both
    roc = alone / np.where(answered, answered, np.nan)
    return [part / drawn.sum(1) for part in (alone, both, failures)] + [roc]


def answered(values, k=10):
    """Which queries have a relevant document among the first k, by RR@10 with four digits."""
    return np.array(values) * k > 1 - 1e-2


def within(saved, group):
    """Which queries are of a collection."""
    names = (name.partition("/")[0] for name in saved["queries"])
    return np.array([group in (None, name) for name in names])


def _bm25(saved, group):
    kept = within(saved, group)
    values = {measure: np.array(found)[kept] for measure, found in saved["BM25"].items()}
    answers = answered(values["RR@10"]).mean()
    fall = values["RR@10"].mean() - np.array(saved["BM25 perturbed"])[kept].mean()
    row = {"hybrid AP": 100 * values["AP"].mean(), "hybrid R@100": 100 * values["R@100"].mean()}
    return row | {"failures": f"{1 - answers:.3f} alone", "RR@10 lost": f"{100 * fall:.1f}"}


def _rows(saved, group):
    kept = within(saved, group)
    rows = {}
    for row in VECTORS:
        cells = [_cell(saved, seed, row, kept) for seed in saved["seeds"].values() if row in seed["weights"]]
        if cells:
            rows[row] = {"seeds": str(len(cells))}
            rows[row] |= {
                what: spread_with_interval([cell[what] for cell in cells], _digits(what)) for what in cells[0]
            }
    return rows


def _digits(what):
    return 3 if what.startswith(("RoC", "fail", "dense fail", "D ")) else 1


def _cell(saved, seed, row, kept):
    """Figures of a row with one seed, on some of the queries."""
    systems = seed["systems"]

    def mean(system, measure):
        return 100 * float(np.array(systems[system][measure])[kept].mean())

    d, s = (np.array(side["RR@10"])[kept] for side in (systems[row], saved["BM25"]))
    alone, both, failures, roc = (float(part[0]) for part in sets(answered(d), answered(s)))
    first = float(sets(answered(d, 1), answered(s, 1))[3][0])
    cell = {
        "λ": seed["weights"][row]["weight"],
        "dense AP": mean(row, "AP"),
        "hybrid AP": mean(HYBRID[row], "AP"),
        f"hybrid AP{ALIKE}": mean(HYBRID[row] + ALIKE, "AP"),
        "hybrid R@100": mean(HYBRID[row], "R@100"),
        "D − S": alone,
        "D ∩ S": both,
        "failures": failures,
        "dense failures": 1 - alone - both,
        "RoC@10": roc,
        "RoC@1": first,
    }
    for end in ("", ALIKE):
        system = HYBRID[row] + end
        before, after = systems[system]["RR@10"], seed["perturbed"][system]
        cell[f"RR@10 lost{end}"] = 100 * float((np.array(before) - np.array(after))[kept].mean())
    return cell


# -- differences -------------------------------------------------------------------------------------------


def _measured(saved):
    """Title to the values of each query, by row and seed."""
    names = saved["queries"]
    found = {}
    bm25 = answered(saved["BM25"]["RR@10"])
    for number, seed in saved["seeds"].items():
        for row in seed["weights"]:
            systems, perturbed = seed["systems"], seed["perturbed"]
            values = {"AP of the vectors": systems[row]["AP"]}
            for end in ("", ALIKE):
                system = HYBRID[row] + end
                values[f"AP of the hybrid{end}"] = systems[system]["AP"]
                lost = np.array(systems[system]["RR@10"]) - np.array(perturbed[system])
                values[f"RR@10 of the hybrid, lost where documents are perturbed{end}"] = lost
            values["R@100 of the hybrid"] = systems[HYBRID[row]]["R@100"]
            mine = answered(systems[row]["RR@10"])
            values["D − S"], values["D ∩ S"] = mine & ~bm25, mine & bm25
            values["failures of BM25 and the vectors together"] = ~(mine | bm25)
            for title, list_ in values.items():
                found.setdefault(title, {})[row, number] = dict(zip(names, map(float, list_), strict=True))
    hybrid = found.get("AP of the hybrid", {})
    for row, number in list(hybrid):
        if row == NAIVE:
            bm25_of = dict(zip(names, saved["BM25"]["AP"], strict=True))
            alone = found["AP of the vectors"][row, number]
            hybrid |= {("BM25", number): bm25_of, ("the naive sum's vectors", number): alone}
    return found


def _pairs(values):
    """The comparisons whose rows are there; with hybrids, each of their halves too."""
    rows = {row for row, _ in values}
    halves = [(NAIVE, "BM25"), (NAIVE, "the naive sum's vectors")]
    return [pair for pair in (*QUESTIONS.values(), *halves) if rows.issuperset(pair)]


def _ratios(saved):
    """Differences of RoC@10, of each seed and over seeds."""
    bm25, table = answered(saved["BM25"]["RR@10"]), {}
    for first, second in RATIOS:
        gaps = []
        for number, seed in saved["seeds"].items():
            if first in seed["weights"] and second in seed["weights"]:
                d = [answered(seed["systems"][row]["RR@10"]) for row in (first, second)]
                gaps.append(float(np.subtract(*(sets(one, bm25)[3][0] for one in d))))
                again = np.subtract(*(sets(one, bm25, draws(len(bm25)))[3] for one in d))
                low, high = map(float, np.nanquantile(again, (0.025, 0.975)))
                line = {"difference": gaps[-1], "low": low, "high": high, "over": f"{len(bm25)} queries"}
                table[f"{first} − {second}; seed {number}"] = {**line, "above 0": float(np.mean(again > 0))}
        if len(gaps) > 1:
            low, high = t_interval(gaps)
            line = {
                "difference": float(np.mean(gaps)),
                "low": low,
                "high": high,
                "over": f"{len(gaps)} seeds",
            }
            table[f"{first} − {second}"] = line
    return table


def _correlations(saved):
    """Spearman's ρ of RoC and the hybrid's AP over the rows: of each seed, and of the means over seeds."""
    everything, figures = within(saved, None), {}
    for number, seed in saved["seeds"].items():
        if all(row in seed["weights"] for row in EMBEDDING):
            figures[number] = [_cell(saved, seed, row, everything) for row in EMBEDDING]
    if not figures:
        return
    print("\nSpearman's ρ of RoC@10 and the hybrid's AP, over the rows, and the exact one-sided p\n")
    sides = {
        number: [[cell[what] for cell in cells] for what in ("RoC@10", "hybrid AP")]
        for number, cells in figures.items()
    }
    sides["means over seeds"] = np.mean(list(sides.values()), axis=0).tolist()
    for number, (roc, quality) in sides.items():
        rho, p, _ = rank_correlation(roc, quality)
        print(f"- {number}: {rho:+.2f}, p {p:.3f}")


# -- one seed ----------------------------------------------------------------------------------------------


def found_of(saved, number):
    """What `roc.py` would have saved of one seed, of all collections as one."""
    names, seed = saved["queries"], saved["seeds"][number]

    def by_query(values):
        return dict(zip(names, values, strict=True))

    systems = {"BM25": saved["BM25"], **seed["systems"]}
    perturbed = {"BM25": saved["BM25 perturbed"], **seed["perturbed"]}
    measured = {
        "documents": saved["documents"],
        "queries": len(names),
        "words": by_query(saved["words"]),
        "systems": {name: {m: by_query(v) for m, v in found.items()} for name, found in systems.items()},
        "shared": seed["shared"],
        "adversarial": {
            "changed": saved["changed"],
            "systems": {name: {"RR@10": by_query(values)} for name, values in perturbed.items()},
        },
    }
    return {"trained on": COLLECTION, "weights": seed["weights"], "collections": {COLLECTION: measured}}
