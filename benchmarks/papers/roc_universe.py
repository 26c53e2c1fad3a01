"""RoC's claims where something is left to complement: more documents, and vectors that miss more.

    python -m benchmarks.papers.roc_universe starts DATA -o RUNS --json starts.json [--jobs 4] [--steps N]
    python -m benchmarks.papers.roc_universe train DATA -o RUNS --json starts.json [--jobs 2] [--steps N]
    python -m benchmarks.papers.roc_universe evaluate DATA -o RUNS --json starts.json --save found.json
        [--wait SECONDS]
    python -m benchmarks.papers.roc_universe seeds --json found.json

DATA holds the collections. Everything here was fixed before anything was evaluated: the collections (`POOL`,
`ASKED`), the rows and their order (`ROWS`), the seeds, the steps and rates, the rule for the start
(`roc_fresh.py`), the grid of λ, and the comparisons (`roc_seeds.py`).

The documents of six collections are searched together: three of questions, of which BM25 misses few, and
three where words are a poor guide (arguments, shell commands, Python snippets). Rows train on training
queries of all, the whole backbone, from a MiniLM whose upper layers are new. A negative is any document of
BM25's best that is not judged relevant; answer strings are not used.

`starts` trains the naive sum with one seed from each candidate, and chooses the start on held-out training
queries of the three of questions. `train` trains the rows, a whole seed first. `evaluate` chooses λ on all
held-out queries, then searches with test queries; with `--wait` it waits for rows that are in training. It
saves after each row. `seeds` prints what was saved, with intervals over seeds.
"""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.common import add_commands, folder_of, parser_of, read_json, train_rows, training_collection
from benchmarks.papers.roc_brute import (
    CUTOFF,
    Questions,
    Texts,
    all_documents,
    bm25_table,
    drawn_questions,
    failures,
    run_of,
    tuned,
)
from benchmarks.papers.roc_fresh import CANDIDATES, chosen, write_start
from benchmarks.papers.roc_rows import ALIKE, CLEAR, EMBEDDING, NAIVE, OURS, Budget, vectors
from benchmarks.papers.roc_seeds import show_seeds
from torch import Tensor

from counterpoint.data import open_collection, open_thesaurus
from counterpoint.files import write_atomically
from counterpoint.loading import load_model
from counterpoint.measure import Adversary, Tally, share_of
from counterpoint.measure.slices import words_in

ASKED = {  # the split of each collection's test queries
    "nq-qed": "dev",
    "squad11-dev": "test",
    "medquad": "test",
    "perspectrum": "test",
    "nl2bash": "test",
    "conala": "test",
}
POOL = tuple(ASKED)
QUESTIONS = POOL[:3]  # of which BM25 misses few; the rule for the start goes by these
ROWS = (NAIVE, OURS, CLEAR, "I", "E")
SEEDS = (1, 2, 3)
STEPS, BATCH, RATE = 500, 32, 1e-4  # the rate of new layers, five times that of trained ones
QUERIES, HELD_OUT, MOST = 2500, 100, 300  # of each collection: trained on, held out, asked at most
GRID = tuple(at / 10 for at in range(21))  # the paper's


# -- training ----------------------------------------------------------------------------------------------


def name_of(fresh, seed, row):
    return f"{fresh} new, seed {seed}, {row}"


def start_of(fresh, seed, output):
    return output / f"start-{fresh}-{seed}"


def recipe_of(fresh, seed, row, arguments):
    """A row that learns from the start of its seed."""
    start = start_of(fresh, seed, arguments.output)
    write_start(start, fresh, seed)
    budget = Budget(arguments.steps, BATCH, all_layers=True, seed=seed)
    made = vectors(EMBEDDING[row], budget)
    stage = replace(made.stages[0], lr=RATE, checkpoint_every=max(arguments.steps, 1))
    return replace(made, stages=[stage], start=str(start))


def training_of(wanted, arguments):
    """The training of rows, given as (new layers, seed, row): a call without arguments.

    The collection and the starts are there when this returns.
    """
    drawn = collection_of(arguments)
    recipes = {name_of(*one): recipe_of(*one, arguments) for one in wanted}
    return partial(train_rows, recipes, folder_of, arguments, "--data", drawn)


def collection_of(arguments):
    """What is trained on; its split `dev` is held out."""
    arguments.output.mkdir(parents=True, exist_ok=True)
    return training_collection(arguments.data, arguments.output / "collection", POOL, QUERIES, HELD_OUT)


# -- the start ---------------------------------------------------------------------------------------------


