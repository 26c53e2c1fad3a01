"""The universe of RoC: the start, the rule that chooses it, rows that are sound, and tables over seeds."""

import gzip
import json
import random
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.common import folder_of
from benchmarks.papers import roc_universe
from benchmarks.papers.roc_brute import run_of, tuned
from benchmarks.papers.roc_fresh import chosen, write_start
from benchmarks.papers.roc_rows import CLEAR, NAIVE, OURS
from benchmarks.papers.roc_seeds import answered, sets, show_seeds
from benchmarks.papers.roc_universe import ASKED, POOL, ROWS, evaluate, name_of, recipe_of, starts

from counterpoint.loading import load_model
from counterpoint.recipe import check

WORDS = "whale sea oak ship old wood animal ocean salt timber large vessel river stone".split()


@pytest.mark.minilm
@pytest.mark.long
def test_only_upper_layers_are_new_and_a_seed_has_its_own(tmp_path):
    layers = {}
    for name, fresh, seed in (("a", 2, 1), ("b", 2, 2), ("c", 6, 1)):
        write_start(tmp_path / name, fresh, seed)
        model = load_model(tmp_path / name).setup().encoder.query.backbone.model_
        layers[name] = [layer.state_dict() for layer in model.encoder.layer]
        layers[name].append(model.embeddings.state_dict())

    def alike(first, second):
        pairs = zip(layers[first], layers[second], strict=True)
        return [all(torch.equal(one[key], other[key]) for key in one) for one, other in pairs]

    assert alike("a", "b") == [True] * 4 + [False] * 2 + [True]
    assert alike("a", "c") == [False] * 4 + [True] * 3
    assert abs(float(layers["c"][0]["attention.self.query.weight"].std()) - 0.02) < 0.002


@pytest.mark.parametrize(
    ("dense", "start", "taken"),
    [
        ((0.1, 0.3, 0.4), (0.9, 0.9, 0.9), (3, True)),  # the fewest layers that fail on a fifth
        ((0.1, 0.3, 0.4), (0.9, 0.2, 0.9), (4, True)),  # 3 is worse than its start
        ((0.1, 0.2, 0.15), (0.9, 0.9, 0.9), (3, False)),  # a fifth is not more than a fifth
        ((0.9, 0.9, 0.9), (0.1, 0.1, 0.1), (4, False)),
    ],
)
def test_the_start_is_chosen_by_a_rule(dense, start, taken):
    tried = {new: {"dense": d, "start": s} for new, d, s in zip((2, 3, 4), dense, start, strict=True)}
    assert chosen(tried) == taken


@pytest.mark.minilm
def test_rows_learn_from_their_seed_s_start_and_differ_in_what_the_paper_says(tmp_path):
    made = {row: recipe_of(3, 2, row, Namespace(output=tmp_path, steps=7)) for row in ROWS}
    for recipe in made.values():
        assert check(recipe) == [] and recipe.seed == 2 and recipe.start == str(tmp_path / "start-3-2")
        assert (recipe.stages[0].steps, recipe.stages[0].learn, recipe.stages[0].lr) == (7, ("*",), 1e-4)
    hidden = {row: recipe.stages[0].mask_matches for row, recipe in made.items()}
    assert hidden == {NAIVE: 0.0, CLEAR: 0.0, "E": 0.0, "I": 0.15, OURS: 0.15}
    assert [row for row in ROWS if made[row].stages[0].lexical] == [OURS, CLEAR, "E"]


def test_a_score_of_0_is_no_answer_and_the_first_best_weight_is_taken():
    run = run_of(torch.tensor([[0.0, 2.0, 1.0]]), ["q"], ["a", "b", "c"])
    assert run["q"] == [("b", 2.0), ("c", 1.0)]
    questions = roc_universe.Questions({"q": "?"}, {"q": {"c": 1}})
    lexical, dense = torch.tensor([[0.0, 1.0, 0.5]]), torch.tensor([[0.0, 0.0, 1.0]])
    found = tuned(lexical, dense, questions, ["a", "b", "c"], (0.0, 0.4, 0.6, 0.8))
    assert found == {"weight": 0.6, "edge": False, "AP": 1.0}


