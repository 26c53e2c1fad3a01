"""What becomes of RoC's claims: figures of a system, and for each claim what they say of it, all computed.

A claim *holds* where the figures go its way, and surely: in 95 % of resampled sets of queries or more, or by
paired t-tests at p < .05 after Bonferroni. It is *not shown* where they go its way, but it may be chance, and
*does not hold* where they do not. Where there is nothing to go by, that is said instead: *not defined* (a RoC
of no answers), *too few* (queries for figure 6).
"""

from statistics import mean

import numpy as np
from benchmarks.papers.roc_figures import average_precision, bins, hard_half
from benchmarks.papers.roc_rows import ALIKE, CLEAR, EMBEDDING, NAIVE, OURS
from benchmarks.papers.roc_statistics import (
    ALPHA,
    SURE,
    pair_tests,
    rank_correlation,
    resampled_means,
    resampled_shares,
    tests,
)

FEWEST_BINS, FEWEST_QUERIES = 3, 20  # of figure 6: bins, and queries of each, that its claim can go by


# -- figures of one system ---------------------------------------------------------------------------------


def apart(found):
    """Names of the collection trained on, if it was evaluated, and of the others."""
    own = [name for name in found["collections"] if name == found["trained on"]]
    return own, [name for name in found["collections"] if name not in own]


def quality(found, names, system, measure):
    """A measure × 100: the mean over queries, then over collections; None where it was not measured."""
    cells = [found["collections"][name]["systems"].get(system) for name in names]
    if not cells or None in cells:
        return None
    return 100 * mean(mean(cell[measure].values()) for cell in cells)


def shares(found, names, row):
    """How the answers of a row's vectors and of BM25 overlap, means over collections; None if not measured.

    Of the first ten |D − S|, |D ∩ S| and failures as % of the queries, RoC, RoC of documents; then RoC of the
    first document alone.
    """
    if not names or any(row not in found["collections"][name]["shared"] for name in names):
        return None
    cells = []
    for name in names:
        measured = found["collections"][name]
        answered, relevant = (measured["shared"][row][what] for what in ("answered", "relevant"))
        d, documents = (side["pairs"][0] for side in (answered, relevant))  # of D against S
        counts = d["first_without_second"], d["both"], answered["universe"] - answered["union"]
        first, bm25 = (answered_first(measured, system) for system in (row, "BM25"))
        alone = len(first - bm25) / len(first) if first else np.nan
        ratios = [np.nan if side["roc"] is None else side["roc"] for side in (d, documents)]
        cells.append([*(100 * count / answered["universe"] for count in counts), *ratios, alone])
    defined = np.ma.masked_invalid(cells)  # a RoC of no answers is not
    return defined.mean(axis=0).filled(np.nan).tolist()


def answered_first(measured, system):
    """Queries with a relevant document in front."""
    return {query for query, value in measured["systems"][system]["RR@10"].items() if value == 1}


# -- what is said of a claim -------------------------------------------------------------------------------


def outcome(goes, surely):
    """One of the three; `goes` is None where a figure is not defined."""
    if goes is None:
        return "not defined"
    return ("holds" if surely else "not shown") if goes else "does not hold"


def by_resampling(claim, goes, again, figures):
    """A claim that holds where it does in `SURE` of the resampled sets of queries; `again` says of each."""
    often = np.mean(again)
    return claim, outcome(goes, often >= SURE), f"{figures}; so in {often:.1%} of resampled sets of queries"


def verdicts(found):
    """One line per claim and group of collections, then the figures that it goes by."""
    own, others = apart(found)
    print(
        f"\n**Claims**: *holds* where the figures go that way in {SURE:.0%} of resampled sets of queries "
        f"or more, or at p < {ALPHA} after Bonferroni; *not shown* where they do, but not so surely; in "
        "brackets the figures.\n"
    )
    missing = [row for row in EMBEDDING if row not in found["weights"]]
    if missing:
        print(f"- The claims of rows that make vectors are left out, since there is no {', '.join(missing)}.")
    for names, where in ((own, found["trained on"]), (others, "the others")):
        if names and not missing:
            for claims in (complementarity(found, names), hybrids(found, names), adverse(found, names)):
                _say(where, claims)
    for name in own:
        _say(name, pairs(found["collections"][name].get("pairs", {"systems": {}})["systems"]))


