"""Tables and pictures of what `hil.py` measured, with the figures of Kim, Lee and Hwang 2024 next to them."""

import numpy as np
from benchmarks.papers.hil_rows import ANISO, CURVES, ISO

from counterpoint.measure.significance import paired_t_test
from counterpoint.plots.canvas import PALETTE, picture

FULL = {  # table 2, average of BEIR's 18, and ColBERT-HIL's rows of table 5 (nDCG@10)
    "BM25": 42.42,
    "ColBERT": 41.94,
    "ColBERT-cosreg": 38.74,
    "ColBERT-istar": 42.15,
    "ColBERT-λ": 42.34,
    "HIL": 44.65,
}
RERANKED = {  # table 3: nDCG@10 over BM25's best hundred, ΔInterIso
    "ColBERT-cosreg": (45.54, -0.01),
    "ColBERT-istar": (45.75, 0.01),
    "ColBERT-λ": (46.12, 0.5),
    "HIL": (46.7, 0.99),
}
EASY = {  # table 4, BEIR
    "BM25": 87.1,
    "ColBERT": 82.15,
    "InterIso -0.1": 76.54,
    "H of HIL": 81.22,
    "ColBERT-λ": 82.4,
    "HIL": 83.85,
}
ABLATIONS = {  # table 5: BEIR in full, ΔInterIso
    "HIL without regularisers": (43.6, 0.24),
    "HIL without reg_H": (43.84, 0.29),
    "HIL without reg_L": (44.54, 0.94),
    "HIL": (44.8, 0.99),
}
SAME = {"ColBERT": 42.32, "ColBERT-λ": 42.52, "HIL": 44.8}  # table 6, of the passages that HIL retrieved
CITADEL = {"CITADEL": 38.03, "CITADEL-HIL": 40.32}  # table 7: reranked
STARTED = {  # table 8: in full, from a trained ColBERT; the paper has ColBERTv2 itself next to ColBERTv2-HIL
    "ColBERT": 46.4,
    "ColBERT, half as long again": None,
    "HIL from ColBERT": 46.61,
    "HIL λ +0.3 from ColBERT": None,
}
LONGER = {"ColBERT, 300 positions": 42.23, "HIL, 300 positions": 45.25}  # table 9: in full
ALPHA = 0.01  # of the paper's †: better than ColBERT by a paired t-test
MODULES = {  # whose InterIso is subtracted from whose
    "ColBERT-λ": ("InterIso -0.1|tokens", "InterIso +0.4|tokens"),
    "ColBERT-cosreg": ("CosReg -0.1|tokens", "CosReg +0.2|tokens"),
    "ColBERT-istar": ("I-STAR -0.6|tokens", "I-STAR +0.2|tokens"),
    **{
        f"ColBERT-λ {weight:+g}": (f"InterIso {weight:+g}|tokens", "InterIso +0.4|tokens")
        for weight in ANISO[1:]
    },
}


def show(found):
    """Every table that its rows have been trained for."""
    measured = found["collections"]
    print(
        f"nDCG@10 × 100, means over {', '.join(measured)}; in brackets the paper's. ΔInterIso is "
        "InterIso of H − of L over every query and each of BM25's first hundred documents for it."
    )
    _table2(measured)
    _simple(measured, "3: BM25's best hundred reranked, ΔInterIso", "rerank", RERANKED)
    _table4(measured)
    _simple(measured, "5: ablations in full ranking, ΔInterIso", "full", ABLATIONS)
    _plain(measured, "6: HIL's best hundred reranked", "same", SAME)
    _table7(measured)
    _plain(measured, "8: HIL from a trained ColBERT, in full", "full", STARTED)
    _plain(measured, "9: trained and ranked with 300 positions of a document, in full", "full", LONGER)
    _others(measured)


def value(measured, system, what):
    """nDCG@10 × 100 of a system, mean over the collections; None where it was not trained."""
    if system == "BM25":
        cells = [
            {"full": c["BM25"], "rerank": c["BM25"], "same": None, "easy": c["BM25"]["easy"]}
            for c in measured.values()
        ]
    else:
        cells = [c["systems"].get(system) for c in measured.values()]
    if None in cells or cells[0].get(what) is None:
        return None
    return 100 * mean(cell[what] if what == "easy" else cell[what]["nDCG@10"] for cell in cells)


