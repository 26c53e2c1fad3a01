"""HIL's tables 2 to 9 and figures 4, 7 and 8 in shape, on MiniLM at a budget for a CPU, next to the paper's.

    python -m benchmarks.papers.hil train DATA -o RUNS [--frozen] [--no-curves] [--marked] [--steps N]
        [--jobs 2] [--rows NAME ...]
    python -m benchmarks.papers.hil evaluate DATA -o RUNS [--json FILE] [--plots FOLDER]
        [--collections NAME ...]
    python -m benchmarks.papers.hil show --json FILE [FILE ...] [--plots FOLDER]
    python -m benchmarks.papers.hil seeds --json 1.json 2.json 3.json
    python -m benchmarks.papers.hil layers --json layers-1.json layers-2.json layers-3.json

DATA holds the collections. `train` puts a training collection together from four of them and trains every row
of `hil_rows.py` by `counterpoint train` under one budget, in a folder of its own with its recipe next to it;
what was stopped goes on where it was. `evaluate` scores every document of the six evaluation collections for
every query with the parts of all rows, by brute force; full ranking, reranking of BM25's best hundred and of
HIL's, ensembles and InterIso of BM25's pairs are all taken of those scores. Rows whose backbone and texts are
the same are encoded at once. Documents are read up to 512 positions, those of table 9 up to 300. Nothing is
tuned on the six. `show` prints and draws what evaluations have saved; rows that one of them lacks are left
out of the means. `seeds` compares rows over several seeds, one evaluation for each (`hil_seeds.py`),
and `layers` figure 5, one `counterpoint diagnose --layers --against --json` for each.
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
from benchmarks.papers.gpu_maxsim import best_table
from benchmarks.papers.hil_citadel import CITADELS, reranked
from benchmarks.papers.hil_rows import ENSEMBLES, PAPER, Budget, rows
from benchmarks.papers.hil_seeds import read, show_layers, show_seeds
from benchmarks.papers.hil_tables import draw, show

from counterpoint.config import restore
from counterpoint.data import open_collection
from counterpoint.index import Index, build_index
from counterpoint.index.kernels import idf_of
from counterpoint.learn import Train
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.measure.inter_iso import mean_rows
from counterpoint.model import Model
from counterpoint.search import Run, Searcher
from counterpoint.types import Ragged

HELD_OUT = 50  # queries of each training collection, in addition to those that are trained on
MEASURES = ("nDCG@10", "R@100")
DEPTH, RERANKED, PIECE = 1000, 100, 128


# -- training ----------------------------------------------------------------------------------------------


def train(arguments):
    """All rows, or those that are named."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    collection = training_collection(
        arguments.data, arguments.output / "collection", TRAINING, arguments.queries, HELD_OUT
    )
    said = {"frozen": arguments.frozen, "seed": arguments.seed, "curves": not arguments.no_curves}
    budget = Budget(arguments.steps, arguments.batch, **said, marked=arguments.marked)
    recipes = rows(budget, lambda name: str(folder_of(name, arguments.output)))
    unknown = set(arguments.rows or ()) - recipes.keys()
    if unknown:
        sys.exit(f"no row is named {sorted(unknown)[0]!r}; there are {', '.join(recipes)}")
    chosen = {name: recipes[name] for name in arguments.rows or recipes}
    train_rows(chosen, folder_of, arguments, "--data", collection)


# -- evaluation --------------------------------------------------------------------------------------------


def trained_rows(output, wanted=None):
    """What has been trained: groups of names whose models share backbone and texts, and CITADEL's folders."""
    names = [name for name in wanted or rows(Budget()) if (folder_of(name, output) / "model").is_dir()]
    alike: dict[tuple[str, str], list[str]] = {}
    for name in names:
        if name in CITADELS:
            continue
        encoder = load_model(folder_of(name, output)).encoder.query
        texts = str([encoder.query.to_dict(), encoder.document.to_dict()])
        alike.setdefault((encoder.backbone.fingerprint(), texts), []).append(name)
    citadels = {name: folder_of(name, output) for name in names if name in CITADELS}
    return list(alike.values()), citadels


def one_model(names, output):
    """One model with the heads of some rows as sets of their own, and by row its sets and search settings."""
    models = {name: load_model(folder_of(name, output)) for name in names}
    last = models[names[-1]].encoder.query
    said = last.document.to_dict()
    if said["max_length"] == PAPER:
        said["max_length"] = 512  # collections of abstracts are longer than what was trained on
    encoder, called = joined_heads(models, (last.query, restore(said)))
    of_row = {
        name: (called[name], dict(model.search["weights"]), dict(model.search.get("idf", {})))
        for name, model in models.items()
    }
    return Model(encoder).setup().eval(), of_row


