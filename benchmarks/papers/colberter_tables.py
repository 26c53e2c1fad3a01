"""Tables and the picture of what `colberter.py` measured, with the paper's figures next to them."""

from benchmarks.papers.colberter_effects import STANDALONE

from counterpoint.measure import stored_bytes
from counterpoint.plots.tradeoff import Point, tradeoff

NUMBERS = {"dense": "4", "words": "5", "dense-words": "2", "words-dense": "3", "hybrid": "1"}
PAPER = {  # Hofstätter et al. 2022, on TREC-DL 19 and 20: nDCG@10 and R@1K
    "tokens 32, fixed, α_CLS 0": {"dense-words": (0.684, 0.565)},  # table 2, line 1
    "tokens 32, α_CLS 0.1": {"dense-words": (0.726, 0.783)},
    "tokens 32, α_CLS 0.2": {"dense-words": (0.728, 0.794)},
    "tokens 32": {"dense-words": (0.734, 0.807)},  # line 4
    "tokens 32, α_CLS 1": {"dense-words": (0.730, 0.806)},
    "words 32, α_CLS 0.5": {"dense-words": (0.731, 0.815)},  # table 3, line 1
    "words 32, α_CS 1, α_CLS 0.5": {"dense-words": (0.731, 0.811)},  # line 3
    "words 32": {"dense-words": (0.736, 0.806)},  # table 3, line 2
    "words 32, α_CS 0.5": {"dense-words": (0.725, 0.806)},  # line 6
    "words 32, α_CS 0.75": {"dense-words": (0.730, 0.805)},  # line 5
    "words 32, α_CS 1": {"dense-words": (0.729, 0.802)},  # line 4
    "words 8, α_CS 0.75, exact": {  # table 4; which of 2 and 3 is which as its text has it
        "words": (0.323, 0.780),
        "dense": (0.669, 0.795),
        "words-dense": (0.730, 0.780),
        "dense-words": (0.733, 0.795),
        "hybrid": (0.734, 0.873),
    },
    "words 1, α_CS 0.75, exact": {
        "words": (0.280, 0.758),
        "dense": (0.674, 0.789),
        "words-dense": (0.724, 0.758),  # printed .673, which a refinement of line 2 cannot have
        "dense-words": (0.727, 0.789),
        "hybrid": (0.728, 0.865),
    },
}
STOPPED = {  # table 3, per cent
    "words 32, α_CS 0.5": 15,
    "words 32, α_CS 0.75": 29,
    "words 32, α_CS 1": 36,
    "words 32, α_CS 1, α_CLS 0.5": 33,
}
REFINED = {  # table 2, column TAS: nDCG@10 on TREC-DL, and R@1K, which is TAS-B's own
    "tokens 32, fixed, α_CLS 0": (0.740, 0.861),
    "tokens 32, α_CLS 0.1": (0.728, 0.861),
    "tokens 32, α_CLS 0.2": (0.731, 0.861),
    "tokens 32": (0.734, 0.861),
    "tokens 32, α_CLS 1": (0.730, 0.861),
}


def show(found):
    """Means over the collections, then each collection by itself."""
    names = list(next(iter(found.values()))["rows"])
    _effectiveness(found, names)
    _refinement(found, names)
    _storage(found, names)
    _collections(found, names)


def mean(values):
    values = list(values)
    return sum(values) / len(values)