def test_sets_of_queries_and_roc():
    d, s = answered([1.0, 0.1, 0.3333, 0.0]), answered([0.5, 0.0, 0.0, 0.0])
    assert [part.tolist() for part in sets(d, s)] == [[0.5], [0.25], [0.25], [2 / 3]]
    assert answered([1.0, 0.5], 1).tolist() == [True, False]
    assert np.isnan(sets(~d & d, s)[3][0])


@pytest.fixture
def data(tmp_path):
    """Every collection with 30 random documents, whose queries are some words of a document; synonyms."""
    draw = random.Random(3)
    for name in POOL:
        folder = tmp_path / "data" / name
        (folder / "qrels").mkdir(parents=True)
        texts = {f"d{i}": " ".join(draw.choices(WORDS, k=draw.randint(3, 12))) for i in range(30)}
        queries = {f"q{i}": " ".join(texts[f"d{i}"].split()[:3]) for i in range(30)}
        for kind, some in (("corpus", texts), ("queries", queries)):
            lines = [json.dumps({"_id": key, "text": text}) for key, text in some.items()]
            (folder / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
        for split, numbers in (("train", range(20)), (ASKED[name], range(20, 30))):
            lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in numbers)]
            (folder / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    wordnet = tmp_path / "data" / "wordnet"
    wordnet.mkdir()
    with gzip.open(wordnet / "lemma_senses.tsv.gz", "wt") as file:
        file.write("whale\tn\t0\ts1\ncetacean\tn\t0\ts1\n")
    with gzip.open(wordnet / "synsets.jsonl.gz", "wt") as file:
        file.write(json.dumps({"id": "s1", "members": ["whale", "cetacean"]}) + "\n")
    return tmp_path / "data"


@pytest.mark.minilm
@pytest.mark.long
def test_a_start_is_chosen_and_rows_are_evaluated_and_shown(data, tmp_path, monkeypatch, capsys):
    """Without training: the starts take the places of the rows."""

    def train(recipes, place, arguments, *_):
        for name, recipe in recipes.items():
            folder = place(name, arguments.output)
            if not folder.is_dir():
                folder.mkdir()
                (folder / "model").symlink_to(Path(recipe.start))

    monkeypatch.setattr(roc_universe, "train_rows", train)
    monkeypatch.setattr(roc_universe, "CANDIDATES", (2, 6))
    monkeypatch.setattr(roc_universe, "SEEDS", (1, 2))
    monkeypatch.setattr(roc_universe, "HELD_OUT", 4)
    paths = {"data": data, "output": tmp_path / "runs", "json": tmp_path / "starts.json"}
    arguments = Namespace(**paths, save=tmp_path / "found.json", rows=None, steps=1, jobs=1, wait=0)
    starts(arguments)
    choice = json.loads(arguments.json.read_text())
    assert choice["met"] is False and choice["queries"] == 12  # nothing has learnt
    fresh = choice["new layers"]
    wanted = [(fresh, 1, row) for row in ROWS] + [(fresh, 2, NAIVE), (fresh, 2, OURS)]
    roc_universe.training_of(wanted, arguments)()
    assert (folder_of(name_of(fresh, 2, OURS), arguments.output) / "model").exists()
    evaluate(arguments)
    saved = json.loads(arguments.save.read_text())
    assert saved["documents"] == 180 and len(saved["queries"]) == 60 and saved["changed"]["replaced"] > 0
    assert list(saved["seeds"]["1"]["weights"]) == list(ROWS)
    assert list(saved["seeds"]["2"]["weights"]) == [NAIVE, OURS]
    first = saved["seeds"]["1"]["systems"]
    assert first["BM25 + E"] == first[f"BM25 + {NAIVE}"]  # the same model
    assert all(len(values) == 60 for system in first.values() for values in system.values())
    show_seeds(saved)
    printed = capsys.readouterr().out
    assert "| I + E − dense | 0.000 |" in printed and "seed 2, E: not trained" in printed
    assert "- all collections: I + E has the highest RoC@10: does not hold" in printed
    assert "no candidate meets the rule" in printed and "\nperspectrum\n" in printed