def starts(arguments):
    """Train the naive sum from each candidate, and choose by the queries held out."""
    train, tried = training_of([(fresh, SEEDS[0], NAIVE) for fresh in CANDIDATES], arguments), {}
    with ThreadPoolExecutor(1) as pool:
        training = pool.submit(train)
        searched = Searched(arguments)
        held = searched.ask(held_out(arguments, QUESTIONS))
        training.result()
    bm25 = failures(held.run(held.bm25, searched.names), held.qrels)
    asked = len(held.qrels)
    for fresh in CANDIDATES:
        folders = {
            "dense": folder_of(name_of(fresh, SEEDS[0], NAIVE), arguments.output) / "model",
            "start": start_of(fresh, SEEDS[0], arguments.output),
        }
        missed = {name: failed(folder, searched, held) for name, folder in folders.items()}
        tried[fresh] = {name: len(queries) / asked for name, queries in missed.items()}
        tried[fresh]["BM25 and dense"] = len(missed["dense"] & bm25) / asked
    fresh, met = chosen(tried)
    said = {"queries": asked, "BM25": len(bm25) / asked, "tried": tried, "new layers": fresh, "met": met}
    saved(arguments.json, said)
    print(json.dumps(said))


def failed(folder, searched, held):
    """The queries that a model's vectors do not answer."""
    encoder = load_model(folder).setup().encoder.query
    cosines = held.texts.vectors(encoder) @ searched.texts.vectors(encoder).T
    return failures(held.run(cosines, searched.names), held.qrels)


def saved(path, found):
    write_atomically(path, lambda part: part.write_text(json.dumps(found, separators=(",", ":"))))


# -- search ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """Queries, their tokens, and BM25 of every document."""

    questions: Questions
    texts: Texts
    bm25: Tensor

    @property
    def qrels(self):
        return self.questions.qrels

    def run(self, scores, names):
        return run_of(scores, self.questions.texts, names)


class Searched:
    """The large collection, which all rows have in common, and where its runs and indexes are."""

    def __init__(self, arguments):
        self.output = arguments.output
        self.documents = all_documents(arguments.data, POOL)
        self.names = [document.id for document in self.documents]
        self.encoder = load_model(start_of(CANDIDATES[0], SEEDS[0], self.output)).setup().encoder.query
        self.texts = self.tokens([document.full_text for document in self.documents], "document")

    def tokens(self, texts, side):
        return Texts(self.encoder, texts, side)

    def ask(self, questions):
        texts = list(questions.texts.values())
        bm25 = bm25_table(self.documents, texts, self.output / "lexical")
        return Asked(questions, self.tokens(texts, "query"), bm25)


def held_out(arguments, names=POOL):
    """Training queries of some collections that no row learns from: the start and λ are chosen by them."""
    made = open_collection(collection_of(arguments), passage_words=None)
    dev = made.qrels("dev").items()
    qrels = {query: dict(grades) for query, grades in dev if query.partition("/")[0] in names}
    texts = made.queries("dev")
    return Questions({query: texts[query] for query in qrels}, qrels)


class Perturbed:
    """The same documents, of which relevant ones have synonyms for the words of their queries (figure 5)."""

    def __init__(self, searched, questions, data):
        self.tally, old = Tally(), searched.documents
        adversary = Adversary(questions.texts, questions.qrels, open_thesaurus(str(data / "wordnet")))
        documents = [adversary.change(document, self.tally) for document in old]
        self.places = [at for at, document in enumerate(documents) if document != old[at]]
        self.texts = searched.tokens([documents[at].full_text for at in self.places], "document")
        folder = searched.output / "lexical-perturbed"
        self.bm25 = bm25_table(documents, questions.texts.values(), folder)

    def vectors(self, encoder, vectors):
        """Those of the original documents, and new ones where a document has changed."""
        changed = vectors.clone()
        changed[self.places] = self.texts.vectors(encoder)
        return changed


# -- evaluation --------------------------------------------------------------------------------------------


def evaluate(arguments):
    """All rows of all seeds, in the order of training; what is done is saved after each."""
    deadline = time.monotonic() + arguments.wait
    if not waited(arguments.json, deadline):
        raise SystemExit(f"{arguments.json} is not there; run `starts` first")
    choice = read_json(arguments.json)
    searched = Searched(arguments)
    asked = searched.ask(drawn_questions(arguments.data, ASKED, MOST))
    perturbed = Perturbed(searched, asked.questions, arguments.data)
    scene = Scene(searched, searched.ask(held_out(arguments)), asked, perturbed)
    found = {"start": choice, **begun(scene), "seeds": {}}
    saved(arguments.save, found)
    for seed in SEEDS:
        cells = {"weights": {}, "systems": {}, "shared": {}, "perturbed": {}}
        for row in arguments.rows or ROWS:
            folder = folder_of(name_of(choice["new layers"], seed, row), arguments.output) / "model"
            if not waited(folder, deadline):
                print(f"seed {seed}, {row}: not trained", flush=True)
                continue
            measure(row, load_model(folder).setup().encoder.query, scene, cells)
            found["seeds"][str(seed)] = cells
            saved(arguments.save, found)
            print(f"seed {seed}, {row}: evaluated", flush=True)


