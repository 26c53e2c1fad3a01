"""ColBERTer's gate as the paper trains it: does it become a stop-word list, and what does it cost?

    python -m benchmarks.papers.colberter_gate teach DATA -o RUNS --json teacher.json [--steps N]
    python -m benchmarks.papers.colberter_gate run DATA -o RUNS --seed 1 --json gate-1.json [--steps N]
        [--rows ROW …] [--collections NAME …]
    python -m benchmarks.papers.colberter_gate show --json gate-1.json … [--teacher teacher.json]

DATA holds the collections. `teach` puts a training collection together from four of them with 400 queries
held out, draws one list of a positive and two of BM25's negatives for each other query, trains a
cross-encoder and lets it and MiniLM score the lists. `run` trains and measures all rows of
`colberter_gate_rows.py` with one seed, in the order of that file; it may be started at the same time, since
it reads the evaluation collections and then waits for the lists. After each row the JSON file is written
again; rows that it has are not trained again. `show` makes the choice and prints tables over the seeds.

Fixed before anything was evaluated: rows, order, seeds, collections, thresholds, questions, and the rule of
the choice. Of all α_CS above 0 and thresholds, those are allowed whose nDCG@10 on the held-out training
queries (workflow 2, mean over seeds) is at most .005 below α_CS 0. Of these the one that drops the largest
share of the training documents' rows is chosen. Only then are the evaluation collections looked at, with the
chosen α_CS and threshold; controls are compared at the paper's α_CS of ¾ without a threshold.
"""

import gc
import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import torch
from benchmarks.common import TRAINING, folder_of, parser_of, read_json, training_collection
from benchmarks.papers.colberter_gate_measures import measured, read, reader
from benchmarks.papers.colberter_gate_rows import (
    CROSS,
    JUDGE_STEPS,
    OWN,
    ROWS,
    SEEDS,
    STEPS,
    judge_recipe,
    recipe_of,
    start_model,
)
from benchmarks.papers.colberter_gate_tables import show
from benchmarks.papers.colberter_rows import TEACHER

from counterpoint.data import open_collection
from counterpoint.errors import CounterpointError
from counterpoint.files import write_atomically
from counterpoint.index import Index, build_index
from counterpoint.learn import BM25Negatives, CrossEncoderTeacher, Mining, drawn_lists, graded_lists
from counterpoint.learn.formats import read_collection, write_n_way
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.recipe import read_recipe_data, run_recipe
from counterpoint.search import Run, Searcher

QUERIES, HELD_OUT = 2000, 100  # of each training collection
NEGATIVES, RERANKED = 2, 20
COLLECTIONS = ("med", "cranfield", "cisi", "cacm")
DEV, PATIENCE = "dev", 420  # seconds


def teach(arguments):
    """Make the lists of both teachers, then measure how good they are on the held-out queries."""
    folder = collection_of(arguments)
    data = read_collection(folder)
    draw = BM25Negatives(count=NEGATIVES, depth=50).prepare(Mining(data, None, arguments.output, 1))
    lists = list(drawn_lists(data, draw, np.random.default_rng(1)))
    recipe, judge = judge_recipe(arguments.steps or JUDGE_STEPS), arguments.output / "judge"
    if not (judge / "model").is_dir():
        shutil.rmtree(judge, ignore_errors=True)
        run_recipe(recipe, read_recipe_data(recipe, folder), judge)
    teachers = {CROSS: CrossEncoderTeacher(str(judge / "model"), precision="auto"), OWN: TEACHER}
    found = {"margins": {}}
    for name, teacher in teachers.items():
        scored = list(graded_lists(lists, teacher.load(data)))
        write_n_way(lists_of(name, arguments.output), scored)
        gaps = [own[0][1] - score for _, own in scored for _, score in own[1:]]
        found["margins"][name] = [
            float(np.mean(gaps)),
            float(np.std(gaps)),
            float(np.mean(np.array(gaps) > 0)),
        ]
        write_json(arguments.json, found)
    found["held out"] = reranked(folder, teachers, arguments.output)
    write_json(arguments.json, found)


def collection_of(arguments):
    arguments.output.mkdir(parents=True, exist_ok=True)
    return training_collection(arguments.data, arguments.output / "collection", TRAINING, QUERIES, HELD_OUT)


def lists_of(teacher, output):
    return output / f"lists-{teacher}.jsonl"


def reranked(folder, teachers, output):
    """nDCG@10 of BM25's best twenty as BM25 and as each teacher orders them, held-out queries."""
    data, collection = read_collection(folder, DEV), open_collection(folder, passage_words=None)
    if not (output / "bm25" / "manifest.json").is_file():
        build_index(collection.documents(), None, output / "bm25")
    with Index(output / "bm25") as index:
        first = Searcher(index).run(collection.queries(DEV), RERANKED, workflow="lexical")
    runs = {"BM25": first}
    for name, teacher in teachers.items():
        lists = [
            (query, [document for document, _ in first[query]]) for query in data.queries if query in first
        ]
        runs[name] = Run({query: dict(own) for query, own in graded_lists(lists, teacher.load(data))})
    qrels = collection.qrels(DEV)
    return {name: evaluate(run, qrels, ("nDCG@10",)).measures["nDCG@10"] for name, run in runs.items()}


