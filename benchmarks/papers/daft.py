"""DAFT's claims on real text with encoders cut from MiniLM: who collapses, who does not, what layers cost.

    python -m benchmarks.papers.daft collapse DATA/squad11-dev -o RUNS [--jobs 2]
    python -m benchmarks.papers.daft layers DATA/squad11-dev -o RUNS
    python -m benchmarks.papers.daft grid DATA/squad11-dev -o RUNS --seeds 0 1 2 [--steps 350]

`collapse` trains a query encoder of two layers with several document encoders, with and without alignment
and with the batch as negatives, and leaves out one part of the model after another. `layers` trains query
encoders of 2, 4 and 6 layers beside MiniLM's whole and times them. `grid` trains with and without alignment
at two learning rates and with several seeds, and tests the differences (`daft_grid.py`). Every row is a run
of `counterpoint train` in a folder of its own (its recipe is written beside it), so a benchmark that was
stopped goes on where it was.
"""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.common import parser_of
from benchmarks.papers.daft_grid import MEASURES, cells, differences_of, grid
from benchmarks.papers.daft_rows import CANDIDATES, EQUAL_SCORES, collapse_rows, layer_rows
from benchmarks.papers.seeds import print_table

from counterpoint.encode import EncodeOptions
from counterpoint.loading import load_model


def folder_of(name, arguments):
    return arguments.output / name.replace(", ", "-").replace("; ", "--").replace(" ", "-")


def carry_out(name, recipe, arguments):
    """Train unless it has been; a run that was stopped goes on."""
    folder = folder_of(name, arguments)
    if not (folder / "model").is_dir():
        arguments.output.mkdir(parents=True, exist_ok=True)
        path = folder.with_suffix(".toml")
        path.write_text(recipe.to_toml())
        command = [sys.executable, "-m", "counterpoint", "train", path, "--data", arguments.data]
        command += ["-o", folder, *(["--resume"] if folder.is_dir() else [])]
        threads = {} if arguments.jobs == 1 else {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=os.environ | threads, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"{name}: {done.stderr}")
        print(f"{name}: done", file=sys.stderr, flush=True)
    return described(folder)


def described(folder):
    """What came of a run, from its log."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    last = {"align": {}, "fine-tune": {}}
    for line in lines:
        last[line["stage"]] |= line
    end, aligned = last["fine-tune"], last["align"]
    losses = [line["loss"] for line in lines if line["stage"] == "fine-tune" and "loss" in line][-5:]
    estimates = [line["alignment.kl"] for line in lines if "alignment.kl" in line]
    names = {"cos": "cosine", "rank": "rank"}
    sides = {
        f"{short} {side[0]}": end[f"watch.v.{side}.{name}"]
        for side in ("document", "query")
        for short, name in names.items()
    }
    found = {"loss": sum(losses) / len(losses), **sides, "nDCG@10": end["nDCG@10"], "R@100": end["R@100"]}
    if estimates:
        found["KL"] = f"{estimates[0]:.0f} to {estimates[-1]:.0f}"
    if aligned:
        found["aligned"] = f"{aligned['step']} steps, {aligned.get('stopped', 'budget').split(':')[0]}"
    return found


def add_latencies(rows, arguments):
    """Time the query encoders on one thread, one query at a time, tokenising included."""
    import torch

    from counterpoint.data import open_collection

    torch.set_num_threads(1)
    collection = open_collection(arguments.data, passage_words=None)
    queries = list(collection.queries("test").values())[:200]
    for name, row in rows.items():
        model = load_model(folder_of(name, arguments))
        row["ms a query"] = sorted(_pass(model, queries) for _ in range(4))[1]
    for row, more in zip(rows.values(), savings([row["ms a query"] for row in rows.values()]), strict=True):
        row |= more


def savings(milliseconds):
    """Of each, beside the slowest: how many percent less it takes, and how many times faster it is."""
    slowest = max(milliseconds)
    return [{"% less": 100 * (1 - one / slowest), "times faster": slowest / one} for one in milliseconds]


def _pass(model, queries):
    started = time.perf_counter()
    for query in queries:
        model.encode_query([query], EncodeOptions(precision="fp32"))
    return 1000 * (time.perf_counter() - started) / len(queries)


def show_grid(arguments):
    found = grid(arguments)
    print_table(cells(found))
    for measure in MEASURES:
        if table := differences_of(found, measure):
            print(f"\n{measure}:")
            print_table(table)
    return {f"{cell}; seed {seed}": row for (cell, seed), row in found.items()}


def show_rows(arguments):
    recipes = collapse_rows() if arguments.what == "collapse" else layer_rows()
    chosen = {name: r for name, r in recipes.items() if any(part in name for part in arguments.only)}
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {name: pool.submit(carry_out, name, recipe, arguments) for name, recipe in chosen.items()}
        rows = {name: future.result() for name, future in waiting.items()}
    if arguments.what == "layers":
        add_latencies(rows, arguments)
    print_table(rows)
    return rows


def main():
    parser = parser_of(__doc__)
    parser.add_argument("what", choices=["collapse", "layers", "grid"])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each where above 1")
    parser.add_argument("--only", nargs="*", default=[""], help="rows, by a part of their names")
    parser.add_argument("--json", type=Path)
    of_grid = parser.add_argument_group("grid")
    of_grid.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    of_grid.add_argument("--documents", nargs="+", default=["mean, far"], help="document encoders")
    of_grid.add_argument("--steps", type=int, default=350, help="of each row")
    of_grid.add_argument("--align", type=int, default=200, help="how many of them align, in rows that do")
    arguments = parser.parse_args()
    print(f"loss of equal scores ln(1 + {CANDIDATES}) = {EQUAL_SCORES:.3f}")
    rows = (show_grid if arguments.what == "grid" else show_rows)(arguments)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
