"""The benchmark that trains small parts: step 0 is the default, a search by a trained part is as measured."""

import json
import random
import sys
from argparse import Namespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from benchmarks.default import learn
from benchmarks.default.learn import KINDS, WORKFLOWS, chosen, gains, interval, main, scenes_of
from benchmarks.default.small import Columns, Residual, Small, Way, drawn_lists, measured, trained
from benchmarks.default.states import Asking, cached, index_of

from counterpoint.index import Index
from counterpoint.loading import load_model
from counterpoint.measure import evaluate
from counterpoint.search import Searcher

WORDS = "whale sea oak ship old wood animal ocean salt timber large vessel river stone".split()
NAMES = ["mqp", "nq-qed", "scifact"]
LEARNING = Way(("importance", "map", "mean"), rate=3e-3, stops=(0, 8))


@pytest.fixture(scope="module")
def options(tmp_path_factory):
    """Three collections of 24 random documents, whose queries are some words of a document."""
    data, draw = tmp_path_factory.mktemp("data"), random.Random(3)
    for name in NAMES:
        (data / name / "qrels").mkdir(parents=True)
        texts = {f"d{i}": " ".join(draw.choices(WORDS, k=draw.randint(0, 12))) for i in range(24)}
        queries = {
            f"q{i}": " ".join([*texts[f"d{i}"].split()[:2], *draw.choices(WORDS, k=2)]) for i in range(12)
        }
        for kind, some in (("corpus", texts), ("queries", queries)):
            lines = [json.dumps({"_id": key, "text": text}) for key, text in some.items()]
            (data / name / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
        lines = ["query-id\tcorpus-id\tscore", *(f"q{i}\td{i}\t1" for i in range(12))]
        for split in ("train", "dev", "test"):
            (data / name / "qrels" / f"{split}.tsv").write_text("\n".join(lines) + "\n")
    return Namespace(data=data, work=tmp_path_factory.mktemp("work"), collections=NAMES)


@pytest.fixture(scope="module")
def scenes(options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmarks.default.scenes.NEAR", 12)  # every word of a document
        return scenes_of(options)


def searched(name, options, change=None):
    drawn, own = cached(name, options.data, options.work, load_model("minilm"))
    with Index(index_of(drawn, own, options.work / name / "index")) as index:
        searcher = Searcher(index, cast(Any, own if change is None else Asking(own, change)))
        runs = {kind: searcher.run(drawn.queries, 24, workflow=WORKFLOWS[kind]) for kind in KINDS}
    found = {kind: evaluate(run, drawn.qrels, ["nDCG@10"]).per_query["nDCG@10"] for kind, run in runs.items()}
    return {kind: [values[query] for query in drawn.queries] for kind, values in found.items()}


@pytest.mark.minilm
@pytest.mark.parametrize("name", NAMES)
def test_step_0_is_the_default(options, scenes, name):
    small = Small(LEARNING, 376, 384)
    found = measured(small, scenes[name], Columns(scenes[name]))
    expected = searched(name, options)
    for kind in KINDS:
        differ = ~np.isclose(found[kind], expected[kind], rtol=0, atol=1e-6)
        # A search rounds queries to 8 bits. So two documents that nearly tie may change places, and whether
        # two do depends on the processor that encoded them.
        assert differ.sum() <= 1, (kind, found[kind], expected[kind])


@pytest.mark.minilm
def test_a_search_by_trained_parts_is_as_measured(options, scenes):
    columns = {name: Columns(scene) for name, scene in scenes.items()}
    untrained, small = None, None
    for step, each in trained(LEARNING, scenes, columns, 0, LEARNING.stops):
        if step == 0:
            untrained = measured(each, scenes["mqp"], columns["mqp"])
        small = each
    assert untrained is not None and small is not None
    found = measured(small, scenes["mqp"], columns["mqp"])
    assert any(np.abs(found[kind] - untrained[kind]).max() > 1e-3 for kind in KINDS)
    expected = searched("mqp", options, small.changed)
    for kind in KINDS:  # queries are rounded to 8 bits in a search, which may swap neighbours
        assert np.mean(found[kind]) == pytest.approx(np.mean(expected[kind]), abs=0.03), kind


@pytest.mark.minilm
def test_lists_begin_with_a_relevant_candidate_and_have_no_other(scenes):
    scene = scenes["mqp"]
    queries, candidates, there = drawn_lists(scene, Columns(scene), torch.Generator().manual_seed(0))
    gains_of = scene.gains[queries].gather(1, candidates)
    assert (gains_of[:, 0] > 0).all() and not gains_of[:, 1:][there[:, 1:]].any()
    assert scene.known[queries].gather(1, candidates)[there].all()


@pytest.mark.long
@pytest.mark.minilm
def test_tables_and_parts_are_kept(options, scenes, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(learn, "WAYS", (Way(("importance",), rate=0.1, stops=(0, 2, 4)),))
    monkeypatch.setattr(learn, "TEST", {})
    command = ["learn", "choose", str(options.data), "--work", str(options.work), "--collections", *NAMES]
    monkeypatch.setattr(sys, "argv", [*command, "--plot", str(tmp_path / "gain.svg")])
    main()
    first = capsys.readouterr().out
    assert "without scifact" in first and "chosen: " in first and (tmp_path / "gain.svg").stat().st_size
    monkeypatch.setattr(sys, "argv", command)
    main()
    assert "without" not in capsys.readouterr().out  # nothing is trained again
    monkeypatch.setattr(learn, "chosen", lambda found: (next(iter(found)), 0))
    monkeypatch.setattr(sys, "argv", ["learn", "evaluate", *command[2:], "--on", "scifact", "mqp"])
    main()
    assert "nothing is searched" in capsys.readouterr().out and not (options.work / "evaluation").exists()
    monkeypatch.setattr(learn, "chosen", lambda found: (next(iter(found)), 2))
    main()
    text = capsys.readouterr().out
    assert "hybrid, mean of seeds - untrained" in text and "mean over all" in text
    kept = json.loads((options.work / "evaluation" / "mqp.json").read_text())
    assert {kind: len(values) for kind, values in kept.items()} == dict.fromkeys(KINDS, 4)


def values_of(*hybrids):
    return {str(step): {"hybrid": each} for step, each in zip((0, 1, 2), hybrids, strict=True)}


def test_of_level_gains_the_fewest_steps_are_chosen():
    slow, fast = Way(("map",), stops=(0, 1, 2)), Way(("mean",), stops=(0, 1, 2))
    level = {slow: {"a": values_of([0.5], [0.6], [0.6004])}, fast: {"a": values_of([0.5], [0.55], [0.6003])}}
    assert chosen(level) == (slow, 1)
    level[fast]["a"] = values_of([0.5], [0.55], [0.62])
    assert chosen(level) == (fast, 2) and gains(level[fast], 2) == pytest.approx([0.12])
    assert chosen({slow: {"a": values_of([0.5], [0.5004], [0.4])}})[1] == 0


def test_the_interval_counts_collections_alike():
    draw = np.random.default_rng(1)
    low, high = interval([draw.normal(1, 0.1, 1000), draw.normal(0, 0.1, 10)])
    assert low < 0.5 < high and high - low < 0.1


def test_a_map_starts_as_identity_and_keeps_unit_length():
    rows = torch.nn.functional.normalize(torch.randn(5, 8), dim=-1)
    for rank in ("full", "diagonal", 2):
        residual = Residual(8, rank)
        assert torch.allclose(residual(rows), rows, atol=1e-6)
        torch.nn.init.normal_(residual.right)
        assert torch.allclose(residual(rows).norm(dim=-1), torch.ones(5)) and not torch.allclose(
            residual(rows), rows
        )
