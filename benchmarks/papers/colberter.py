"""ColBERTer's tables 2 to 5 and figures 4 and 5 in shape, on MiniLM at a budget for a CPU.

    python -m benchmarks.papers.colberter train DATA -o RUNS [--jobs 2] [--rows ROW …] [--seed 1]
    python -m benchmarks.papers.colberter evaluate DATA -o RUNS [--json FILE] [--plot FILE] [--forest FILE]
    python -m benchmarks.papers.colberter show --json FILE [--plot FILE] [--forest FILE]
    python -m benchmarks.papers.colberter seeds --json 1.json 2.json 3.json
    python -m benchmarks.papers.colberter ship -o RUNS

DATA holds the collections. `train` puts a training collection together from four of them and trains every row
of `colberter_rows.py` by `counterpoint train`, in a folder of its own with its recipe next to it; what was
stopped goes on where it was. `evaluate` encodes the six evaluation collections once with the heads of all
rows, searches them in all of ColBERTer's workflows, lets each row refine what a standalone retriever finds
(MiniLM's own sentence vectors, for TAS-Balanced of table 2), prints tables next to the paper's figures and
draws figures 4 (`--plot`) and 5 (`--forest`). Nothing is tuned on those six. `show` prints and draws again
what an evaluation has saved. `seeds` compares rows over several seeds, one evaluation for each
(`colberter_seeds.py`). `ship` writes the weights of the models `colberter` and `uni-colberter` into the
sources.
"""

import json
import sys
from pathlib import Path

import numpy as np
from benchmarks.common import (
    EVALUATION,
    TRAINING,
    add_commands,
    folder_of,
    joined_heads,
    parser_of,
    read_json,
    train_rows,
    training_collection,
)
from benchmarks.papers.colberter_effects import STANDALONE, figure5, show_effects, values_of
from benchmarks.papers.colberter_rows import TEACHER, THRESHOLDS, rows
from benchmarks.papers.colberter_seeds import show_seeds
from benchmarks.papers.colberter_tables import figure4, show
from safetensors.torch import save_file

from counterpoint.data import Collection, open_collection
from counterpoint.encode import EncodeOptions, Mean, TextInput
from counterpoint.index import Index, LexicalSettings, build_index
from counterpoint.learn import BM25Negatives, Mining, drawn_lists, graded_lists
from counterpoint.learn.formats import read_collection, write_n_way
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.model import Model
from counterpoint.plots import check_format
from counterpoint.search import Searcher, SearchSettings

QUERIES = 2000  # of each training collection, with their documents
WORKFLOWS = ("dense", "dense-words")  # the others scan all vectors where words do not match exactly
EXACT = (*WORKFLOWS, "words", "words-dense", "hybrid")
MEASURES = ("nDCG@10", "R@100")
EFFECTS = ("words 1, α_CS 0.75, exact", "words 32, α_CS 0.75")  # figure 5: Uni-ColBERTer, ColBERTer (Dim32)
PAIRS = ((EFFECTS[0], "BM25"), (EFFECTS[1], "BM25"), (EFFECTS[1], STANDALONE))


def scored_lists(collection, output):
    """A positive and BM25's negatives for each query with the teacher's scores, made once for all rows."""
    path = output / "lists.jsonl"
    if not path.is_file():
        data = read_collection(collection)
        draw = BM25Negatives(count=4, depth=50).prepare(Mining(data, None, output, 1))
        lists = list(drawn_lists(data, draw, np.random.default_rng(1)))
        write_n_way(path, graded_lists(lists, TEACHER.load(data)))
    return path


def data_of(collection, arguments):
    """What all rows are trained on, as `counterpoint train` is told."""
    return "--data", scored_lists(collection, arguments.output), "--documents", collection