def _say(where, claims):
    for claim, said, figures in claims:
        print(f"- {where}: {claim}: {said} ({figures})")


# -- claims ------------------------------------------------------------------------------------------------


def complementarity(found, names):
    """Research question 1: does orthogonality raise RoC, and in which way?"""
    sets = {row: shares(found, names, row) for row in EMBEDDING}
    again = {row: resampled_shares(found, names, row, 10) for row in EMBEDDING}
    first = {row: resampled_shares(found, names, row, 1)[3] for row in EMBEDDING}
    yield from _ratios(
        "RoC@10", {row: sets[row][3] for row in EMBEDDING}, {row: again[row][3] for row in EMBEDDING}
    )
    yield from _ratios("RoC@1", {row: sets[row][5] for row in EMBEDDING}, first)
    for row, at, sign, what in (("E", 1, -1, "|D ∩ S| falls"), ("I", 0, 1, "|D − S| rises")):
        before, after = sets[NAIVE][at], sets[row][at]
        surely = sign * (again[row][at] - again[NAIVE][at]) > 0
        figures = f"{before:.1f} % to {after:.1f} %"
        yield by_resampling(f"{what} by {row}, against naive", sign * (after - before) > 0, surely, figures)
    rise = [sets[CLEAR][at] - sets[NAIVE][at] for at in (0, 1)]
    surely = (again[CLEAR][:2] > again[NAIVE][:2]).all(axis=0)
    figures = f"{rise[0]:+.1f} and {rise[1]:+.1f} points"
    yield by_resampling("CLEAR raises |D − S| and |D ∩ S|, against naive", min(rise) > 0, surely, figures)
    failures = sets[OURS][2], sets[CLEAR][2]
    figures = f"{failures[0]:.1f} % and {failures[1]:.1f} % of the queries"
    surely = again[OURS][2] < again[CLEAR][2]
    yield by_resampling(f"{OURS} fails less than CLEAR", failures[0] < failures[1], surely, figures)


def _ratios(what, roc, again):
    """Claims of a RoC, of its value for each row, and of its values in the resampled sets of queries."""
    rivals = {"E": (NAIVE, CLEAR), "I": (NAIVE, CLEAR), OURS: [row for row in EMBEDDING if row != OURS]}
    figures = ", ".join(f"{row} {roc[row]:.3f}" for row in EMBEDDING)
    for row, below in rivals.items():
        goes = roc[row] > max(roc[rival] for rival in below)
        if np.isnan([roc[name] for name in (row, *below)]).any():
            goes = None
        surely = np.all([again[row] > again[rival] for rival in below], axis=0)
        claim = f"has the highest {what}" if row == OURS else f"raises {what} over naive and CLEAR"
        yield by_resampling(f"{row} {claim}", goes, surely, figures)


def hybrids(found, names):
    """Research question 3: does the hybrid's quality follow RoC, and are ours better?"""
    roc = [shares(found, names, row)[3] for row in EMBEDDING]
    hybrid = [quality(found, names, f"BM25 + {row}", "AP") for row in EMBEDDING]
    rho, p, count = rank_correlation(roc, hybrid)
    said = ", ".join(f"{row} {value:.2f}" for row, value in zip(EMBEDDING, hybrid, strict=True))
    goes, ranks = rho > 0, f"Spearman's ρ {rho:+.2f} over {count} rows, one-sided exact p {p:.3f}"
    if np.isnan(rho):
        goes, ranks = None, f"no Spearman's ρ: {count} rows have a RoC, too few or all alike"
    claim = f"the hybrid's AP follows RoC (ρ > 0 at p < {ALPHA})"
    yield claim, outcome(goes, p < ALPHA), f"{ranks}; AP {said}"
    for base, what in ((NAIVE, "the naive sum"), (CLEAR, "CLEAR")):
        tested = {name: tests(found, [name], "AP")[OURS, base] for name in names}
        figures = ", ".join(f"{name} {100 * gap:+.2f}, p {p:.3f}" for name, (gap, p) in tested.items())
        goes = all(gap > 0 for gap, _ in tested.values())
        surely = all(p < ALPHA for _, p in tested.values())
        claim = f"the hybrid of {OURS} beats {what} in AP, significantly everywhere"
        yield claim, outcome(goes, surely), figures


