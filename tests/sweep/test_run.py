"""A sweep computes what evaluating by hand computes, each thing once, whatever comes between."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from filelock import FileLock
from tests.sweep.fake import (
    QRELS,
    QUERIES,
    TEXTS,
    CountingModel,
    loader,
    sweep,
    write_collection,
    write_grid,
)

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.measure import evaluate
from counterpoint.search import Searcher
from counterpoint.sweep import plan_sweep, read_grid, run_sweep
from counterpoint.types import Document

ROOT = Path(__file__).parents[2]


def by_name(report):
    return {" ".join(row["configuration"].values()): row for row in report["rows"]}


def test_the_numbers_are_those_of_an_index_built_by_hand(grid, tmp_path):
    model = CountingModel()
    report = sweep(grid, tmp_path / "out", loader(one=model))
    rows = by_name(report)
    documents = [Document(name, text) for name, text in TEXTS.items()]
    for codec in ("int4", "float32"):
        build_index(documents, CountingModel(), tmp_path / codec, IndexSettings(codec=codec))
        with Index(tmp_path / codec) as index:
            for workflow, name in (
                ("hybrid", f"one hybrid {codec} ceiling"),
                ("dense", f"one dense {codec} –"),
                ("words", f"one words {codec} –"),
                ("lexical", "BM25 lexical – –"),
            ):
                run = Searcher(index, CountingModel()).run(QUERIES, 5, workflow=workflow)
                assert rows[name]["measures"] == evaluate(run, QRELS, ["nDCG@5", "R@5"]).measures
            info = index.info()
            sizes = {"lexical": info["bytes_by_purpose"]["lexical"]}
            sizes |= {name: found["bytes"] for name, found in info["sets"].items()}
        assert rows[f"one dense {codec} –"]["bytes_per_document"] == sizes["mean"] / 5
        assert rows["BM25 lexical – –"]["bytes_per_document"] == sizes["lexical"] / 5
        everything = sum(sizes.values())
        assert rows[f"one hybrid {codec} rrf"]["bytes_per_document"] == pytest.approx(everything / 5)
    assert sorted(model.documents) == sorted(TEXTS.values())  # once, for two indexes and eight cells
    assert rows["BM25 lexical – –"]["encode_ms"] == 0 and rows["one dense int4 –"]["encode_ms"] > 0
    assert all(row["total_ms"] == row["search_ms"] + row["encode_ms"] > 0 for row in report["rows"])


def test_again_computes_nothing_and_reports_the_same(grid, tmp_path):
    first = sweep(grid, tmp_path / "out", loader(one=CountingModel()), command="the first")
    assert (first["computed"], first["encoded"]) == (9, len(TEXTS) + len(QUERIES))
    model = CountingModel()
    again = sweep(grid, tmp_path / "out", loader(one=model), command="the second")
    assert (again["computed"], again["encoded"], model.documents, model.queries) == (0, 0, [], [])
    assert again["rows"] == first["rows"]
    assert {row["result"]["provenance"]["command"] for row in again["rows"]} == {"the first"}


def test_a_longer_grid_computes_what_is_new(grid, tmp_path):
    sweep(grid, tmp_path / "out", loader(one=CountingModel()))
    write_collection(tmp_path / "more", texts={**TEXTS, "new": "a new text"})
    text = grid.read_text().replace('"R@5"]', '"R@5", "P@1"]').replace('"int4", ', '"int4", "float16", ')
    write_grid(grid, text + '[[collections]]\nsource = "more"\n')
    model = CountingModel()
    report = sweep(grid, tmp_path / "out", loader(one=model), command="longer")
    # The new codec makes 2 + 1 + 1 cells (hybrid twice), the new collection all of 4 × 3 + 1.
    assert report["computed"] == 4 + 13 and len(report["rows"]) == 9 + 17
    assert model.documents == ["a new text"]
    old = [row for row in report["rows"] if row["result"]["provenance"]["command"] == ""]
    assert len(old) == 9
    for row in old:  # measured again, from the run that was kept
        assert row["result"]["measured"]["provenance"]["command"] == "longer"
        assert row["measures"]["P@1"] in (0, pytest.approx(1 / 3), pytest.approx(2 / 3), 1)
    assert [mean["row"] for mean in report["means"]] == list(range(1, 14))
    for mean in report["means"]:
        both = [row for row in report["rows"] if row["row"] == mean["row"]]
        assert mean["measures"]["P@1"] == sum(row["measures"]["P@1"] for row in both) / 2
        assert mean["search_ms"] == pytest.approx(sum(row["search_ms"] for row in both) / 2)


def test_measures_have_the_binarisation_of_their_collection(grid, tmp_path):
    write_grid(grid, grid.read_text().replace('"animals"', '"animals"\nrelevant_from = 2'))
    report = sweep(grid, tmp_path / "out", loader(one=CountingModel()))
    row = by_name(report)["BM25 lexical – –"]
    # Grade 2 are q1: fox and q2: train, both of which BM25 finds; q3 has none, which counts as 0.
    assert row["measures"]["R@5"] == pytest.approx(2 / 3)
    assert set(row["result"]["measured"]["values"]) == {"nDCG@5", "R(rel=2)@5"}


def test_a_cell_that_fails_is_reported_and_the_others_stand(grid, tmp_path):
    class Failing(CountingModel):
        def encode_document(self, texts):
            raise ConfigError("this model cannot encode <anything>")

    report = sweep(grid, tmp_path / "out", loader(one=Failing()))
    assert [row["configuration"]["model"] for row in report["rows"]] == ["BM25"]
    assert len(report["failures"]) == 8
    assert report["failures"][0] == {
        "where": "animals: one hybrid int4 ceiling",
        "message": "this model cannot encode <anything>",
    }
    assert "this model cannot encode &lt;anything&gt;" in (tmp_path / "out" / "report.html").read_text()
    assert sweep(grid, tmp_path / "out", loader(one=CountingModel()))["computed"] == 8  # tried again


def test_a_bug_of_ours_stops_at_once(grid, tmp_path):
    class Buggy(CountingModel):
        def encode_document(self, texts):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        sweep(grid, tmp_path / "out", loader(one=Buggy()))
    assert not (tmp_path / "out" / "report.html").exists()


def test_encodings_can_be_forgotten(grid, tmp_path):
    write_grid(grid, "keep_encodings = false\n" + grid.read_text())
    folder = tmp_path / "out"
    plan = plan_sweep(read_grid(grid), loader(one=CountingModel()))
    run_sweep(plan, folder, loader(one=CountingModel()))
    assert not (folder / "encodings").exists()
    model = CountingModel()
    report = sweep(grid, folder, loader(one=model))
    assert report["computed"] == 0 and model.documents == []


def test_two_sweeps_at_once_and_a_folder_of_something_else(grid, tmp_path):
    folder = tmp_path / "out"
    sweep(grid, folder, loader(one=CountingModel()))
    with FileLock(folder / ".lock"), pytest.raises(ArtifactError, match="another process is sweeping"):
        sweep(grid, folder, loader(one=CountingModel()))
    with pytest.raises(ArtifactError, match="holds something that is not a sweep"):
        sweep(grid, tmp_path / "animals", loader(one=CountingModel()))


def test_a_damaged_result_is_named(grid, tmp_path):
    sweep(grid, tmp_path / "out", loader(one=CountingModel()))
    path = next((tmp_path / "out" / "results").iterdir())
    path.write_text(path.read_text()[:50])
    report = sweep(grid, tmp_path / "out", loader(one=CountingModel()))
    assert len(report["rows"]) == 8
    (failure,) = report["failures"]
    assert path.name in failure["message"] and "delete it" in failure["message"]


def test_everything_behind_a_number_is_kept(grid, tmp_path, animals):
    import hashlib

    report = sweep(grid, tmp_path / "out", loader(one=CountingModel()), command="counterpoint sweep g")
    result = by_name(report)["one hybrid int4 rrf"]["result"]
    assert json.loads((tmp_path / "out" / "results" / f"{result['cell']}.json").read_text()) == result
    corpus = hashlib.sha256((animals / "corpus.jsonl").read_bytes()).hexdigest()
    assert result["collection"]["file_sha256"]["corpus.jsonl"] == corpus
    assert set(result["collection"]["file_sha256"]) == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
    assert result["identity"]["model"] == CountingModel().fingerprint()
    made = result["provenance"]
    assert made["command"] == "counterpoint sweep g" and made["machine"]["cores"] == os.cpu_count()
    assert made["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert all(made["versions"].values())
    assert result["settings"]["search"]["method"] == "rrf" and result["settings"]["index"]["codec"] == "int4"
    assert (tmp_path / "out" / "runs" / f"{result['cell']}.trec.gz").is_file()


# -- killed ----------------------------------------------------------------------------------------------


def kept(path):
    """Keys of documents that another process has committed."""
    if not path.exists():
        return set()
    with sqlite3.connect(path, timeout=30) as database:
        try:
            return {key for (key,) in database.execute("SELECT key FROM encodings") if key[:1] == b"d"}
        except sqlite3.OperationalError:  # the table is not there yet
            return set()


def test_a_killed_sweep_encodes_only_what_it_lacked(tmp_path):
    texts = {f"d{i}": f"document {i} of many with {'some ' * (i % 7)}words{i}" for i in range(640)}
    qrels = {"q1": {"d1": 1}, "q2": {"d2": 1}, "q3": {"d3": 1}}
    write_collection(tmp_path / "many", texts=texts, qrels=qrels)
    grid = write_grid(
        tmp_path / "grid.toml",
        'measures = ["RR@10"]\nmodels = ["slow"]\nworkflows = ["dense", "lexical"]\n'
        '[[collections]]\nsource = "many"\n[index]\ncodec = ["int8", "float32"]\n',
    )
    folder = tmp_path / "out"
    code = f"from tests.sweep.fake import slow_sweep; slow_sweep({str(grid)!r}, {str(folder)!r})"
    child = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    deadline = time.monotonic() + 60
    while not (paths := list(folder.glob("encodings/*.sqlite"))) or len(kept(paths[0])) < 128:
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    survived = kept(paths[0])
    assert 128 <= len(survived) < 640, "the kill came too late; the test tests nothing"
    model = CountingModel()
    report = sweep(grid, folder, loader(slow=model))
    assert len(model.documents) == len(set(model.documents)) == 640 - len(survived)
    assert len(kept(paths[0])) == 640 and survived < kept(paths[0])
    assert report["computed"] == 3 and report["failures"] == []
    again = sweep(grid, tmp_path / "whole", loader(slow=CountingModel()))
    assert [row["measures"] for row in report["rows"]] == [row["measures"] for row in again["rows"]]
