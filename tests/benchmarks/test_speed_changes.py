"""The benchmark of changing indexes: every system has the same changes, and answers are judged rightly."""

import json
import math
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from change_exact import bm25_scores, judged, maxsim_scores
from change_plan import PHASES, Plan
from some_documents import Documents
from tests.benchmarks.test_speed_engine import DIM, write
from vector_files import CHUNK, Query, TokenFiles

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "speed" / "changes.py"
SMALL = {"size": 5, "batches": 2, "singles": 2, "deletes": 2, "rounds": 2}


@pytest.fixture
def vectors(tmp_path):
    """What `prepare` makes, of random vectors, in a whole file and a short one."""
    folder, rng, words = tmp_path / "vectors", np.random.default_rng(0), [f"term{i}" for i in range(50)]
    folder.mkdir()
    for number, count in enumerate((CHUNK, 60)):
        ids = np.array([f"d{number * CHUNK + i}" for i in range(count)])
        write(folder / f"docs-{number:04}.npz", rng.integers(1, 5, count), rng, ids=ids)
    write(folder / "queries.npz", np.full(3, 4), rng)
    queries = [{"id": f"q{i}", "text": f"query {i}", "terms": [words[i], "rare1"]} for i in range(3)]
    (folder / "queries.json").write_text(json.dumps(queries))
    lines = [json.dumps([*rng.choice(words, 5).tolist(), f"rare{i}"]) for i in range(CHUNK + 60)]
    (folder / "terms.jsonl").write_text("\n".join(lines) + "\n")
    about = {"name": "random", "data": "-", "dim": DIM, "qrels": {}}
    (folder / "about.json").write_text(json.dumps(about))
    return folder


def run(*arguments):
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


@pytest.mark.long
def test_it_changes_ours_and_says_what_is_missing(vectors, tmp_path):
    small = [text for name, value in SMALL.items() for text in (f"--{name}", value)]
    said = run(
        *(vectors, "-o", tmp_path / "work", "--documents", "100", "--seconds", ".5", "--every", "0", *small),
        *("--json", tmp_path / "found.json", "--plot", tmp_path / "plots", "--queries", "3"),
        *("--systems", "ours, BM25", "ours, 4-bit", "LanceDB"),
    )
    assert said.returncode == 0, said.stderr
    rows = {row["system"]: row for row in json.loads((tmp_path / "found.json").read_text())}
    assert "engine.py install" in rows["LanceDB"]["outcome"] and rows["LanceDB"]["outcome"] in said.stdout
    for name in ("ours, BM25", "ours, 4-bit"):
        row = rows[name]
        assert row["unseen"] == row["failed"] == row["wrong_deleted"] == row["wrong_compacted"] == 0
        assert row["recall_deleted"] > 0.9 and row["recall_compacted"] > 0.9
        assert row["mb_compacted"] < row["mb_full"] and row["batches_p95"] >= row["batches_p50"] > 0
        actions = Counter(action for action, _, _ in row["timeline"]["actions"])
        assert actions == {"add": 2, "delete": 2, "merge": 4, "compact": 2}
        assert row["quiet_n"] == len(row["timeline"]["quiet"]) > 0 and row["writing_n"] > 0
        (plot,) = (tmp_path / "plots").glob(f"{name.replace(', ', '-')}*.svg")
        assert "<svg" in plot.read_text()


def test_a_plan_deletes_only_what_is_live():
    plan, live = Plan(40, **SMALL), set(range(40))
    for phase in PHASES:
        for step in plan.steps(phase):
            numbers = set(step.numbers)
            assert numbers.isdisjoint(live) if step.adds else numbers <= live
            live = live | numbers if step.adds else live - numbers
        assert plan.live(phase) == sorted(live)
    assert max(live) < plan.total == 62
    assert [len(plan.steps(phase)) for phase in PHASES] == [2, 2, 2, 4, 1]
    assert len(plan.live("halving")) == -(-len(plan.live("rounds")) // 2)


def test_some_documents_are_those_of_the_files(vectors):
    files = TokenFiles(vectors)
    every = [rows for chunk in files.chunks() for rows in chunk.sets]
    some = Documents(files, "tokens").some(990, 30)
    assert some.ids == [str(i) for i in range(990, 1020)]
    for rows, wanted in zip(some.chunk.sets, every[990:1020], strict=True):
        np.testing.assert_array_equal(rows, wanted)
    np.testing.assert_array_equal(some.asking(-1).tokens, every[1019].astype(np.float32))
    assert Documents(files, "lexical").some(990, 30).terms == list(files.terms())[990:1020]
    with pytest.raises(ValueError, match="no document number 1,060"):
        Documents(files, "tokens").some(1050, 20)


def test_answers_are_judged_by_live_documents(vectors, tmp_path):
    files = TokenFiles(vectors, 40)
    queries, live = files.queries(2), list(range(1, 40, 2))
    scores = maxsim_scores(files, queries, tmp_path / "scores.npy")
    best = {
        query.id: [str(i) for i in sorted(live, key=lambda i, row=row: -row[i])[:10]]
        for query, row in zip(queries, scores, strict=True)
    }
    assert judged(best, queries, scores, live) == {"recall": 1, "wrong": 0}
    spoilt = {name: ["0", numbers[0], *numbers[:8]] for name, numbers in best.items()}
    assert judged(spoilt, queries, scores, live) == {"recall": 0.8, "wrong": 4}
    np.testing.assert_array_equal(maxsim_scores(files, queries, tmp_path / "scores.npy"), scores)


def test_bm25_counts_live_documents_only():
    terms = [["a", "b"], ["a", "a", "c"], ["c"], ["a"]]
    query = Query("q", "a", ["a"], np.zeros((0, 1)), np.zeros(1))
    (scores,) = bm25_scores(terms, [0, 1, 2], [query], k1=0.9, b=0.4)
    idf = math.log(1 + (3 - 2 + 0.5) / (2 + 0.5))
    wanted = [idf / (1 + 0.9), idf * 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2)), 0, -math.inf]
    np.testing.assert_allclose(scores, wanted)
