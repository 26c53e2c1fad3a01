"""The benchmark that chooses weights which follow the query: its values are those of a search by them."""

import json
import random
import sys
from argparse import Namespace
from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.default.query_weights import (
    FAMILIES,
    HALVES,
    adapted_all,
    by_query,
    main,
    named,
    prepared,
    scored,
    settings_of,
)
from safetensors.torch import save_file

from counterpoint.index import Index
from counterpoint.loading import load_model
from counterpoint.search import Searcher, SearchSettings
from counterpoint.search.adapt import adapted

PARTS = ("lexical", "mean", "words")
WORDS = "whale sea oak ship old wood animal ocean salt timber large vessel is_empty checkFile".split()


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Two collections of 24 random documents, whose queries are some words of a document."""
    data = tmp_path_factory.mktemp("data")
    draw = random.Random(3)
    for name, splits in (("mqp", ("train", "dev", "test")), ("scifact", ("train",))):
        (data / name / "qrels").mkdir(parents=True)
        texts = {f"d{i}": " ".join(draw.choices(WORDS, k=draw.randint(0, 12))) for i in range(24)}
        queries = {
            f"{split}{i}": " ".join([*texts[f"d{i}"].split()[:2], draw.choice(WORDS), "unknowable"])
            for split in splits
            for i in range(6)
        }
        for kind, some in (("corpus", texts), ("queries", queries)):
            lines = [json.dumps({"_id": key, "text": text}) for key, text in some.items()]
            (data / name / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
        for split in splits:
            lines = [f"{split}{i}\td{i}\t1" for i in range(6)]
            text = "\n".join(["query-id\tcorpus-id\tscore", *lines]) + "\n"
            (data / name / "qrels" / f"{split}.tsv").write_text(text)
    work = tmp_path_factory.mktemp("work")
    return Namespace(data=data, work=work, maps=None, collections=["mqp", "scifact"], json=None)


@pytest.mark.minilm
@pytest.mark.parametrize("name", [pytest.param("mqp", marks=pytest.mark.long), "scifact"])
def test_values_are_those_of_a_search(options, name):
    found = scored(name, options)
    folder, model, queries, qrels = prepared(name, options)
    with Index(folder) as index:
        own = replace(SearchSettings.for_index(index), feedback=0.0, adapt={})
        ways = list(FAMILIES["adapt"]())
        for label, way in random.Random(0).sample(ways, 6):
            run = Searcher(index, model, replace(own, **settings_of(label))).run(queries, 100)
            values = list(by_query(qrels)(run).values())
            assert found.values(way.weights(found)) == pytest.approx(values, abs=1e-6)
        workflows = {"BM25": "lexical", "cosine": "dense", "whole words": "words"}
        for half, workflow in workflows.items():
            run = Searcher(index, model, own).run(queries, 100, workflow=workflow)
            assert found.half(half) == pytest.approx(list(by_query(qrels)(run).values()), abs=1e-6)


def test_all_queries_at_once_have_the_weights_of_each():
    evidence = np.random.default_rng(0).random((20, 3)) * [1, 0, 60] + [0, 1, 0]
    evidence[3], evidence[4, 1], evidence[5, 2] = [0.5, 0, 0], 0, 0
    shares = (0.2, 0.3, 0.5)
    settings = settings_of(f"{named(shares)}, adapt lexical=2 words=30")
    for row, found in zip(evidence, adapted_all(evidence, shares, 2, 30), strict=True):
        one = adapted(settings["weights"], settings["adapt"], dict(zip(PARTS, row, strict=True)))
        assert found / found.sum() == pytest.approx(list(one.values()))


@pytest.mark.minilm
def test_the_tables_are_printed_and_saved(options, tmp_path, monkeypatch, capsys):
    few = {family: lambda ways=ways: [*ways()][:3] for family, ways in FAMILIES.items()}
    monkeypatch.setattr("benchmarks.default.query_weights.FAMILIES", few)
    command = ["query_weights.py", options.data, "--work", options.work, "--json", tmp_path / "found.json"]
    monkeypatch.setattr(sys, "argv", [*map(str, command), "--collections", *options.collections])
    main()
    saved, text = json.loads((tmp_path / "found.json").read_text()), capsys.readouterr().out
    assert set(saved["families"]) == {"fixed", "powers", "ratio", "adapt"} and all(
        half in text for half in HALVES
    )
    for family in saved["families"].values():
        assert set(family["left out"]) == set(family["intervals"]) == {"mqp", "scifact"}
    assert set(saved["searched"]["mqp"]) == {
        "chosen", "chosen, no feedback", "chosen, no BM25", "before", "before, no feedback",
    }  # fmt: skip


def test_a_folder_without_maps_is_refused(options, tmp_path, monkeypatch):
    command = ["query_weights.py", options.data, "--work", tmp_path / "work", "--maps", tmp_path]
    command += ["--collections", *options.collections]
    monkeypatch.setattr(sys, "argv", [str(word) for word in command])
    with pytest.raises(SystemExit, match="no maps there"):
        main()
    assert not (tmp_path / "work").exists()


@pytest.mark.minilm
@pytest.mark.long
def test_each_collection_says_which_map_it_has(options, tmp_path, capsys, default_model):
    """One has a map of its own; the other keeps the model's."""
    (whitening,) = load_model("minilm").steps("words")
    whitening.mean_ += 1.0
    save_file(whitening.state_dict(), tmp_path / "mqp.safetensors")
    asked = Namespace(**{**vars(options), "work": tmp_path / "work", "maps": tmp_path})
    for name, moved in (("mqp", 1.0), ("scifact", 0.0)):
        _, model, _, _ = prepared(name, asked)
        difference = model.steps("words")[0].mean_ - default_model.steps("words")[0].mean_
        assert torch.allclose(difference, torch.full_like(difference, moved))
    said = capsys.readouterr().err
    assert "mqp.safetensors" in said and "scifact: with the map of the model" in said
