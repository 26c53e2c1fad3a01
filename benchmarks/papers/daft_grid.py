"""The grid of `daft.py`: alignment and learning rate apart, over several seeds, with tests.

The document encoder of the grid was chosen before the grid was trained: `mean, far`. In `collapse` it ended
nearest to one point without alignment, and it ranked with alignment. Its vectors are in a space of their own,
as in the paper, whose two encoders share no initialisation.

A row with alignment trains `align` steps of the query encoder alone, then the other steps of both encoders.
A row without alignment trains all steps of both. Rows with and without alignment have the same rate at the
same step: 2e-5 or 2e-4 throughout, or 2e-4 for the first `align` steps and then 2e-5, as in `collapse`.
Queries of the test split are searched once, after training.
"""

import json
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from benchmarks.common import folder_of, train_rows
from benchmarks.papers.daft_rows import ALIGNED, Cls, light, model_of, recipe_of, stages_of
from benchmarks.papers.seeds import differences, spread

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.search import Searcher

RATES = {  # of the first `align` steps, and of the others
    "2e-05": (2e-5, 2e-5),
    "2e-04": (2e-4, 2e-4),
    "2e-04 then 2e-05": (2e-4, 2e-5),
}
CONSTANT = "2e-05"  # what other rates are compared with
MEASURES = ("nDCG@10", "R@100")


class Cell(NamedTuple):
    """What rows of the grid have in common that differ only in their seed."""

    documents: str
    arm: str
    rate: str

    def __str__(self):
        return f"{self.documents}; {self.arm}; {self.rate}"


def grid_rows(documents, seeds, steps, align):
    """Recipes by cell and seed. All cells of a seed come before the next seed."""
    return {
        (cell := Cell(name, arm, rate), seed): recipe_of(
            f"{cell}; {steps} steps; seed {seed}",
            model_of(name, light(Cls()), 48, shared=True),
            grid_stages(arm, RATES[rate], steps, align),
            seed,
            held_out=0,
        )
        for seed, name, arm, rate in product(seeds, documents, ALIGNED, RATES)
    }


def grid_stages(arm, rates, steps, align):
    """One stage of both encoders if nothing changes on the way, two stages otherwise."""
    if arm == ALIGNED[0] and len(set(rates)) == 1:
        stages = stages_of(arm, steps, 0)
    else:
        stages = stages_of("alignment", steps - align, align)
    if arm == ALIGNED[0] and len(stages) == 2:
        stages[0] = replace(stages[0], name="first", learn=("*",))
    return [
        replace(stage, lr=rate, stop=None, evaluate_every=50)
        for stage, rate in zip(stages, rates[-len(stages) :], strict=True)
    ]


def grid(arguments):
    """Train and measure all rows; those that are done are read. Returns what was found by cell and seed."""
    rows = grid_rows(arguments.documents, arguments.seeds, arguments.steps, arguments.align)
    chosen = {key: one for key, one in rows.items() if any(part in one.name for part in arguments.only)}
    arguments.output.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(arguments.jobs) as pool:
        waiting = {key: pool.submit(_carried_out, recipe, arguments) for key, recipe in chosen.items()}
        return {key: future.result() for key, future in waiting.items()}


def _carried_out(recipe, arguments):
    train_rows({recipe.name: recipe}, folder_of, arguments, "--data", arguments.data)
    folder = folder_of(recipe.name, arguments.output)
    return {**_end_of(folder), "queries": _per_query(folder, arguments.data)}


def _end_of(folder):
    """The loss of the last steps and the last look at the vectors."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    lines = [line for line in lines if line["stage"] == "fine-tune"]
    watched = [line for line in lines if "watch.v.document.cosine" in line][-1]
    return {
        "loss": mean([line["loss"] for line in lines if "loss" in line][-5:]),
        "cos d": watched["watch.v.document.cosine"],
        "cos q": watched["watch.v.query.cosine"],
    }


def _per_query(folder, data):
    """Each measure of every query of the test split; measured once."""
    path = folder / "test.json"
    if not path.is_file():
        collection, model = open_collection(data, passage_words=None), load_model(folder)
        settings = model.index_settings(lexical=None, codec="float32")
        with tempfile.TemporaryDirectory() as place:
            where = Path(place) / "index"
            build_index(collection.documents(), model, where, settings, keep_model=False)
            with Index(where) as index:
                run = Searcher(index, model).run(collection.queries("test"), 100, workflow="hybrid")
        found = evaluate(run, collection.qrels("test"), MEASURES).per_query
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps({name: dict(values) for name, values in found.items()}))
        partial.rename(path)
    return json.loads(path.read_text())


# -- tables ------------------------------------------------------------------------------------------------


def cells(found):
    """By cell: its seeds, and of each number the mean over them with the lowest and the highest."""
    table = {}
    for cell in dict.fromkeys(cell for cell, _ in found):
        rows = {seed: row for (one, seed), row in found.items() if one == cell}
        numbers = {name: [row[name] for row in rows.values()] for name in ("loss", "cos d", "cos q")}
        numbers |= {name: [mean(row["queries"][name].values()) for row in rows.values()] for name in MEASURES}
        ranges = {name: spread(values) for name, values in numbers.items()}
        table[str(cell)] = {"seeds": " ".join(map(str, rows)), **ranges}
    return table


def contrasts(found):
    """Pairs of cells that differ in the arm or in the rate alone: (treatment, control)."""
    known = dict.fromkeys(cell for cell, _ in found)
    pairs = [(cell, cell._replace(arm=ALIGNED[0])) for cell in known if cell.arm != ALIGNED[0]]
    pairs += [(cell, cell._replace(rate=CONSTANT)) for cell in known if cell.rate != CONSTANT]
    return [(treatment, control) for treatment, control in pairs if control in known]


def differences_of(found, measure):
    """The differences of all contrasts, by `seeds.differences`."""
    of_queries = {key: row["queries"][measure] for key, row in found.items()}
    return differences(of_queries, contrasts(found))