def train(arguments):
    """All rows; those that start from another one wait for it."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    collection = training_collection(arguments.data, arguments.output / "collection", TRAINING, QUERIES)
    recipes = rows(lambda name: str(folder_of(name, arguments.output)), arguments.seed)
    check_rows(arguments.rows, recipes)
    recipes = {name: recipe for name, recipe in recipes.items() if name in (arguments.rows or recipes)}
    train_rows(recipes, folder_of, arguments, *data_of(collection, arguments))


def check_rows(asked, known):
    """End if a row is asked for that does not exist."""
    if unknown := set(asked or ()) - set(known):
        sys.exit(f"no row is named {min(unknown)!r}; there are {', '.join(map(repr, known))}")


def one_model(names, output, thresholds=THRESHOLDS):
    """One model with the heads of all rows under names of their own, and each row's search settings.

    It also has the vector of the standalone retriever: the mean of MiniLM's states, not projected.
    """
    models, settings = {}, {}
    for name in names:
        trained, threshold = thresholds.get(name, (name, None))
        models[name] = load_model(folder_of(trained, output))
        if threshold is not None:
            models[name].prune(threshold)
    text = TextInput(512)  # collections of abstracts are longer than what was trained on
    encoder, called = joined_heads(models, (text, text), {STANDALONE: Mean(normalise=True)})
    for name, model in models.items():
        parts, said = called[name], SearchSettings.from_dict(model.search or fixed(model))
        settings[name] = SearchSettings(
            weights={parts[part]: weight for part, weight in said.weights.items()},
            scale="none",
            exact=tuple(parts[part] for part in said.exact),
            floor=tuple(parts[part] for part in said.floor),
        )
    return Model(encoder).setup().eval(), settings


def fixed(model):
    """The row that learns no weights: ½ of each part as it was trained."""
    (several,) = (name for name in model.encoder.query.heads if name != "mean")
    return {"weights": {"mean": 5.0, several: 0.5}, "scale": "none"}


def evaluate_collection(name, model, settings, arguments):
    """Effectiveness of every row and workflow, what it stores, and how good the others are."""
    collection: Collection = open_collection(arguments.data / name, passage_words=None)
    folder = arguments.output / "indexes" / name
    exact = [part for said in settings.values() for part in said.exact]
    if not (folder / "manifest.json").is_file():
        search = SearchSettings(weights=dict.fromkeys(model.sets, 1.0), exact=tuple(exact)).to_dict()
        build = model.index_settings(codec="float16", lexical=LexicalSettings(), search=search)
        build_index(collection.documents(), model, folder, build)
    split = "dl21-pool" if "dl21" in name else "test"
    qrels = collection.qrels(split)
    queries = {query: text for query, text in collection.queries(split).items() if query in qrels}
    found = {"rows": {}, "text": sum(len(d.full_text.encode()) for d in collection.documents())}
    with Index(folder) as index:
        sets, found["documents"] = index.info()["sets"], len(index)
        known = Remembered(model)
        alone = SearchSettings(weights={STANDALONE: 1.0}, scale="none")
        deep = {
            "BM25": Searcher(index).run(queries, 1000, workflow="lexical"),
            STANDALONE: Searcher(index, known, alone).run(queries, 1000, workflow="dense"),
        }
        found |= {name: dict(evaluate(run, qrels, MEASURES).measures) for name, run in deep.items()}
        first = deep[STANDALONE].top(100)
        for row, said in settings.items():
            searcher = Searcher(index, known, SearchSettings(**{**vars(said), "candidates": 100}))
            workflows = EXACT if said.exact else WORKFLOWS
            runs = {workflow: searcher.run(queries, 100, workflow=workflow) for workflow in workflows}
            refined = searcher.run(queries, 100, workflow="dense-words", candidates=first)
            if row in EFFECTS:
                deep[row] = searcher.run(queries, 1000, workflow="dense-words")
            several = next(part for part in said.weights if not part.endswith("mean"))
            found["rows"][row] = {
                "vectors": sets[several]["vectors"],
                "dim": sets[several]["dim"],
                "exact": several in said.exact,
                "workflows": {w: dict(evaluate(run, qrels, MEASURES).measures) for w, run in runs.items()},
                "refined": dict(evaluate(refined, qrels, MEASURES).measures),
            }
    return found | {"effects": values_of(deep, qrels)}


class Remembered:
    """A model that encodes the same queries once, for many searches."""

    def __init__(self, model):
        self.model, self.queries = model, {}

    def __getattr__(self, name):
        return getattr(self.model, name)

    def encode_query(self, texts):
        key = tuple(texts)
        if key not in self.queries:
            self.queries[key] = self.model.encode_query(texts, EncodeOptions(precision="fp32"))
        return self.queries[key]


SHIPPED = {"colberter": "words 8, α_CS 0.75, exact", "uni-colberter": "words 1, α_CS 0.75, exact"}


def ship(arguments):
    """Write the shipped models' own weights: all but the backbone's, which the embedded model has."""
    for name, row in SHIPPED.items():
        model = load_model(folder_of(row, arguments.output))
        tensors = {
            name: tensor.contiguous()
            for name, tensor in model.encoder.state_dict().items()
            if ".backbone." not in name
        }
        path = Path("src/counterpoint/resources") / f"{name}.safetensors"
        save_file(tensors, path)
        print(f"{path}: {path.stat().st_size:,} bytes; search weights {model.search['weights']}")


def parsed():
    parser = parser_of(__doc__)
    names = "train", "evaluate", "show", "seeds", "ship"
    train, evaluate, show, seeds, ship = add_commands(parser, *names).values()
    train.add_argument("--seed", type=int, default=1)
    seeds.add_argument("--json", type=Path, nargs="+", required=True, help="an evaluation of each seed")
    ship.add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    evaluate.add_argument("--json", type=Path, help="save what was measured")
    show.add_argument("--json", type=Path, required=True, help="what an evaluation has saved")
    evaluate.add_argument("--collections", nargs="+", default=EVALUATION, help="those that are searched")
    for command in (evaluate, show):
        command.add_argument("--plot", type=Path, help="draw figure 4 into this .svg, .png or .pdf")
        command.add_argument("--forest", type=Path, help="draw figure 5 into this .svg, .png or .pdf")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "train":
        return train(arguments)
    if arguments.what == "ship":
        return ship(arguments)
    if arguments.what == "seeds":
        return show_seeds(arguments.json, PAIRS)
    for path in filter(None, (arguments.plot, arguments.forest)):
        check_format(path)  # told now, not after an hour
    if arguments.what == "show":
        found = read_json(arguments.json)
    else:
        trained = {name: name for name in rows(str)} | {name: row for name, (row, _) in THRESHOLDS.items()}
        check_rows(arguments.rows, trained)
        there = {row for row in trained.values() if (folder_of(row, arguments.output) / "model").is_dir()}
        names = [
            name for name, row in trained.items() if row in there and name in (arguments.rows or trained)
        ]
        model, settings = one_model(names, arguments.output)
        found = {
            name: evaluate_collection(name, model, settings, arguments) for name in arguments.collections
        }
        if arguments.json is not None:
            arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    show(found)
    show_effects(found, PAIRS)
    if arguments.plot is not None:
        figure4(found).save(arguments.plot)
    if arguments.forest is not None:
        figure5(found, PAIRS).save(arguments.forest)


if __name__ == "__main__":
    main()