def waited(path, deadline):
    """Whether a path is there, now or before the deadline."""
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(1)
    return path.exists()


@dataclass(frozen=True)
class Scene:
    """What every row is evaluated on: queries to choose λ by, queries to test with, perturbed documents."""

    searched: Searched
    held_out: Asked
    asked: Asked
    perturbed: Perturbed


def begun(scene):
    """What no row changes: the queries, and BM25."""
    asked, names, tests = scene.asked, scene.searched.names, scene.asked.questions
    words = {document.id: words_in(document.full_text) for document in scene.searched.documents}
    relevant = [
        [words[d] for d, grade in grades.items() if grade > 0 and d in words]
        for grades in asked.qrels.values()
    ]
    perturbed = tests.values(asked.run(scene.perturbed.bm25, names), ["RR@10"])
    return {
        "documents": len(names),
        "queries": list(tests.texts),
        "words": [sum(some) / len(some) if some else None for some in relevant],
        "changed": asdict(scene.perturbed.tally),
        "BM25": tests.values(asked.run(asked.bm25, names)),
        "BM25 perturbed": perturbed["RR@10"],
    }


def measure(row, encoder, scene, cells):
    """λ of a row, then its vectors and its hybrids with test queries, also where documents are perturbed.

    The naive sum is the first row of a seed: its λ is the one that all rows then have alike.
    """
    held, asked, names = scene.held_out, scene.asked, scene.searched.names
    vectors = scene.searched.texts.vectors(encoder)
    cosines = held.texts.vectors(encoder) @ vectors.T
    found = tuned(held.bm25, cosines, held.questions, names, GRID)
    cells["weights"][row] = found
    weights = {"": found["weight"], ALIKE: cells["weights"].get(NAIVE, found)["weight"]}
    queries = asked.texts.vectors(encoder)
    dense = queries @ vectors.T
    runs = {"D": asked.run(dense, names), "S": asked.run(asked.bm25, names)}
    cells["shared"][row] = share_of(runs, asked.qrels, CUTOFF).to_dict()
    for system, scores in mixed(row, asked.bm25, dense, weights):
        cells["systems"][system] = asked.questions.values(asked.run(scores, names))
    dense = queries @ scene.perturbed.vectors(encoder, vectors).T
    for system, scores in mixed(row, scene.perturbed.bm25, dense, weights):
        values = asked.questions.values(asked.run(scores, names), ["RR@10"])
        cells["perturbed"][system] = values["RR@10"]


def mixed(row, bm25, cosines, weights):
    """A row's vectors alone, and BM25 plus each weight of them."""
    yield row, cosines
    for end, weight in weights.items():
        yield f"BM25 + {row}{end}", bm25 + weight * cosines


# -- commands ----------------------------------------------------------------------------------------------


def parsed():
    parser = parser_of(__doc__)
    commands = add_commands(parser, "train", "evaluate", "starts", "seeds")
    commands["starts"].add_argument("data", type=Path, help="folder of the collections")
    commands["starts"].add_argument("-o", "--output", type=Path, required=True, help="folder of the runs")
    commands["starts"].add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each")
    for name in ("starts", "train"):
        commands[name].add_argument("--steps", type=int, default=STEPS)
    commands["train"].add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    commands["evaluate"].add_argument("--save", type=Path, required=True, help="what was measured")
    commands["evaluate"].add_argument("--wait", type=float, default=0, help="seconds, for rows in training")
    for name in ("starts", "train", "evaluate"):
        commands[name].add_argument("--json", type=Path, required=True, help="which start was chosen")
    commands["seeds"].add_argument("--json", type=Path, required=True, help="what an evaluation has saved")
    return parser.parse_args()


def main():
    arguments = parsed()
    if arguments.what == "starts":
        starts(arguments)
    elif arguments.what == "train":
        fresh = read_json(arguments.json)["new layers"]
        rows = arguments.rows or ROWS
        training_of([(fresh, seed, row) for seed in arguments.seeds for row in rows], arguments)()
    elif arguments.what == "evaluate":
        evaluate(arguments)
    else:
        show_seeds(read_json(arguments.json))


if __name__ == "__main__":
    main()
