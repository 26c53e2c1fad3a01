"""RoC's tables 1, 3, 4, 5 and 6 and figures 3 to 6 in shape, on MiniLM at a budget for a CPU.

    python -m benchmarks.papers.roc train DATA -o RUNS [--steps N] [--all-layers] [--jobs 2] [--rows NAME ...]
    python -m benchmarks.papers.roc evaluate DATA -o RUNS --json FILE [--plots FOLDER]
        [--collections NAME ...]
    python -m benchmarks.papers.roc show --json FILE [FILE ...] [--plots FOLDER]
    python -m benchmarks.papers.roc seeds --json FILE [FILE ...]

DATA holds the collections. `train` draws training queries of one collection (nq-qed: real questions), holds
some out, and trains every row of `roc_rows.py` by `counterpoint train` under one budget, in a folder of its
own with its recipe next to it; what was stopped goes on where it was. `evaluate` indexes each collection once
for each row (a second call finds the indexes), chooses λ by a grid on the queries held out, and searches by
BM25, by each row's vectors and by both, at the row's own λ and at one for all rows: questions of the
collection trained on that no row was trained on, and six other collections. `show` prints and draws what
evaluations have saved, the paper's figures next to it. `seeds` compares several seeds (`train --seed`, each
in a folder of its own), of an evaluation each: the rows that make vectors, on the collection trained on, and
table 6.

nq-qed has no answer strings, so there a negative is any document that is not judged relevant; a collection
with answers (squad11-dev) is trained on without negatives that hold one. MiniLM was trained on Natural
Questions before: the row `start` says what it can do without more. Vectors are made in bfloat16 where that is
faster.
"""

import json
import random
import sys
from pathlib import Path

from benchmarks.common import (
    EVALUATION,
    add_commands,
    folder_of,
    parser_of,
    read_json,
    train_rows,
    training_collection,
)
from benchmarks.papers.roc_figures import draw
from benchmarks.papers.roc_indexes import index_rows
from benchmarks.papers.roc_joined import joined
from benchmarks.papers.roc_measures import JudgedQueries, evaluate_adversarial, evaluate_rows, tuned
from benchmarks.papers.roc_pairs import evaluate_pairs, show_pairs, trained_pairs
from benchmarks.papers.roc_rows import START, VECTORS, Budget, rows
from benchmarks.papers.roc_seeds import show_seeds
from benchmarks.papers.roc_tables import show

from counterpoint.data import open_collection, open_thesaurus, read_answers
from counterpoint.errors import DataError

GRADES = {"msmarco-v2-dl21-pool": 2}  # the lowest that is relevant, where it is not 1
SPLITS = {"msmarco-v2-dl21-pool": "dl21-pool", "nq-qed": "dev"}
ANSWERS = "answers.jsonl"


def wanted(arguments, known):
    """The rows that the command line names, or all."""
    unknown = [name for name in arguments.rows or () if name not in known]
    if unknown:
        sys.exit(f"no row is named {unknown[0]!r}; there are {', '.join(known)}")
    return arguments.rows or list(known)


# -- training ----------------------------------------------------------------------------------------------


