"""Rows that were trained with several seeds: means with ranges, and differences with intervals and tests."""

from statistics import mean

import numpy as np

from counterpoint.measure import bootstrap_interval, holm, paired_t_test


def spread(values, digits=3):
    """The mean, with the lowest and the highest in brackets."""
    return f"{mean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def spread_with_interval(values, digits=3):
    """The same and, of several seeds, the 95 % interval of the mean in square brackets."""
    if len(values) < 2:
        return spread(values, digits)
    low, high = t_interval(values)
    return f"{spread(values, digits)} [{low:.{digits}f}, {high:.{digits}f}]"


def differences(found, pairs):
    """Of each pair of rows, treatment − control: of every seed over queries, then over seeds.

    A seed's interval is a bootstrap over queries, its p of a paired t-test, corrected (Holm) for all tests of
    the table. Over seeds, both are of Student's t over the seeds' mean differences.

    Args:
        found: by row and seed, the value of each query.
        pairs: (treatment, control), two rows each. Seeds that only one of them has are left out.
    """
    table, tests = {}, {}
    for treatment, control in pairs:
        means = []
        for seed in (seed for row, seed in found if row == treatment and (control, seed) in found):
            first, second = found[treatment, seed], found[control, seed]
            gaps = np.array([first[query] - second[query] for query in first])
            means.append(float(gaps.mean()))
            name = f"{treatment} − {control}; seed {seed}"
            tests[name] = paired_t_test(gaps).p_value
            table[name] = _line(means[-1], bootstrap_interval(gaps), f"{len(gaps)} queries")
        if len(means) > 1:
            name = f"{treatment} − {control}"
            table[name] = _line(mean(means), t_interval(means), f"{len(means)} seeds")
            table[name]["p"] = paired_t_test(np.array(means)).p_value
    for name, p in zip(tests, holm(list(tests.values())), strict=True):
        table[name]["p"] = p
    return table


def _line(difference, interval, over):
    low, high = interval
    return {"difference": difference, "low": low, "high": high, "over": over}


def t_interval(values, confidence=0.95):
    """Student's interval of the mean; the values are taken as normal."""
    from scipy import stats

    half = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1) * stats.sem(values))
    return mean(values) - half, mean(values) + half


def print_table(rows, head="run"):
    """Print rows by name as a table of Markdown; a cell that a row lacks is empty."""
    columns = list(dict.fromkeys(key for row in rows.values() for key in row))
    print(f"| {head} | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name, row in rows.items():
        found = [row.get(key, "") for key in columns]
        cells = [f"{value:.3f}" if isinstance(value, float) else str(value) for value in found]
        print(f"| {name} | " + " | ".join(cells) + " |")
