"""Isotropic DR's figures 1 and 3 of what `isotropy.py` measured: how round a space is, and how it ranks."""

from benchmarks.papers.isotropy_tables import MEASURES, baseline

from counterpoint.plots.canvas import PALETTE, picture

METHODS = {"none": "without a map", "whitening": "whitening", "NICE": "NICE", "Glow": "Glow"}
COLOURS = dict(zip(METHODS, (PALETTE[7], *PALETTE), strict=False))


def draw(rows, folder):
    """For every model and level, of maps about the source's mean; figure 3 where each source has a model."""
    folder.mkdir(parents=True, exist_ok=True)
    for model, level in sorted({(row["model"], row["level"]) for row in rows if row["method"] != "none"}):
        found = pairs([row for row in rows if row["model"] == model], level)
        end = f"{model}-{level}.svg"
        inside = {target: some for (source, target), some in found.items() if source == target}
        outside = {f"{one} → {other}": some for (one, other), some in found.items() if one != other}
        if inside:
            bars(inside, "I(W)").save(folder / f"figure1a-{end}")
            against_isotropy(inside, "nDCG@10").save(folder / f"figure1b-{end}")
        if outside:
            against_isotropy(outside, "nDCG@10").save(folder / f"figure1c-{end}")
        for name in MEASURES if any(some["none"].get("own nDCG@10") for some in outside.values()) else ():
            bars(outside, name, line=f"own {name}").save(folder / f"figure3-{name}-{end}")


def pairs(rows, level):
    """(source, target) to method to row, that without a map first."""
    found = {}
    for row in rows:
        if row["method"] != "none" and (row["level"], row["mean"]) == (level, "source"):
            there = found.setdefault((row["source"], row["target"]), {"none": baseline(row, rows)})
            there[row["method"]] = row
    return found


def bars(groups, value, line=None):
    """A bar a method for each group; across it, a line at what its rows have under another name."""
    made = picture(2.0 + 1.1 * len(groups), 3.4)
    shown = [method for method in METHODS if any(method in group for group in groups.values())]
    width = 0.8 / len(shown)
    for place, method in enumerate(shown):
        at = [x for x, group in enumerate(groups.values()) if method in group]
        heights = [group[method][value] for group in groups.values() if method in group]
        left = [x + (place - (len(shown) - 1) / 2) * width for x in at]
        made.axes.bar(left, heights, width, color=COLOURS[method], label=METHODS[method])
    for x, group in enumerate(groups.values()):
        if line and group["none"].get(line):
            label = "the target's own model, without a map" if x == 0 else None
            made.axes.plot([x - 0.45, x + 0.45], [group["none"][line]] * 2, color="red", label=label)
    made.axes.set_xticks(range(len(groups)), list(groups), fontsize=8)
    made.axes.set_ylabel(value)
    made.axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return made


def against_isotropy(groups, value):
    """A measure by I(W): a point a method, those of a group joined in the order of I(W)."""
    made = picture(6.0, 3.6)
    named = set()
    for label, group in groups.items():
        points = sorted((row["I(W)"], row[value], method) for method, row in group.items())
        made.axes.plot([x for x, _, _ in points], [y for _, y, _ in points], color="#cccccc", zorder=1)
        made.axes.annotate(label, points[-1][:2], (4, 0), textcoords="offset points", fontsize=7)
        for x, y, method in points:
            legend = None if method in named else METHODS[method]
            made.axes.scatter([x], [y], color=COLOURS[method], label=legend, zorder=2)
            named.add(method)
    made.axes.set_xlabel("I(W)")
    made.axes.set_ylabel(value)
    made.axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    return made