def answers_of(name, arguments):
    """A file of the training queries' answers, under their ids there; None where there are none."""
    path = arguments.output / ANSWERS
    queries = next((arguments.data / name).glob("queries.jsonl*"))
    try:
        found = read_answers(queries)
    except DataError as error:
        if error.line is not None:  # a damaged line, not a file without answers
            raise
        return None
    lines = [json.dumps({"_id": f"{name}/{query}", "answers": texts}) for query, texts in found.items()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def train(arguments):
    """All rows, or those that are named."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    folder = arguments.output / "collection"
    training_collection(arguments.data, folder, [arguments.on], arguments.queries, arguments.held_out)
    recipes = rows(
        Budget(
            arguments.steps,
            arguments.batch,
            arguments.pair_steps,
            all_layers=arguments.all_layers,
            answers=answers_of(arguments.on, arguments),
            seed=arguments.seed,
        )
    )
    chosen = {name: recipes[name] for name in wanted(arguments, recipes)}
    train_rows(chosen, folder_of, arguments, "--data", folder)


# -- evaluation --------------------------------------------------------------------------------------------


def held_out(arguments):
    """The collection that was trained on, its queries that λ is chosen by, and their judgements."""
    made = open_collection(arguments.output / "collection", passage_words=None)
    queries, qrels = made.queries("dev"), made.qrels("dev")
    name = next(iter(qrels)).partition("/")[0]
    plain = {
        query.removeprefix(f"{name}/"): {d.removeprefix(f"{name}/"): grade for d, grade in grades.items()}
        for query, grades in qrels.items()
    }
    return name, {query: queries[f"{name}/{query}"] for query in plain}, plain


def judged(name, arguments):
    """What a collection is searched with: all its queries, or a sample."""
    collection = open_collection(arguments.data / name, passage_words=None)
    split = SPLITS.get(name, "test")
    qrels = {query: dict(grades) for query, grades in collection.qrels(split).items()}
    if len(qrels) > arguments.queries:
        chosen = set(random.Random(1).sample(sorted(qrels), arguments.queries))
        qrels = {query: grades for query, grades in qrels.items() if query in chosen}
    texts = collection.queries(split)
    queries = {query: texts[query] for query in qrels}
    return JudgedQueries(name, collection, queries, qrels, GRADES.get(name, 1))


def trained_rows(arguments):
    """Rows that make vectors, are wanted and are trained; what is not trained is said."""
    chosen = [name for name in wanted(arguments, [START, *rows(Budget())]) if name != START]
    missing = [name for name in chosen if not (folder_of(name, arguments.output) / "model").is_dir()]
    if missing:
        told(f"left out, since not trained: {', '.join(missing)}")
    return [START, *(name for name in VECTORS if name in chosen and name not in missing)]


def evaluate(arguments):
    """Measure all rows that are trained, collection by collection; what is done is saved after each."""
    there = trained_rows(arguments)
    trained, queries, qrels = held_out(arguments)
    found = {"trained on": trained, "weights": {}, "collections": {}}
    development = JudgedQueries(
        trained, open_collection(arguments.data / trained, passage_words=None), queries, qrels
    )
    told(f"{trained}, indexed")
    index_rows(there, development, arguments.output)
    for row in there:
        told(f"λ of {row}")
        found["weights"][row] = tuned(row, development, arguments.output)
    for name in arguments.collections or dict.fromkeys([trained, *EVALUATION]):
        told(name)
        asked = judged(name, arguments)
        measured = evaluate_rows(asked, found["weights"], arguments.output)
        if name == trained:
            thesaurus = open_thesaurus(str(arguments.data / "wordnet"))
            told(f"{name}, perturbed")
            measured["adversarial"] = evaluate_adversarial(
                asked, found["weights"], arguments.output, thesaurus
            )
            if names := trained_pairs(arguments.output, arguments.rows):
                told(f"{name}, table 6")
                measured["pairs"] = evaluate_pairs(asked, names, arguments.reranked_queries, arguments.output)
        found["collections"][name] = measured
        arguments.json.write_text(json.dumps(found), encoding="utf-8")
    return found


def told(text):
    print(text, file=sys.stderr, flush=True)


# -- commands ----------------------------------------------------------------------------------------------


def parsed():
    parser = parser_of(__doc__)
    train, evaluate, show, seeds = add_commands(parser, "train", "evaluate", "show", "seeds").values()
    seeds.add_argument("--json", type=Path, nargs="+", required=True, help="an evaluation of each seed")
    train.add_argument("--on", default="nq-qed", help="the collection whose training queries are drawn")
    train.add_argument("--queries", type=int, default=6800, help="training queries")
    train.add_argument("--held-out", type=int, default=300, help="training queries that λ is chosen by")
    train.add_argument("--steps", type=int, default=Budget().steps)
    train.add_argument("--batch", type=int, default=Budget().batch)
    train.add_argument("--pair-steps", type=int, default=Budget().pair_steps, help="of the rows of table 6")
    train.add_argument("--all-layers", action="store_true", help="not the top two of the backbone alone")
    train.add_argument("--seed", type=int, default=1)
    evaluate.add_argument("--collections", nargs="+", help="only these")
    evaluate.add_argument("--queries", type=int, default=500, help="of a collection, a sample if it has more")
    evaluate.add_argument("--reranked-queries", type=int, default=100, help="of table 6")
    evaluate.add_argument("--json", type=Path, required=True, help="save what was measured")
    show.add_argument("--json", type=Path, nargs="+", required=True, help="what evaluations have saved")
    for command in (evaluate, show):
        command.add_argument("--plots", type=Path, help="draw figures 3, 4 and 6 into this folder")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "train":
        return train(arguments)
    if arguments.what == "seeds":
        return over_seeds(arguments)
    if arguments.what == "show":
        found = merged({path: read_json(path) for path in arguments.json})
    else:
        found = evaluate(arguments)
    show(found)
    own = found["collections"].get(found["trained on"])
    if arguments.plots is not None and own is not None:
        draw(found["trained on"], own, list(found["weights"]), arguments.plots)


def over_seeds(arguments):
    """Print what evaluations of several seeds have in common; a seed has its file's name."""
    saved = {path.stem: read_json(path) for path in arguments.json}
    rows, pairs = joined(saved), pairs_of(saved)
    if rows is None and pairs is None:
        sys.exit("these evaluations share no row that was trained")
    if rows is not None:
        show_seeds(rows)
    if pairs is not None:
        show_pairs(pairs)


def pairs_of(saved):
    """Table 6 of each evaluation; None if one of them has none."""
    own = {seed: found["collections"].get(found["trained on"], {}) for seed, found in saved.items()}
    if not all("pairs" in found for found in own.values()):
        return None
    return {seed: found["pairs"]["systems"] for seed, found in own.items()}


def merged(saved):
    """What several evaluations of the same rows have found, of different collections; `saved` is by file."""
    (first, found), *others = saved.items()
    for path, other in others:
        for key, what in (
            ("trained on", "rows trained on one collection"),
            ("weights", "the same rows and λ"),
        ):
            if other[key] != found[key]:
                sys.exit(f"{first} and {path} differ in {key!r}: only evaluations of {what} go together")
    collections = {}
    for path, one in saved.items():
        if twice := collections.keys() & one["collections"].keys():
            sys.exit(f"{path} has {min(twice)!r} again: leave one of the files out")
        collections |= one["collections"]
    return {**found, "collections": collections}


if __name__ == "__main__":
    main()