def inter_iso(measured, part):
    """InterIso of a row's set over BM25's pairs, mean over the collections; None where it was not trained."""
    values = [c["inter_iso"].get(part) for c in measured.values()]
    return None if None in values else mean(values)


def delta(measured, system):
    """InterIso of H − of L over BM25's pairs, of an ensemble or of a model with both; None of others."""
    high, low = MODULES.get(system, (f"{system}|h", f"{system}|l"))
    ends = inter_iso(measured, high), inter_iso(measured, low)
    return None if None in ends else ends[0] - ends[1]


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def _cell(number, paper=None, form=".2f"):
    return "" if number is None else f"{number:{form}}" + ("" if paper is None else f" ({paper:{form}})")


def _head(title, columns):
    print(f"\n## Table {title}\n\n| {' | '.join(columns)} |\n|" + "---|" * len(columns))


def _table2(measured):
    _head("2: full ranking", ["", *measured, "mean", "over BM25", "over ColBERT", "p, all queries"])
    for system, paper in FULL.items():
        ours = value(measured, system, "full")
        if ours is None:
            continue
        cells = [c["BM25"] if system == "BM25" else c["systems"][system]["full"] for c in measured.values()]
        marks = ["†" if better(system, [c]) else "" for c in measured.values()]
        each = [f"{100 * cell['nDCG@10']:.2f}{mark}" for cell, mark in zip(cells, marks, strict=True)]
        over = [
            _cell(None if base is None else ours - base, paper - FULL[name], "+.2f")
            for name in ("BM25", "ColBERT")
            for base in [value(measured, name, "full")]
        ]
        p = over_colbert(system, measured.values())
        said = "" if p is None else f"{p[1]:.3f}"
        print(f"| {system} | {' | '.join(each)} | {_cell(ours, paper)} | {' | '.join(over)} | {said} |")


def over_colbert(system, cells):
    """Mean gain over ColBERT of the queries of some collections, and p of a two-sided paired t-test.

    None of ColBERT itself, and where the values of single queries were not saved.
    """
    pairs = [[c["systems"].get(name, {}).get("queries") for name in (system, "ColBERT")] for c in cells]
    if system == "ColBERT" or any(None in pair for pair in pairs):
        return None
    gaps = np.array([ours[query] - base[query] for ours, base in pairs for query in ours])
    return float(gaps.mean()), paired_t_test(gaps).p_value


def better(system, cells):
    """Whether a system is significantly better than ColBERT."""
    found = over_colbert(system, cells)
    return found is not None and found[0] > 0 and found[1] < ALPHA


def _simple(measured, title, what, rows):
    _head(title, ["", "nDCG@10", "ΔInterIso"])
    for system, (paper, apart) in rows.items():
        if (ours := value(measured, system, what)) is not None:
            print(f"| {system} | {_cell(ours, paper)} | {_cell(delta(measured, system), apart)} |")


def _table4(measured):
    _head("4: BM25-easy (the half of the queries that BM25 ranks best), reranked", ["", "nDCG@10"])
    for system, paper in EASY.items():
        if (ours := value(measured, system, "easy")) is not None:
            print(f"| {system} | {_cell(ours, paper)} |")
    limits = ", ".join(f"{name} {c['easiest of the others']:.3f}" for name, c in measured.items())
    print(f"\nBM25's nDCG@10 of the last query that counts as easy: {limits}. Ties go by query id.")


def _plain(measured, title, what, rows):
    _head(title, ["", "nDCG@10"])
    for system, paper in rows.items():
        if (ours := value(measured, system, what)) is not None:
            print(f"| {system} | {_cell(ours, paper)} |")


