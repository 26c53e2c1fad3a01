"""Paired tests, resampled queries and rank correlation: whether a figure of `roc.py` may be chance."""

from functools import cache
from itertools import permutations
from statistics import mean

import numpy as np
from benchmarks.papers.roc_rows import CLEAR, HIDDEN, NAIVE, OURS, PAIRS

from counterpoint.measure import bonferroni, paired_t_test

ALPHA = 0.05
SURE = 0.95  # of the resampled sets of queries
RESAMPLES = 2000


# -- tests -------------------------------------------------------------------------------------------------


def tests(found, names, measure):
    """Differences of each hybrid to the naive sum and to CLEAR's, and p corrected for their number.

    Of several collections all queries together are one sample.
    """
    collections = {name: found["collections"][name]["systems"] for name in names}
    values = {
        row: {
            (name, query): value
            for name, systems in collections.items()
            for query, value in systems[f"BM25 + {row}"][measure].items()
        }
        for row in (NAIVE, CLEAR, "E", "I", OURS)
        if collections and all(f"BM25 + {row}" in systems for systems in collections.values())
    }
    pairs = [(row, base) for base in (NAIVE, CLEAR) for row in values if row not in (base, NAIVE)]
    return corrected(
        {(row, base): difference(values[row], values[base]) for row, base in pairs if base in values}
    )


def pair_tests(systems):
    """Table 6: the gain in AP of each row with hidden matches, and p corrected for their number."""
    return corrected(
        {
            plain + hidden: difference(systems[plain + hidden]["AP"], systems[plain]["AP"])
            for plain in PAIRS
            for hidden in HIDDEN
            if plain in systems and plain + hidden in systems
        }
    )


def difference(values, others):
    """The mean difference of two systems' values, and p of a two-sided paired t-test."""
    gaps = np.array([values[query] - others[query] for query in values])
    return float(gaps.mean()), paired_t_test(gaps).p_value


def corrected(found):
    """The same with Bonferroni's p."""
    p_values = bonferroni([p for _, p in found.values()])
    return {name: (gap, p) for (name, (gap, _)), p in zip(found.items(), p_values, strict=True)}


# -- resampled queries -------------------------------------------------------------------------------------


@cache
def draws(count):
    """How often each of so many queries is drawn: a row a resampled set, the same ones every time."""
    return np.random.default_rng(1).multinomial(count, np.full(count, 1 / count), RESAMPLES)


def resampled_means(values):
    """The mean of each resampled set of queries."""
    return draws(len(values)) @ np.asarray(values, dtype=float) / len(values)


def resampled_shares(found, names, row, k):
    """How the answers of a row's vectors and of BM25 overlap in each resampled set of queries, as means.

    As in `shares`, of the first k: |D − S|, |D ∩ S| and failures as % of the queries, RoC. k is 10 at most: a
    query is answered by the first k where RR@10 is 1/k or more.
    """
    values = []
    for name in names:
        systems = found["collections"][name]["systems"]
        d, s = (np.array([*systems[x]["RR@10"].values()]) * k > 1 - 1e-9 for x in (row, "BM25"))
        drawn = draws(len(d))
        alone, both, failures = (drawn @ part for part in (d & ~s, d & s, ~(d | s)))
        answered = alone + both
        roc = alone / np.where(answered, answered, np.nan)
        values.append([*(100 * part / len(d) for part in (alone, both, failures)), roc])
    return np.mean(values, axis=0)


# -- rank correlation --------------------------------------------------------------------------------------


def rank_correlation(first, second):
    """Spearman's ρ, how many orders of the second give as high a one (a share of all), and over how many.

    Pairs with NaN are left out. Both are NaN, not defined, where one side has fewer than two values that
    differ.
    """
    from scipy.stats import rankdata

    known = [pair for pair in zip(first, second, strict=True) if not np.isnan(pair).any()]
    if not known:
        return np.nan, np.nan, 0
    a, b = (rankdata(side) - mean(rankdata(side)) for side in zip(*known, strict=True))
    size = np.sqrt((a @ a) * (b @ b))
    if not size:
        return np.nan, np.nan, len(known)
    as_high = [a @ np.array(order) >= a @ b - 1e-9 for order in permutations(b)]
    return float(a @ b / size), float(np.mean(as_high)), len(known)
