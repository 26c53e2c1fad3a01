"""Small collections, a model that counts what it encodes, and a sweep slow enough to be killed."""

import json
import time
from dataclasses import replace

from tests.fakes import HashModel

from counterpoint.errors import ArtifactError
from counterpoint.index import IndexSettings
from counterpoint.sweep import plan_sweep, read_grid, run_sweep

TEXTS = {
    "fox": "the quick brown fox jumps over the lazy dog",
    "whale": "a whale is a mammal that lives in the sea",
    "train": "trains to the coast leave from platform nine",
    "dog": "a lazy dog sleeps all day near the quick train",
    "empty": "",
}
QUERIES = {"q1": "quick fox", "q2": "trains to the sea", "q3": "lazy whale"}
QRELS = {"q1": {"fox": 2, "dog": 1}, "q2": {"train": 2, "whale": 1}, "q3": {"whale": 1}}


class CountingModel(HashModel):
    """What an index and a sweep need of a model, with a record of every text that it encodes."""

    def __init__(self, seed=0, pause=0.0):
        super().__init__(seed=seed)
        self.pause, self.documents, self.queries = pause, [], []

    def encode_document(self, texts):
        time.sleep(self.pause)
        self.documents += texts
        return super().encode_document(texts)

    def encode_query(self, texts):
        self.queries += texts
        return HashModel.encode_document(self, texts)

    def index_settings(self, name=None, **changes):
        return replace(IndexSettings(model=name), **changes)


def loader(**models):
    """Find models by name; a name that is not there is a user's mistake, as it is for `load_model`."""

    def load(name):
        if name not in models:
            raise ArtifactError(f"there is no model {name!r}")
        return models[name]

    return load


def write_collection(folder, texts=TEXTS, queries=QUERIES, qrels=QRELS, split="test"):
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    rows = [json.dumps({"_id": name, "title": "", "text": text}) for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("\n".join(rows) + "\n")
    rows = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    lines = [f"{q}\t{d}\t{grade}" for q, judged in qrels.items() for d, grade in judged.items()]
    (folder / "qrels" / f"{split}.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n")
    return folder


def write_grid(path, text):
    path.write_text(text)
    return path


def sweep(grid, folder, load, **rest):
    """Read, plan and run."""
    read = read_grid(grid)
    return run_sweep(plan_sweep(read, load), folder, load, **rest)


def slow_sweep(grid, folder):
    """A sweep that a test kills: every batch of texts takes its time."""
    sweep(grid, folder, loader(slow=CountingModel(pause=0.15)))
