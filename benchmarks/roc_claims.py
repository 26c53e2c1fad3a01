"""What becomes of RoC's claims: figures of a system, tests, and a verdict for each, all computed."""

from itertools import permutations
from statistics import mean

import numpy as np
from roc_figures import average_precision, bins, hard_wins
from roc_rows import ALIKE, CLEAR, EMBEDDING, NAIVE, OURS, PAIRS

from counterpoint.measure import bonferroni, means_over, paired_t_test

ALPHA = 0.05
RESAMPLES = 2000  # of the queries


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
    """What a row's vectors answer beside BM25, means over collections; None where it was not measured.

    Of the first ten |D − S|, |D ∩ S| and failures as % of the queries, RoC, RoC of documents; then RoC of the
    first document alone.
    """
    if not names or any(row not in found["collections"][name]["shared"] for name in names):
        return None
    cells = []
    for name in names:
        measured = found["collections"][name]
        answered, relevant = (measured["shared"][row][what] for what in ("answered", "relevant"))
        d, documents = (side["pairs"][0] for side in (answered, relevant))  # of D beside S
        counts = d["first_without_second"], d["both"], answered["universe"] - answered["union"]
        first, bm25 = (answered_first(measured, system) for system in (row, "BM25"))
        alone = len(first - bm25) / len(first) if first else np.nan
        ratios = [np.nan if side["roc"] is None else side["roc"] for side in (d, documents)]
        cells.append([*(100 * count / answered["universe"] for count in counts), *ratios, alone])
    return np.nanmean(cells, axis=0).tolist()


def answered_first(measured, system):
    """Queries with a relevant document in front."""
    return {query for query, value in measured["systems"][system]["RR@10"].items() if value == 1}


def tests(measured, measure):
    """Differences of each hybrid to the naive sum and to CLEAR's, and p corrected for their number."""
    pairs = [
        (row, base)
        for base in (NAIVE, CLEAR)
        for row in (CLEAR, "E", "I", OURS)
        if row != base and all(f"BM25 + {name}" in measured["systems"] for name in (row, base))
    ]
    found = {}
    for row, base in pairs:
        found[row, base] = difference(
            *(measured["systems"][f"BM25 + {name}"][measure] for name in (row, base))
        )
    corrected = bonferroni([p for _, p in found.values()])
    return {pair: (found[pair][0], p) for pair, p in zip(found, corrected, strict=True)}


# -- claims ------------------------------------------------------------------------------------------------


def verdicts(found):
    """One line a claim and group of collections, and behind it the figures that it goes by."""
    own, others = apart(found)
    print("\n**Claims**: whether the figures go that way; in brackets the figures.\n")
    for names, where in ((own, found["trained on"]), (others, "the others")):
        if names and set(EMBEDDING) <= set(found["weights"]):
            for claims in (complementarity(found, names), hybrids(found, names), adverse(found, names)):
                _say(where, claims)
    for name in own:
        _say(name, pairs(found["collections"][name].get("pairs", {"systems": {}})["systems"]))


def _say(where, claims):
    for claim, holds, figures in claims:
        print(f"- {where}: {claim}: {'holds' if holds else 'does not hold'} ({figures})")


def complementarity(found, names):
    """Research question 1: does orthogonality raise RoC, and in which way?"""
    sets = {row: shares(found, names, row) for row in EMBEDDING}
    rivals = {"E": (NAIVE, CLEAR), "I": (NAIVE, CLEAR), OURS: [row for row in EMBEDDING if row != OURS]}
    for k, at in ((10, 3), (1, 5)):
        roc = {row: sets[row][at] for row in EMBEDDING}
        again = {row: resampled(found, names, row, k) for row in EMBEDDING}
        said = ", ".join(f"{row} {roc[row]:.3f}" for row in EMBEDDING)
        for row, below in rivals.items():
            often = min(np.mean(again[row] > again[rival]) for rival in below)
            claim = f"has the highest RoC@{k}" if row == OURS else f"raises RoC@{k} over naive and CLEAR"
            figures = f"{said}; above each in {often:.0%} or more of resampled sets of queries"
            yield f"{row} {claim}", roc[row] > max(roc[rival] for rival in below), figures
    for row, at, sign, what in (("E", 1, -1, "|D ∩ S| falls"), ("I", 0, 1, "|D − S| rises")):
        before, after = sets[NAIVE][at], sets[row][at]
        yield (
            f"{what} by {row}, against naive",
            sign * (after - before) > 0,
            f"{before:.1f} % to {after:.1f} %",
        )
    rise = [sets[CLEAR][at] - sets[NAIVE][at] for at in (0, 1)]
    claim = "CLEAR raises |D − S| and |D ∩ S|, against naive"
    yield claim, min(rise) > 0, f"{rise[0]:+.1f} and {rise[1]:+.1f} points"
    failures = sets[OURS][2], sets[CLEAR][2]
    figures = f"{failures[0]:.1f} % and {failures[1]:.1f} % of the queries"
    yield f"{OURS} fails less than CLEAR", failures[0] < failures[1], figures


