"""A small recipe, a collection to carry it out on, and a recipe file."""

import json

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, TextInput, TokenVectors, Transformer
from counterpoint.learn import Contrastive, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot

WORDS = "cat sat mat dog run house red blue".split()


def declared(source="some/model", **changes):
    """A model with a pooled and a token-wise set, and one stage."""
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors(projection=Linear(4))}
    arguments = {
        "name": "small",
        "paper": "nobody 2020",
        "model": Model(
            DualEncoder(Encoder(Transformer(str(source)), heads, document=TextInput(20))),
            search={"weights": {"mean": 1.0}},
        ),
        "stages": [Train(Contrastive(scale=20.0), Dot("mean"), batch=4, lr=1e-3)],
        "data": DataSettings(held_out=0),
    }
    return Recipe(**{**arguments, **changes})


FILE = '''"""A recipe of a user, with a loss of its own."""

from counterpoint.learn import Contrastive, Loss, Train
from tests.recipe.small import declared


class Softer(Loss):
    """Half the contrastive loss."""

    def forward(self, step):
        return 0.5 * Contrastive(scale=20.0)(step)


recipe = declared({source!r}, stages=[Train({objective}, declared().stages[0].scorer, batch=4, lr=1e-3)])
'''


def write_recipe(path, source="some/model", objective="Contrastive(scale=20.0)"):
    path.write_text(FILE.format(source=str(source), objective=objective))
    return path


def write_collection(folder):
    """Forty documents of three words; 16 queries to train on, 4 for development, each with one document."""
    (folder / "qrels").mkdir(parents=True)
    documents = {f"d{i}": f"{WORDS[i % 8]} {WORDS[(3 * i + 1) % 8]} on {WORDS[i // 8]}" for i in range(40)}
    queries = {f"q{i}": f"where is {WORDS[i % 8]} {WORDS[i // 8]} {i}" for i in range(20)}
    for name, texts in (("corpus", documents), ("queries", queries)):
        rows = [json.dumps({"_id": id_, "title": "", "text": text}) + "\n" for id_, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(rows))
    for split, numbers in (("train", range(16)), ("dev", range(16, 20))):
        rows = [f"q{i}\td{i}\t1\n" for i in numbers]
        (folder / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows))
    return folder