def _effectiveness(found, names):
    print("## Workflows: nDCG@10 / R@100, mean over the collections; the paper's nDCG@10 / R@1K of TREC-DL\n")
    columns = ", ".join(f"{number} {name}" for name, number in NUMBERS.items()).split(", ")
    print("| model | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for name in names:
        cells = []
        for workflow in NUMBERS:
            ours = [c["rows"][name]["workflows"].get(workflow) for c in found.values()]
            if None in ours:
                cells.append("")
                continue
            cells.append(_pair(ours, PAPER.get(name, {}).get(workflow)))
        print(f"| {name} | " + " | ".join(cells) + " |")
    bm25 = [c["BM25"] for c in found.values()]
    print(f"\nBM25: {mean(m['nDCG@10'] for m in bm25):.3f} / {mean(m['R@100'] for m in bm25):.3f}\n")


def _refinement(found, names):
    print("## Refined candidates (table 2): nDCG@10 / R@100; the paper's nDCG@10 / R@1K of TREC-DL\n")
    print("| model | its own (Own) | of a standalone retriever (TAS) |\n|---|---|---|")
    for name in names:
        cells = [c["rows"][name] for c in found.values()]
        own = [cell["workflows"]["dense-words"] for cell in cells]
        columns = (
            (own, PAPER.get(name, {}).get("dense-words")),
            ([cell["refined"] for cell in cells], REFINED.get(name)),
        )
        print(f"| {name} | " + " | ".join(_pair(ours, paper) for ours, paper in columns) + " |")
    print(f"\nThe standalone retriever alone: {_pair([c[STANDALONE] for c in found.values()], None)}\n")


def _pair(ours, paper):
    cell = f"{mean(m['nDCG@10'] for m in ours):.3f} / {mean(m['R@100'] for m in ours):.3f}"
    return cell + (f" (paper {paper[0]:.3f} / {paper[1]:.3f})" if paper else "")


def stored(found, name):
    """Bytes a document as the paper counts them: fp16 components, four an id where words match exactly."""
    cells = [c["rows"][name] for c in found.values()]
    documents = sum(c["documents"] for c in found.values())
    vectors = sum(cell["vectors"] for cell in cells) / documents
    return stored_bytes(1, vectors, cells[0]["dim"], exact=cells[0]["exact"])


def quality(found, name, workflow="dense-words"):
    """nDCG@10, mean over the collections."""
    return mean(c["rows"][name]["workflows"][workflow]["nDCG@10"] for c in found.values())


def text_size(found):
    """Bytes of plain text a document."""
    return sum(c["text"] for c in found.values()) / sum(c["documents"] for c in found.values())


def _storage(found, names):
    print("## Storage: vectors a document, share dropped by the gate, bytes, factor over plain text\n")
    print("| model | vectors | dropped | paper | bytes a document | over the text | nDCG@10, workflow 2 |")
    print("|---|---|---|---|---|---|---|")
    documents, text = sum(c["documents"] for c in found.values()), text_size(found)
    counts = {name: sum(c["rows"][name]["vectors"] for c in found.values()) for name in names}
    whole = counts.get("words 32", counts.get("words 32, long"))
    for name in names:
        gated = "α_CS" in name and whole
        dropped = f"{100 * (1 - counts[name] / whole):.0f} %" if gated else ""
        paper = f"{STOPPED[name]} %" if name in STOPPED else ""
        size = stored(found, name)
        print(
            f"| {name} | {counts[name] / documents:.1f} | {dropped} | {paper} | {size:,.0f} "
            f"| {size / text:.2f} | {quality(found, name):.3f} |"
        )
    print()


def figure4(found):
    """Workflow 2 against the bytes of the table, with the single vector, BM25 and the size of the text."""
    rows = next(iter(found.values()))["rows"]
    points = [_point(found, name, row) for name, row in rows.items()]
    alone = mean(quality(found, name, "dense") for name in rows)  # their single vectors hardly differ
    points.append(
        Point(
            stored_bytes(1, 0, 0),
            alone,
            "mean of all rows",
            "single vector alone (workflow 4)",
            "128 components",
        )
    )
    made = tradeoff(points, cost="bytes a document", value="nDCG@10, mean over the collections")
    bm25, text = mean(c["BM25"]["nDCG@10"] for c in found.values()), text_size(found)
    grey = {"color": "#555555", "linestyle": "--", "linewidth": 1}
    made.axes.axhline(bm25, **grey)
    made.axes.axvline(text, **grey)
    place = made.axes.get_yaxis_transform(), made.axes.get_xaxis_transform()
    made.axes.text(0.99, bm25 + 0.0005, "BM25", transform=place[0], ha="right", va="bottom", fontsize=8)
    made.axes.text(text * 1.03, 0.99, "plain text", transform=place[1], ha="left", va="top", fontsize=8)
    return made


def _point(found, name, row):
    vectors, _, rest = name.partition(" ")
    kind = [vectors, *["gate"] * ("α_CS" in name), *["exact"] * row["exact"]]
    label = rest.partition(" ")[2].removesuffix(", exact") or rest
    size = f"{row['dim']} component" + "s" * (row["dim"] > 1)
    return Point(stored(found, name), quality(found, name), label, ", ".join(kind), size)


def _collections(found, names):
    print("## nDCG@10 by collection\n")
    chosen = [
        ("tokens 32", "dense-words"),
        ("words 32", "dense-words"),
        ("words 32, α_CS 0.75", "dense-words"),
        ("words 1, α_CS 0.75, exact", "dense-words"),
        ("words 1, α_CS 0.75, exact", "hybrid"),
        ("tokens 32, long", "dense-words"),
        ("words 32, long, α_CS 0.1, gate 1.075", "dense-words"),
    ]
    chosen = [(name, workflow) for name, workflow in chosen if name in names]
    print("| collection | BM25 | " + " | ".join(f"{n}; {NUMBERS[w]}" for n, w in chosen) + " |")
    print("|" + "---|" * (len(chosen) + 2))
    for collection, seen in found.items():
        cells = [seen["rows"][name]["workflows"][workflow]["nDCG@10"] for name, workflow in chosen]
        print(
            f"| {collection} | {seen['BM25']['nDCG@10']:.3f} | "
            + " | ".join(f"{c:.3f}" for c in cells)
            + " |"
        )
