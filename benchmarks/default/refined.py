"""How many candidates the words score: `SearchSettings.refined`, chosen on training queries alone.

    python -m benchmarks.default.refined DATA/nq-qed DATA/squad11-dev DATA/scifact DATA/mqp DATA/conala
        DATA/perspectrum DATA/nl2bash --work FOLDER [--queries 1000] [--json FILE]

Of each collection, queries of the split `train` are drawn and searched in its default index, FOLDER/NAME,
which is built if it is not there: with every candidate scored, and with each number below. For each number:
the share of the complete search's best ten that are found, and nDCG@10.

The rule: the smallest number with which, on every collection, the share is at least .998 and nDCG@10 is at
most .0005 lower than that of the complete search.
"""

import argparse
import json
import random
import sys
from pathlib import Path

import numpy as np
from benchmarks.common import parser_of

import counterpoint as cp
from counterpoint.data import open_collection
from counterpoint.measure import evaluate

NUMBERS = (50, 64, 100, 128, 150, 200)
EVERY = 10**9
DEPTH, MEASURE = 10, "nDCG@10"
KEPT, LOST = 0.998, 0.0005


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("collections", nargs="+", type=Path, help="folders in BEIR layout")
    parser.add_argument("--work", type=Path, required=True, help="folder of the indexes; used again if there")
    parser.add_argument("--queries", type=int, default=1000, help="drawn of each collection")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="save what is printed")
    options = parser.parse_args()
    if options.json and not options.json.parent.is_dir():
        sys.exit(f"--json {options.json}: there is no such folder")
    found = {path.name: measured(path, options) for path in options.collections}
    print(text(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


def measured(source: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """By number: the documents that are scored for a query, the share kept and the measure."""
    collection, folder = open_collection(source), options.work / source.name
    queries, qrels = collection.queries("train"), collection.qrels("train")
    judged = sorted(qrels)
    drawn = random.Random(options.seed).sample(judged, min(options.queries, len(judged)))
    asked = {query: queries[query] for query in drawn}
    if not folder.is_dir():
        cp.index(source, folder)
    found = {}
    with cp.open(folder) as notes:
        best: dict[str, set[str]] = {}
        for number in (EVERY, *NUMBERS):
            searcher = notes.searcher(refined=number)
            run = searcher.run(asked, DEPTH)
            ranked = {query: {document for document, _ in run[query]} for query in asked}
            best = best or ranked
            scored = [len(each.positions) for _, each in searcher.candidates(asked, DEPTH)]
            found["all" if number == EVERY else str(number)] = {
                "scored": float(np.mean(scored)),
                "kept": float(np.mean([share(best[query], ranked[query]) for query in asked])),
                MEASURE: evaluate(run, {query: qrels[query] for query in drawn}, [MEASURE]).measures[MEASURE],
            }
    return found


def share(wanted: set[str], found: set[str]) -> float:
    """The share of the documents wanted that are found."""
    return len(wanted & found) / len(wanted) if wanted else 1.0


def chosen(found: dict[str, dict[str, dict[str, float]]]) -> str:
    """The smallest number that meets the rule on every collection; all of them if none does."""
    for number in map(str, NUMBERS):
        if all(
            each[number]["kept"] >= KEPT and each["all"][MEASURE] - each[number][MEASURE] <= LOST
            for each in found.values()
        ):
            return number
    return "all"


def text(found: dict[str, dict[str, dict[str, float]]]) -> str:
    lines = [f"{'collection':14}{'refined':>8}{'scored':>8}{'kept':>8}{MEASURE:>9}"]
    for name, each in found.items():
        lines += [
            f"{name:14}{number:>8}{values['scored']:8.1f}{values['kept']:8.4f}{values[MEASURE]:9.4f}"
            for number, values in each.items()
        ]
    return "\n".join([*lines, "", f"chosen: {chosen(found)}"])


if __name__ == "__main__":
    main()