def _table7(measured):
    there = {name: c["citadel"] for name, c in measured.items() if c.get("citadel")}
    if there:
        _head("7: BM25's best hundred reranked by CITADEL", ["", *there, "mean"])
    for system, paper in CITADEL.items():
        if there and all(system in found for found in there.values()):
            each = [100 * found[system]["nDCG@10"] for found in there.values()]
            cells = " | ".join(f"{number:.2f}" for number in each)
            print(f"| {system} | {cells} | {_cell(mean(each), paper)} |")


def _others(measured):
    print("\n## Every row\n\n| | full | reranked | BM25-easy | InterIso by set |\n|---|---|---|---|---|")
    for system in next(iter(measured.values()))["systems"]:
        sets = [(on, inter_iso(measured, f"{system}|{on}")) for on in ("tokens", "l", "h")]
        said = ", ".join(f"{on} {number:.3f}" for on, number in sets if number is not None)
        cells = [_cell(value(measured, system, what)) for what in ("full", "rerank", "easy")]
        print(f"| {system} | {' | '.join(cells)} | {said} |")


# -- pictures ----------------------------------------------------------------------------------------------


def draw(found, folder):
    """Figures 4, 7 and 8 where their rows were trained."""
    folder.mkdir(parents=True, exist_ok=True)
    measured = found["collections"]
    for name, made in (
        ("figure4", _figure4(measured)),
        ("figure7", _figure7(measured)),
        ("figure8", _figure8(found["curves"])),
    ):
        if made is not None:
            made.save(folder / f"{name}.svg")


def _figure4(measured):
    """ColBERT-λ with ever more anisotropic modules: effectiveness and ΔInterIso."""
    points = []
    for weight in ANISO:
        system = "ColBERT-λ" if weight == ANISO[0] else f"ColBERT-λ {weight:+g}"
        if (quality := value(measured, system, "rerank")) is not None:
            points.append((weight, quality, delta(measured, system)))
    return _two_axes("λ of ColBERT-aniso", {"nDCG@10, reranked": points}, "ΔInterIso") if points else None


def _figure7(measured):
    """ColBERT-iso and -aniso over λ: effectiveness and InterIso."""
    series = {}
    for name, weights in (("ColBERT-iso", ISO), ("ColBERT-aniso", ANISO)):
        found = [
            (w, value(measured, f"InterIso {w:+g}", "rerank"), inter_iso(measured, f"InterIso {w:+g}|tokens"))
            for w in sorted(weights)
        ]
        series[name] = [point for point in found if point[1] is not None]
    return _two_axes("λ", series, "InterIso") if any(series.values()) else None


def _two_axes(label, series, second):
    """Effectiveness as lines on the left axis, InterIso dashed on the right one."""
    made = picture(6, 4)
    right = made.axes.twinx()
    for colour, (name, points) in zip(PALETTE, series.items(), strict=False):
        if points:
            at, quality, inter = zip(*sorted(points), strict=True)
            made.axes.plot(at, quality, color=colour, marker="o", label=name)
            right.plot(at, inter, color=colour, linestyle="--", marker=".")
    made.axes.set_xlabel(label)
    made.axes.set_ylabel("nDCG@10 × 100, reranked")
    right.set_ylabel(f"{second} (dashed)")
    made.axes.legend(loc="best")
    return made


def _figure8(curves):
    """ΔInterIso of the batches and nDCG@10 of the queries held out, over training steps."""
    names = [name for name in CURVES if curves.get(name, {}).get("nDCG@10")]  # not of --no-curves
    if not names:
        return None
    made = picture(6, 4)
    right = made.axes.twinx()
    for colour, name in zip(PALETTE, names, strict=False):
        found = curves[name]
        low = dict(map(tuple, found["l"]))
        apart = [(step, high - low[step]) for step, high in found["h"] if step in low]
        right.plot(*zip(*apart, strict=True), color=colour, linestyle="--")
        made.axes.plot(*zip(*found["nDCG@10"], strict=True), color=colour, marker="o", label=name)
    made.axes.set_xlabel("step")
    made.axes.set_ylabel("nDCG@10, queries held out")
    right.set_ylabel("ΔInterIso of the batches (dashed)")
    made.axes.legend(loc="best")
    return made