def hybrids(found, names):
    """Research question 3: does the hybrid's quality follow RoC, and are ours better?"""
    roc = [shares(found, names, row)[3] for row in EMBEDDING]
    hybrid = [quality(found, names, f"BM25 + {row}", "AP") for row in EMBEDDING]
    rho, p = rank_correlation(roc, hybrid)
    said = ", ".join(f"{row} {value:.2f}" for row, value in zip(EMBEDDING, hybrid, strict=True))
    figures = f"Spearman's ρ {rho:+.2f} over {len(hybrid)} rows, one-sided exact p {p:.3f}; AP {said}"
    yield f"the hybrid's AP follows RoC (ρ > 0 at p < {ALPHA})", rho > 0 and p < ALPHA, figures
    for base, what in ((NAIVE, "the naive sum"), (CLEAR, "CLEAR")):
        tested = {name: tests(found["collections"][name], "AP")[OURS, base] for name in names}
        figures = ", ".join(f"{name} {100 * gap:+.2f}, p {p:.3f}" for name, (gap, p) in tested.items())
        holds = all(gap > 0 and p < ALPHA for gap, p in tested.values())
        yield f"the hybrid of {OURS} beats {what} in AP, significantly everywhere", holds, figures


def adverse(found, names):
    """Research question 2: BM25-hard, perturbed documents, long documents; where these were looked at."""
    for name in names:
        measured = found["collections"][name]
        if "adversarial" not in measured:
            continue
        wins = hard_wins(measured, EMBEDDING)
        share = {
            row: 100 * wins[f"BM25 + {row}"]["hard"][0] / sum(wins[f"BM25 + {row}"]["hard"])
            for row in EMBEDDING
        }
        figures = ", ".join(f"{row} {share[row]:.1f} %" for row in (NAIVE, CLEAR, OURS))
        yield (
            "figure 4: ours beats BM25 on more hard queries",
            share[OURS] > max(share[NAIVE], share[CLEAR]),
            figures,
        )
        for alike in ("", ALIKE):
            lost = {row: perturbed(measured, f"BM25 + {row}{alike}") for row in (NAIVE, CLEAR, OURS)}
            if None in lost.values():
                continue
            figures = ", ".join(f"{row} {before:.2f} to {after:.2f}" for row, (before, after) in lost.items())
            falls = {row: before - after for row, (before, after) in lost.items()}
            yield f"figure 5{alike}: ours loses less RR@10 than CLEAR", falls[OURS] < falls[CLEAR], figures
        means = means_over(average_precision(measured, (NAIVE, CLEAR, OURS)), bins(measured))
        ours = [values.pop(f"BM25 + {OURS}") > max(values.values()) for values in means.values()]
        yield (
            "figure 6: ours is best at all lengths but one",
            sum(ours) >= len(ours) - 1,
            f"{sum(ours)} of {len(ours)} bins",
        )


def perturbed(measured, system):
    """RR@10 × 100 on the documents as they are, and perturbed; None where it was not measured."""
    sides = measured["systems"], measured["adversarial"]["systems"]
    if any(system not in side for side in sides):
        return None
    return tuple(100 * mean(side[system]["RR@10"].values()) for side in sides)


def pairs(systems):
    """Table 6: hidden matches help models that make no vector."""
    for plain, (hidden, _) in PAIRS.items():
        if plain in systems and hidden in systems:
            gap, p = difference(systems[hidden]["AP"], systems[plain]["AP"])
            yield f"hidden matches help {plain}", gap > 0, f"AP {100 * gap:+.2f}, p {p:.3f}"


# -- statistics --------------------------------------------------------------------------------------------


def difference(values, others):
    """The mean difference of two systems' values, and p of a two-sided paired t-test."""
    gaps = np.array([values[query] - others[query] for query in values])
    return float(gaps.mean()), paired_t_test(gaps).p_value


def resampled(found, names, row, k):
    """RoC@k of a row over resampled queries, the same draws for every row: means over the collections.

    k is 10 at most: a query is answered by the first k where RR@10 is 1/k or more.
    """
    values = []
    for name in names:
        systems = found["collections"][name]["systems"]
        d, s = (np.array([*systems[x]["RR@10"].values()]) * k > 1 - 1e-9 for x in (row, "BM25"))
        draws = np.random.default_rng(1).multinomial(len(d), np.full(len(d), 1 / len(d)), RESAMPLES)
        answered = draws @ d
        values.append(draws @ (d & ~s) / np.where(answered, answered, np.nan))
    return np.mean(values, axis=0)


def rank_correlation(first, second):
    """Spearman's ρ, and how many orders of the second give as high a one: a share of all."""
    from scipy.stats import rankdata

    def ranks(values):
        found = rankdata(values)
        return found - found.mean()

    a, b = ranks(first), ranks(second)
    size = np.sqrt((a @ a) * (b @ b))
    if not size:
        return 0.0, 1.0
    all_orders = [a @ np.array(order) for order in permutations(b)]
    return float(a @ b / size), float(np.mean([value >= a @ b - 1e-9 for value in all_orders]))