def run(arguments):
    """Train and measure the rows with one seed."""
    chosen = {name: ROWS[name] for name in arguments.rows or ROWS}
    own = arguments.output / f"seed-{arguments.seed}"
    encoder, texts = reader(), {}
    for name in arguments.collections:
        texts[name] = read(open_collection(arguments.data / name, passage_words=None), "test", encoder)
    start = own / "start"
    if not start.is_dir():
        start_model().save(start)
    wait_for(lists_of(CROSS, arguments.output))
    collection = arguments.output / "collection"
    texts = {DEV: read(open_collection(collection, passage_words=None), DEV, encoder), **texts}
    found = begin(arguments, texts)
    data = {}
    for name, way in chosen.items():
        if name in found["rows"]:
            continue
        recipe = recipe_of(way, arguments.seed, arguments.steps or STEPS, str(start))
        if way.teacher not in data:
            lists = wait_for(lists_of(way.teacher, arguments.output))
            data[way.teacher] = read_recipe_data(recipe, lists, documents=collection)
        try:
            found["rows"][name] = row_of(recipe, data[way.teacher], folder_of(name, own), texts)
        except (CounterpointError, RuntimeError) as error:  # the other rows go on without it
            print(f"seed {arguments.seed}, {name}: {error}", file=sys.stderr, flush=True)
            continue
        write_json(arguments.json, found)
        seconds = found["rows"][name]["seconds"]
        print(f"seed {arguments.seed}, {name}: {seconds}", file=sys.stderr, flush=True)


def begin(arguments, texts):
    """What the JSON file has, or its beginning: the queries of every collection, in the order of values."""
    said = {"seed": arguments.seed, "steps": arguments.steps or STEPS}
    said["queries"] = {name: one.queries for name, one in texts.items() if name != DEV}
    if not arguments.json.is_file():
        return {**said, "rows": {}}
    found = read_json(arguments.json)
    if {key: found[key] for key in said} != said:
        sys.exit(f"{arguments.json} is of another seed, budget or other collections; choose another --json")
    return found


def row_of(recipe, data, folder, texts):
    """Train one row and measure it on all collections; its weights are not kept."""
    began = time.monotonic()
    shutil.rmtree(folder, ignore_errors=True)
    model = load_model(run_recipe(recipe, data, folder))
    trained = time.monotonic()
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    found = {"weights": model.search["weights"], "log": [json.loads(line) for line in lines[-1:]]}
    found["collections"] = {name: measured(model, one) for name, one in texts.items()}
    held_out = found["collections"][DEV]
    held_out["quality"] = {level: means_of(one) for level, one in held_out["quality"].items()}
    found["seconds"] = [round(trained - began, 1), round(time.monotonic() - trained, 1)]
    del model
    shutil.rmtree(folder, ignore_errors=True)
    gc.collect()
    torch.cuda.empty_cache()
    return found


def means_of(values):
    """Lists of one value, the mean: of held-out queries no more is needed."""
    return {what: [float(np.mean(of_queries))] for what, of_queries in values.items()}


def wait_for(path):
    """The path, once it is there."""
    last = time.monotonic() + PATIENCE
    while not path.is_file():
        if time.monotonic() > last:
            sys.exit(f"{path} is still missing; run `teach` with the same --output")
        time.sleep(0.5)
    return path


def write_json(path, found):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, ensure_ascii=False)
    write_atomically(path, lambda made: made.write_text(text, encoding="utf-8"))


def parsed():
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(dest="what", required=True)
    teach, run, show = (commands.add_parser(name) for name in ("teach", "run", "show"))
    for command in (teach, run):
        command.add_argument("data", type=Path, help="folder of the collections")
        command.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
        command.add_argument("--json", type=Path, required=True, help="save what was measured")
        command.add_argument("--steps", type=int, help="fewer or more than the budget")
    run.add_argument("--seed", type=int, default=SEEDS[0])
    run.add_argument("--rows", nargs="+", metavar="NAME", choices=ROWS, help="only these")
    run.add_argument("--collections", nargs="+", default=COLLECTIONS, help="those that are ranked")
    show.add_argument("--json", type=Path, nargs="+", required=True, help="one file of `run` for each seed")
    show.add_argument("--teacher", type=Path, help="the file of `teach`")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "teach":
        return teach(arguments)
    if arguments.what == "run":
        return run(arguments)
    seeds = [read_json(path) for path in arguments.json]
    teacher = arguments.teacher and read_json(arguments.teacher)
    show(seeds, teacher)


if __name__ == "__main__":
    main()
