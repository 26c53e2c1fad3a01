"""The benchmark of engines measures ours, says what is missing, and knows what is truly best."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from exact import exact_best, maxsim
from filelock import FileLock
from synthetic import BASE, CHUNK, WORDS, Synthetic
from vector_files import TokenFiles

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "speed" / "engine.py"
DOCUMENTS, DIM = 40, 16


@pytest.fixture
def vectors(tmp_path):
    """What `prepare` makes, of random vectors."""
    folder, rng = tmp_path / "vectors", np.random.default_rng(0)
    folder.mkdir()
    lengths = rng.integers(1, 9, DOCUMENTS)
    ids = np.array([f"d{i}" for i in range(DOCUMENTS)])
    write(folder / "docs-0000.npz", lengths, rng, ids=ids)
    write(folder / "queries.npz", np.full(3, 4), rng)
    queries = [{"id": f"q{i}", "text": f"query {i}", "terms": [f"term{i}"]} for i in range(3)]
    (folder / "queries.json").write_text(json.dumps(queries))
    (folder / "terms.jsonl").write_text("".join(f'["term{i % 5}"]\n' for i in range(DOCUMENTS)))
    about = {"name": "random", "data": "-", "dim": DIM, "qrels": {"q0": {"d0": 1}, "q1": {"d1": 1}}}
    (folder / "about.json").write_text(json.dumps(about))
    return folder


def write(path, lengths, rng, **more):
    values = rng.normal(size=(lengths.sum(), DIM)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    np.savez(
        path, values=values.astype(np.float16), offsets=np.concatenate([[0], np.cumsum(lengths)]), **more
    )


def run(*arguments):
    command = [sys.executable, SCRIPT, "run", *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True)


@pytest.mark.long
def test_it_measures_ours_and_says_what_is_missing(vectors, tmp_path):
    said = run(
        *(vectors, "-o", tmp_path / "work", "--json", tmp_path / "found.json", "-k", "10", "--seconds", "5"),
        *("--systems", "numpy", "ours, int8", "fast-plaid", "xtr-warp"),
        *("--python", f"fast-plaid={sys.executable}"),
    )
    assert said.returncode == 0, said.stderr
    rows = {
        (row["system"], row.get("search")): row for row in json.loads((tmp_path / "found.json").read_text())
    }
    assert rows["numpy", "every document"]["recall@10"] == 1
    ours = rows["ours, int8", "every document"]
    assert ours["recall@10"] > 0.8 and ours["judged"] == 2 and ours["queries"] == 3
    assert ours["bytes_a_document"] > 0 and ours["wall_p95_ms"] >= ours["wall_p50_ms"] > 0
    assert rows["fast-plaid", None]["outcome"] == "not installed: fast_plaid"
    assert "engine.py install" in rows["xtr-warp", None]["outcome"]
    for (system, _), row in rows.items():
        assert system in said.stdout and row.get("outcome", "") in said.stdout


def test_what_fails_and_what_takes_too_long_has_a_row(vectors, tmp_path):
    (vectors / "terms.jsonl").write_text("{not JSON\n")
    asked = vectors, "-o", tmp_path / "work", "--json", tmp_path / "found.json", "--systems"
    run(*asked, "bm25s numba", "--limit", "60")
    (row,) = json.loads((tmp_path / "found.json").read_text())
    assert row["outcome"].startswith("build: failed (")
    run(*asked, "ours, int8", "--limit", "0.01")
    (row,) = json.loads((tmp_path / "found.json").read_text())
    assert row["outcome"].endswith("not done after 0 s")


def test_two_runs_do_not_share_a_folder(vectors, tmp_path):
    (tmp_path / "work" / "random-40").mkdir(parents=True)
    with FileLock(tmp_path / "work" / "random-40" / ".lock"):
        said = run(vectors, "-o", tmp_path / "work", "--systems", "numpy")
    assert said.returncode and "another run uses it" in said.stderr


@pytest.mark.parametrize(
    "options, told",
    [(["--systems", "nobody"], "no system 'nobody'"), (["--python", "a=b"], "not an interpreter")],
)
def test_a_wrong_option_is_said(vectors, tmp_path, options, told):
    said = run(vectors, "-o", tmp_path, *options)
    assert said.returncode and told in said.stderr


def test_the_exact_ranking_is_that_of_a_plain_loop(vectors, tmp_path):
    files = TokenFiles(vectors, 30)
    queries = files.queries(3)
    (chunk,) = files.chunks()
    assert len(chunk.ids) == 30
    wanted = [
        [sum(max(float(a @ b) for b in rows.astype(np.float32)) for a in query.tokens) for rows in chunk.sets]
        for query in queries
    ]
    found = maxsim([query.tokens for query in queries], chunk.values, chunk.offsets)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    best = exact_best(files, queries, 7, "tokens", tmp_path / "best.json")
    for query, scores in zip(queries, wanted, strict=True):
        assert best[query.id] == [f"d{i}" for i in np.argsort(-np.array(scores), kind="stable")[:7]]
    assert exact_best(files, queries, 7, "tokens", tmp_path / "best.json") == best


def test_synthetic_documents_do_not_depend_on_how_many_there_are(tmp_path):
    rng = np.random.default_rng(0)
    offsets = np.array([0, 50, 90, 160])
    arrays = {
        "values": rng.normal(size=(160, 8)).astype(np.float16),
        "offsets": offsets,
        "ids": np.arange(160) % 100,
        "words": np.array([f"word{i % 100}" for i in range(160)]),
        "pooled": rng.normal(size=(3, 6)).astype(np.float16),
    }
    np.savez(tmp_path / BASE, **{f"minilm.{name}": array for name, array in arrays.items()})
    (tmp_path / "about.json").write_text('{"name": "synthetic"}')
    few, more = Synthetic(tmp_path, 1500), Synthetic(tmp_path, 4000)
    assert list(few.numbers()) == [(0, CHUNK), (1, 500)]
    mine, other = few.rows("minilm", 1, 500), more.rows("minilm", 1, CHUNK)
    assert mine.words == other.words[: len(mine.words)]
    assert (np.diff(mine.offsets) <= WORDS).all() and (np.diff(mine.offsets) > 5).all()
    for a, b in zip(mine.offsets, mine.offsets[1:], strict=False):
        assert len(set(mine.ids[a:b].tolist())) == b - a == len(set(mine.words[a:b]))
    np.testing.assert_allclose(
        np.linalg.norm(np.concatenate(list(few.pooled_chunks())), axis=1), 1, rtol=1e-5
    )
    assert few.qrels().keys() >= {query.id for query in few.queries(5)}