def adverse(found, names):
    """Research question 2: BM25-hard, perturbed documents, long documents; where these were looked at."""
    for name in names:
        measured = found["collections"][name]
        if "adversarial" in measured:
            yield _figure4(measured)
            for alike in ("", ALIKE):
                if perturbed(measured, f"BM25 + {OURS}{alike}") is not None:
                    yield _figure5(measured, alike)
            yield _figure6(measured)


def _figure4(measured):
    bm25 = measured["systems"]["BM25"]["RR@10"]
    better = {}
    for row in (NAIVE, CLEAR, OURS):
        values = measured["systems"][f"BM25 + {row}"]["RR@10"]
        better[row] = np.array([values[query] > bm25[query] + 1e-9 for query in hard_half(measured)])
    share = {row: 100 * wins.mean() for row, wins in better.items()}
    again = {row: resampled_means(wins) for row, wins in better.items()}
    figures = ", ".join(f"{row} {value:.1f} %" for row, value in share.items())
    goes = share[OURS] > max(share[NAIVE], share[CLEAR])
    surely = again[OURS] > np.maximum(again[NAIVE], again[CLEAR])
    return by_resampling("figure 4: ours beats BM25 on more hard queries", goes, surely, figures)


def _figure5(measured, alike):
    falls, figures = {}, []
    for row in (NAIVE, CLEAR, OURS):
        system = f"BM25 + {row}{alike}"
        before, after = (side[system]["RR@10"] for side in sides_of(measured))
        falls[row] = np.array([before[query] - after[query] for query in before])
        figures.append("{} {:.2f} to {:.2f}".format(row, *perturbed(measured, system)))
    spared = falls[CLEAR] - falls[OURS]
    claim = f"figure 5{alike}: ours loses less RR@10 than CLEAR"
    return by_resampling(claim, spared.mean() > 0, resampled_means(spared) > 0, ", ".join(figures))


def _figure6(measured):
    """By the bins with enough queries, of which there must be enough: one bin that is lost is allowed for."""
    claim = "figure 6: ours is best at all lengths but one"
    large = [queries for queries in bins(measured).values() if len(queries) >= FEWEST_QUERIES]
    if len(large) < FEWEST_BINS:
        few = f"{len(large)} bins have {FEWEST_QUERIES} queries or more, {FEWEST_BINS} are needed"
        return claim, "too few", few
    values = average_precision(measured, (NAIVE, CLEAR, OURS))
    ours = values.pop(f"BM25 + {OURS}")

    def best(means):
        return [
            np.array(means([ours[query] for query in queries]))
            > np.max([means([value[query] for query in queries]) for value in values.values()], axis=0)
            for queries in large
        ]

    count = int(np.sum(best(np.mean)))
    surely = np.sum(best(resampled_means), axis=0) >= len(large) - 1
    figures = f"{count} of {len(large)} bins with {FEWEST_QUERIES} queries or more"
    return by_resampling(claim, count >= len(large) - 1, surely, figures)


def sides_of(measured):
    """The systems on the documents as they are, and perturbed."""
    return measured["systems"], measured["adversarial"]["systems"]


def perturbed(measured, system):
    """RR@10 × 100 on the documents as they are, and perturbed; None where it was not measured."""
    if any(system not in side for side in sides_of(measured)):
        return None
    return tuple(100 * mean(side[system]["RR@10"].values()) for side in sides_of(measured))


def pairs(systems):
    """Table 6: hidden matches help models that make no vector."""
    for row, (gap, p) in pair_tests(systems).items():
        yield f"{row} is better than without", outcome(gap > 0, p < ALPHA), f"AP {100 * gap:+.2f}, p {p:.3f}"
