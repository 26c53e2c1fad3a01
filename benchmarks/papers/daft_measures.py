"""What comes of a row of `daft.py`: it is trained once, and its log and its test queries are measured."""

import json
import tempfile
from pathlib import Path
from statistics import mean

from benchmarks.common import folder_of, train_rows
from benchmarks.papers.seeds import spread_with_interval, t_interval

from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.search import Searcher

MEASURES = ("nDCG@10", "R@100")
HELD_OUT = tuple(f"held out: {name}" for name in MEASURES)  # training queries that are held out
UNSEEN = tuple(f"unseen: {name}" for name in MEASURES)  # over documents that training did not see


def carried_out(recipe, arguments):
    """Train a row and measure it, unless that has been done: what its log says, and `queries`."""
    train_rows({recipe.name: recipe}, folder_of, arguments, "--data", arguments.data)
    folder = folder_of(recipe.name, arguments.output)
    return {**described(folder), "queries": _per_query(folder, arguments.data)}


def described(folder):
    """What came of a run, from its log: the last losses, the last look at the vectors, and its alignment."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    ending = [line for line in lines if line["stage"] == "fine-tune"]
    aligning = [line for line in lines if line["stage"] == "align"]
    watched = [line for line in ending if "watch.v.document.cosine" in line][-1]
    found = {"loss": mean([line["loss"] for line in ending if "loss" in line][-5:])}
    for side in ("document", "query"):
        for short, name in (("cos", "cosine"), ("rank", "rank")):
            found[f"{short} {side[0]}"] = watched[f"watch.v.{side}.{name}"]
    for measure, name in zip(MEASURES, HELD_OUT, strict=True):
        if values := [line[measure] for line in ending if measure in line]:
            found[name] = values[-1]
    if estimates := [line["alignment.kl"] for line in lines if "alignment.kl" in line]:
        found |= {"KL first": float(estimates[0]), "KL last": float(estimates[-1])}
    if aligning:
        stopped = [line["stopped"] for line in aligning if "stopped" in line]
        ended = stopped[0].split(":")[0] if stopped else "budget"
        found["aligned"] = f"{aligning[-1]['step']} steps, {ended}"
    return found


def _per_query(folder, data):
    """Each measure of every query of the test split, over all documents and over the unseen; measured once.

    A model may draw all queries to the documents it was trained with. If the splits share no document, as in
    SQuAD's by article, those of the test split then rank below them, collapsed or not. So test queries also
    search the documents that no training query is judged for.
    """
    path = folder / "test.json"
    found = json.loads(path.read_text()) if path.is_file() else {}
    if found.keys() < {*MEASURES, *UNSEEN}:
        collection, model = open_collection(data, passage_words=None), load_model(folder)
        seen = {document for judged in collection.qrels("train").values() for document in judged}
        unseen = [document for document in collection.documents() if document.id not in seen]
        found = _searched(model, collection, collection.documents())
        found |= zip(UNSEEN, _searched(model, collection, unseen).values(), strict=True)
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(found))
        partial.rename(path)
    return found


def _searched(model, collection, documents):
    """By measure: the value of every query of the test split, some documents searched in full."""
    settings = model.index_settings(lexical=None, codec="float32")
    with tempfile.TemporaryDirectory() as place:
        where = Path(place) / "index"
        build_index(iter(documents), model, where, settings, keep_model=False)
        with Index(where) as index:
            run = Searcher(index, model).run(collection.queries("test"), 100, workflow="hybrid")
    found = evaluate(run, collection.qrels("test"), MEASURES).per_query
    return {name: dict(found[name]) for name in MEASURES}


def cells(found):
    """By row: its seeds, and of each number the mean over them, the lowest and the highest, and the interval.

    Args:
        found: by row and seed, what `carried_out` returned.
    """
    table = {}
    for row in dict.fromkeys(row for row, _ in found):
        seeds = {seed: measured for (one, seed), measured in found.items() if one == row}
        first = next(iter(seeds.values()))
        numbers = {
            name: [measured[name] for measured in seeds.values()]
            for name, value in first.items()
            if isinstance(value, float)
        }
        numbers |= {
            name: [mean(measured["queries"][name].values()) for measured in seeds.values()]
            for name in first["queries"]
        }
        said = {
            name: "; ".join(measured.get(name, "") for measured in seeds.values())
            for name, value in first.items()
            if isinstance(value, str)
        }
        ranges = {name: spread_with_interval(values) for name, values in numbers.items()}
        table[str(row)] = {"seeds": " ".join(map(str, seeds)), **ranges, **said}
    return table


def queries_of(found, measure):
    """By row and seed: a measure of each query."""
    return {key: measured["queries"][measure] for key, measured in found.items()}


def gaps_over_seeds(found, measure, pairs):
    """Of each pair of rows, treatment − control of a measure that each seed has one value of."""
    table = {}
    for treatment, control in pairs:
        seeds = [seed for row, seed in found if row == treatment and (control, seed) in found]
        ends = [(found[treatment, seed].get(measure), found[control, seed].get(measure)) for seed in seeds]
        gaps = [first - second for first, second in ends if None not in (first, second)]
        if len(gaps) > 1:
            low, high = t_interval(gaps)
            each = ", ".join(f"{gap:.3f}" for gap in gaps)
            table[f"{treatment} − {control}"] = {"seeds": each, "mean": mean(gaps), "low": low, "high": high}
    return table
