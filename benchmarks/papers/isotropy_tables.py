"""Tables of what `isotropy.py` measured."""

import statistics

from benchmarks.papers.seeds import t_interval

MEASURES = ("P@20", "nDCG@10")
ISOTROPY = ("I(W)", "I(W)±", "avgcos")  # of one sign, as in print, and of both
NAMES = ("source", "target", "mean", "distribution", "model", "level", "method", "map")
COLUMNS = (
    *NAMES, *MEASURES, *ISOTROPY, *(f"own {name}" for name in MEASURES),
    *(f"p({over}) {name}" for name in MEASURES for over in ("seeds", "queries")), "fit_rows", "fit_seconds",
)  # fmt: skip


def show(rows):
    """A line a row, p-values and all."""
    shown = [
        {
            **{name: statistics.mean(s[name] for s in row["seeds"]) for name in (*MEASURES, *ISOTROPY)},
            **row,
        }
        if "seeds" in row
        else row
        for row in rows
    ]
    columns = [name for name in COLUMNS if any(name in row for row in shown)]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in shown:
        cells = [row.get(name, "") for name in columns]
        print("| " + " | ".join(f"{c:.4f}" if isinstance(c, float) else str(c) for c in cells) + " |")
    print(flush=True)


def summary(rows):
    """Means over the targets compared with the same targets without a map: of tables or of a rule.

    "better" and "worse" count the targets where a one-tailed t-test over queries says so at .05. Isotropy
    after a map has a 95 % interval over the seeds' means, where there are several.
    """
    said = "map" if any("map" in row for row in rows) else "method"
    names = ("model", "level", said)
    if said == "method":
        names = ("distribution", "mean", *names)
    groups = {}
    for row in rows:
        if row[said] != "none":
            groups.setdefault(tuple(row[name] for name in names), []).append((row, baseline(row, rows)))
    columns = ("targets", *(entry for name in ISOTROPY for entry in (f"{name} before", "after")))
    columns += tuple(f"{name} {what}" for name in MEASURES for what in ("difference", "better", "worse"))
    print("| " + " | ".join((*names, *columns)) + " |\n|" + "---|" * len((*names, *columns)))
    for key, pairs in groups.items():
        print("| " + " | ".join((*key, str(len(pairs)), *_cells(pairs))) + " |")


def baseline(row, rows):
    """The same target and model without a map: by the same source's model, where each has its own."""
    for other in rows:
        if (other["target"], other["model"]) == (row["target"], row["model"]):
            plain = "none" in (other.get("method"), other.get("map"))
            if plain and other.get("source", "-") in ("-", row.get("source")):
                return other
    raise LookupError(f"no row of {row['model']} on {row['target']} is without a map")


def _cells(pairs):
    after, before = zip(*pairs, strict=True)
    for name in ISOTROPY:
        yield f"{statistics.mean(one[name] for one in before):.3f}"
        yield f"{statistics.mean(one[name] for one in after):.3f}{_interval(after, name)}"
    for name in MEASURES:
        found = [(row[f"p(queries) {name}"], row[name] - other[name]) for row, other in pairs]
        yield f"{statistics.mean(difference for _, difference in found):+.4f}"
        yield str(sum(p < 0.05 for p, _ in found))
        yield str(sum(p > 0.95 and difference < 0 for p, difference in found))  # p is 1 where all are equal


def _interval(rows, name):
    """Of the mean over the rows, over the seeds that all of them have; nothing with less than two."""
    drawn = zip(*(row.get("seeds", ()) for row in rows), strict=False)
    means = [statistics.mean(one[name] for one in of_seed) for of_seed in drawn]
    if len(means) < 2:
        return ""
    low, high = t_interval(means)
    return f" [{low:.3f}, {high:.3f}]"
