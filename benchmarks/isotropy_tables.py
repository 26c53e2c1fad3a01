"""Tables of what `isotropy.py` measured."""

import statistics

MEASURES = ("P@20", "nDCG@10")
COLUMNS = (
    "source", "target", "distribution", "model", "level", "method", "map", *MEASURES, "I(W)", "avgcos",
    *(f"p({over}) {name}" for name in MEASURES for over in ("seeds", "queries")), "fit_rows", "fit_seconds",
)  # fmt: skip


def show(rows):
    """A line a row, p-values and all."""
    shown = [
        {
            **{
                name: statistics.mean(s[name] for s in row["seeds"]) for name in (*MEASURES, "I(W)", "avgcos")
            },
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
    """Means over the targets, in and out of distribution, beside the same targets without a map.

    "better" and "worse" count the targets where a one-tailed t-test over queries says so at .05.
    """
    groups = {}
    base = {(row["target"], row["model"]): row for row in rows if row["method"] == "none"}
    for row in rows:
        if row["method"] != "none":
            key = tuple(row[name] for name in ("distribution", "model", "level", "method"))
            groups.setdefault(key, []).append((row, base[row["target"], row["model"]]))
    columns = ("I(W) before", "after", "avgcos before", "after")
    columns += tuple(f"{name} {what}" for name in MEASURES for what in ("difference", "better", "worse"))
    head = ("distribution", "model", "level", "method", "pairs", *columns)
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for key, pairs in sorted(groups.items()):
        cells = [*key, str(len(pairs))]
        for name in ("I(W)", "avgcos"):
            cells += [
                f"{statistics.mean(one[name] for one in side):.3f}"
                for side in reversed(list(zip(*pairs, strict=True)))
            ]
        for name in MEASURES:
            p = [row[f"p(queries) {name}"] for row, _ in pairs]
            cells.append(f"{statistics.mean(row[name] - before[name] for row, before in pairs):+.4f}")
            cells += [str(sum(value < 0.05 for value in p)), str(sum(value > 0.95 for value in p))]
        print("| " + " | ".join(cells) + " |")