def pieces(texts, size=PIECE):
    return (texts[start : start + size] for start in range(0, len(texts), size))


def weighed(model, on, texts, queries):
    """Queries' rows times idf over the searched collection, special tokens 0, as a `Searcher` has them."""
    known: dict[int, int] = {}
    for piece in pieces(texts, 1024):
        for row in model.row_ids(piece, on, "document"):
            for number in np.unique(row).tolist():
                known[number] = known.get(number, 0) + 1
    df = np.array([known.get(number, 0) for number in queries.ids.tolist()])
    idf = np.where(np.isin(queries.ids, model.sets[on].special), 0, idf_of(df, len(texts)))
    return Ragged(queries.values * idf[:, None].astype(np.float32), queries.offsets, queries.ids)


def part_scores(names, output, documents, queries):
    """By row and set: scores of every query and document, and the InterIso of every pair."""
    model, of_row = one_model(names, output)
    texts = [document.full_text for document in documents]
    asked = model.encode_query(list(queries.values()))
    sets = {(row, on): at for row, (found, _, _) in of_row.items() for on, at in found.items()}
    means = {part: mean_rows(asked[at]) for part, at in sets.items()}
    for (row, on), at in sets.items():
        if on in of_row[row][2]:
            asked[at] = weighed(model, at, texts, asked[at])
    scores, inter = {part: [] for part in sets}, {part: [] for part in sets}
    table = best_table()
    for piece in pieces(texts):
        encoded = model.encode_document(piece)
        for part, at in sets.items():
            scores[part].append(table(asked[at], encoded[at]))
            inter[part].append((means[part] @ mean_rows(encoded[at]).T).astype(np.float32))
        print(".", end="", file=sys.stderr, flush=True)
    weights = {row: said for row, (_, said, _) in of_row.items()}
    return along_documents(scores), along_documents(inter), weights


def along_documents(found):
    return {part: np.concatenate(blocks, 1) for part, blocks in found.items()}


def systems_of(scores, weights):
    """Everything that ranks: rows, their ensembles, and each space of HIL alone."""
    found = {
        row: sum(weight * scores[row, on] for on, weight in said.items()) for row, said in weights.items()
    }
    for name, modules in ENSEMBLES.items():
        if all(module in found for module in modules):
            found[name] = sum(found[module] for module in modules)
    if "HIL" in weights:
        found |= {"L of HIL": scores["HIL", "l"], "H of HIL": scores["HIL", "h"]}
    return found


def ranked(matrix, queries, names, within=None):
    """A run of a score matrix, of all documents or of those of another run."""
    found = {}
    place = {name: at for at, name in enumerate(names)}
    for query, row in zip(queries, matrix, strict=True):
        if within is None:
            best = np.argsort(-row, kind="stable")[:DEPTH]
        else:
            best = [place[name] for name, _ in (within[query] if query in within else [])][:RERANKED]
        found[query] = {names[at]: float(row[at]) for at in best}
    return Run(found)


