"""DAFT's claims on real text with encoders cut from MiniLM: who collapses, who does not, what layers cost.

    python -m benchmarks.papers.daft collapse DATA/squad11-dev -o RUNS [--seeds 1 2 3] [--jobs 2]
    python -m benchmarks.papers.daft layers DATA/squad11-dev -o RUNS [--seeds 1 2 3]
    python -m benchmarks.papers.daft grid DATA/squad11-dev -o RUNS --seeds 0 1 2 [--steps 350]
    python -m benchmarks.papers.daft show --json FILE [FILE ...]

`collapse` trains a query encoder of two layers with several document encoders, with and without alignment
and with the batch as negatives, and leaves out one part of the model after another. `layers` trains query
encoders of 2, 4 and 6 layers next to MiniLM's whole (`daft_times.py` times them). `grid` trains with and
without alignment at two learning rates (`daft_grid.py`). Every row is a run of `counterpoint train` in a
folder of its own (its recipe is written next to it), so a benchmark that was stopped goes on where it was.
Queries of the test split are searched once, after training, over all documents and over those that no
training query is judged for (`unseen`). Which rows are compared with which was fixed beforehand.

With `--json` every row is saved as soon as it has been measured; `show` prints what was saved, rows of the
same command together, so seeds may be trained apart.
"""

import argparse
import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from benchmarks.common import parser_of, read_json
from benchmarks.papers.daft_grid import contrasts, grid_rows
from benchmarks.papers.daft_measures import HELD_OUT, carried_out, cells, gaps_over_seeds, queries_of
from benchmarks.papers.daft_rows import (
    CANDIDATES,
    COLLAPSE_PAIRS,
    EQUAL_SCORES,
    LAYER_PAIRS,
    collapse_rows,
    layer_rows,
)
from benchmarks.papers.seeds import differences, print_table

ONLY = "rows, by regular expressions that match a part of their names"
PAIRS = {"collapse": COLLAPSE_PAIRS, "layers": LAYER_PAIRS}  # those of the grid follow from its rows


def measured(recipes, arguments):
    """Train and measure rows, and save each; those that are done are read. By row and seed, in order."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    found = {}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {pool.submit(carried_out, one, arguments): key for key, one in recipes.items()}
        for future in as_completed(waiting):
            found[waiting[future]] = future.result()
            save(found, arguments)
    return {key: found[key] for key in recipes}


def save(found, arguments):
    """Everything measured so far; a file that is half written never replaces the last one."""
    if arguments.json is None:
        return
    rows = [{"row": row, "seed": seed, **values} for (row, seed), values in found.items()]
    partial = arguments.json.with_suffix(".partial")
    partial.write_text(json.dumps({"what": arguments.what, "rows": rows}, indent=1), encoding="utf-8")
    partial.replace(arguments.json)


def load(paths):
    """What `save` wrote into some files, by command: rows in the order of seeds, as `measured` has them."""
    found = {}
    for path in paths:
        saved = read_json(path)
        found.setdefault(saved["what"], []).extend(saved["rows"])
    return {
        what: {(row.pop("row"), row.pop("seed")): row for row in sorted(rows, key=lambda row: row["seed"])}
        for what, rows in found.items()
    }


def show(what, found):
    """Print means over seeds, then the differences of each measure."""
    print(f"loss of equal scores ln(1 + {CANDIDATES}) = {EQUAL_SCORES:.3f}")
    print_table(cells(found))
    names = dict.fromkeys(row for row, _ in found)
    pairs = PAIRS[what] if what in PAIRS else contrasts(names)
    for measure in HELD_OUT:
        if table := gaps_over_seeds(found, measure, pairs):
            print(f"\n{measure}, differences with 95 % intervals over seeds:")
            print_table(table)
    for measure in next(iter(found.values()))["queries"]:
        if table := differences(queries_of(found, measure), pairs):
            print(f"\n{measure}:")
            print_table(table)


# -- command line ------------------------------------------------------------------------------------------


def recipes_of(arguments):
    """Rows of the command by name and seed, or those of them that `--only` names."""
    if arguments.what == "grid":
        rows = grid_rows(arguments.documents, arguments.seeds, arguments.steps, arguments.align)
    else:
        rows = {"collapse": collapse_rows, "layers": layer_rows}[arguments.what](arguments.seeds)
    chosen = {key: one for key, one in rows.items() if any(only.search(one.name) for only in arguments.only)}
    if not chosen:
        names = "\n".join(one.name for one in rows.values())
        sys.exit(f"no row's name has any of {[one.pattern for one in arguments.only]}; there are\n{names}")
    return chosen


def pattern(text):
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no regular expression ({error})") from None


def parsed():
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    for what, seeds in (("collapse", [1]), ("layers", [1]), ("grid", [0, 1, 2])):
        command = commands.add_parser(what)
        command.add_argument("data", type=Path)
        command.add_argument("-o", "--output", type=Path, required=True)
        command.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each above 1")
        command.add_argument("--only", nargs="*", type=pattern, default=[re.compile("")], help=ONLY)
        command.add_argument("--seeds", type=int, nargs="+", default=seeds)
        command.add_argument("--json", type=Path, help="save what was measured")
    grid = commands.choices["grid"]
    grid.add_argument("--documents", nargs="+", default=["mean, far"], help="document encoders")
    grid.add_argument("--steps", type=int, default=350, help="of each row")
    grid.add_argument("--align", type=int, default=200, help="how many of them align, in rows that do")
    shown = commands.add_parser("show")
    shown.add_argument("--json", type=Path, nargs="+", required=True, help="what was saved")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "show":
        for what, found in load(arguments.json).items():
            show(what, found)
        return
    show(arguments.what, measured(recipes_of(arguments), arguments))


if __name__ == "__main__":
    main()