def evaluate_collection(name, groups, citadels, arguments):
    """Effectiveness of every system in full, over BM25's best, over HIL's, and InterIso of BM25's pairs."""
    print(f"\n{name} ", end="", file=sys.stderr, flush=True)
    collection = open_collection(arguments.data / name, passage_words=None)
    documents, split = list(collection.documents()), "dl21-pool" if "dl21" in name else "test"
    names, qrels = [document.id for document in documents], collection.qrels(split)
    queries = {query: text for query, text in collection.queries(split).items() if query in qrels}
    folder = arguments.output / "indexes" / name
    if not (folder / "manifest.json").is_file():
        build_index(iter(documents), None, folder)
    with Index(folder) as index:
        first = Searcher(index).run(queries, DEPTH, workflow="lexical")
    bm25 = evaluate(first, qrels, MEASURES)
    by_query = {query: bm25.per_query["nDCG@10"].get(query, 0.0) for query in queries}
    easy = sorted(by_query, key=lambda query: (-by_query[query], query))[: (len(by_query) + 1) // 2]
    scores, inter, weights = {}, {}, {}
    for group in groups:
        parts = part_scores(group, arguments.output, documents, queries)
        for whole, part in zip((scores, inter, weights), parts, strict=True):
            whole.update(part)
    systems = systems_of(scores, weights)
    hil = ranked(systems["HIL"], queries, names) if "HIL" in systems else None
    top = np.zeros((len(queries), len(names)), bool)
    place = {document: at for at, document in enumerate(names)}
    for at, query in enumerate(queries):
        for document, _ in (first[query] if query in first else [])[:RERANKED]:
            top[at, place[document]] = True
    found = {
        "documents": len(names),
        "queries": len(queries),
        "easiest of the others": by_query[easy[-1]],
        "BM25": {
            **bm25.measures,
            "easy": bm25.over(easy).measures["nDCG@10"],
            "queries": dict(bm25.per_query["nDCG@10"]),
        },
        "inter_iso": {f"{row}|{on}": float(values[top].mean()) for (row, on), values in inter.items()},
        "systems": {},
        "citadel": reranked(
            citadels,
            arguments.output / "indexes" / f"{name}-citadel",
            documents,
            (queries, qrels),
            first.top(RERANKED),
        ),
    }
    for system, matrix in systems.items():
        full = evaluate(ranked(matrix, queries, names), qrels, MEASURES)
        again = evaluate(ranked(matrix, queries, names, first), qrels, MEASURES)
        same = None if hil is None else evaluate(ranked(matrix, queries, names, hil), qrels, MEASURES)
        found["systems"][system] = {
            "full": dict(full.measures),
            "queries": dict(full.per_query["nDCG@10"]),
            "rerank": dict(again.measures),
            "same": None if same is None else dict(same.measures),
            "easy": again.over(easy).measures["nDCG@10"],
        }
    return found


def curves(output):
    """The training curves of every row: InterIso of batches by set, nDCG@10 of the queries held out."""
    found = {}
    for name, recipe in rows(Budget()).items():
        path = folder_of(name, output) / "metrics.jsonl"
        if not path.is_file() or not isinstance(recipe.stages[-1], Train):
            continue
        weights = {
            loss.name: loss.weight for loss in recipe.stages[-1].objective.losses if hasattr(loss, "weight")
        }
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        keys = {f"iso_{on}": on for on in ("l", "h", "tokens") if f"iso_{on}" in weights}
        found[name] = {
            on: [[line["step"], line[key] / weights[key]] for line in lines if key in line]
            for key, on in keys.items()
        }
        found[name]["nDCG@10"] = [[line["step"], line["nDCG@10"]] for line in lines if "nDCG@10" in line]
    return found


def parsed():
    parser = parser_of(__doc__)
    commands = add_commands(parser, "train", "evaluate", "show", "seeds", "layers")
    train, evaluate, show, seeds, layers = commands.values()
    train.add_argument("--frozen", action="store_true", help="only projections learn")
    train.add_argument("--no-curves", action="store_true", help="evaluate nothing meanwhile, for figure 8")
    train.add_argument("--marked", action="store_true", help="markers and [MASK] expansion, but for CITADEL")
    train.add_argument("--steps", type=int, default=Budget().steps)
    train.add_argument("--batch", type=int, default=Budget().batch)
    train.add_argument("--queries", type=int, default=2000, help="of each training collection")
    train.add_argument("--seed", type=int, default=1)
    evaluate.add_argument("--collections", nargs="+", default=EVALUATION)
    evaluate.add_argument("--json", type=Path, help="save what was measured")
    show.add_argument("--json", type=Path, nargs="+", required=True, help="what evaluations have saved")
    seeds.add_argument("--json", type=Path, nargs="+", required=True, help="an evaluation of each seed")
    layers.add_argument(
        "--json", type=Path, nargs="+", required=True, help="a `diagnose --layers` of each seed"
    )
    for command in (evaluate, show):
        command.add_argument("--plots", type=Path, help="draw figures 4, 7 and 8 into this folder")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "train":
        return train(arguments)
    if arguments.what == "seeds":
        return show_seeds(read(arguments.json))
    if arguments.what == "layers":
        return show_layers(arguments.json)
    if arguments.what == "show":
        found = {"collections": {}}
        for path in arguments.json:
            saved = read_json(path)
            found = saved | {"collections": found["collections"] | saved["collections"]}
    else:
        groups, citadels = trained_rows(arguments.output, arguments.rows)
        if not groups and not citadels:
            sys.exit(f"no row was trained in {arguments.output}; train them first: hil train DATA -o FOLDER")
        found = {"collections": {}, "curves": curves(arguments.output)}
        for name in arguments.collections:
            found["collections"][name] = evaluate_collection(name, groups, citadels, arguments)
            if arguments.json is not None:
                arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
        print(file=sys.stderr)
    show(found)
    if arguments.plots is not None:
        draw(found, arguments.plots)


if __name__ == "__main__":
    main()
