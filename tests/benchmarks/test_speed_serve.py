"""The benchmark of the server runs, and its check finds answers that are wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
from serve_check import Commit, checked, misses, right  # noqa: E402

import counterpoint as cp  # noqa: E402
from serve import ADDED, HELD, checksum, first_commit, summary  # noqa: E402

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "speed" / "serve.py"
WORDS = "whale sea oak ship old wood animal ocean salt timber".split()


def documents(count):
    return [
        {"id": f"d{i}", "title": f"{WORDS[i % 9]} {i}", "text": " ".join(WORDS[i % 7 : i % 7 + 3] + [str(i)])}
        for i in range(count)
    ]


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_it_measures_and_checks(tmp_path):
    lines = [json.dumps({"_id": d["id"], "title": d["title"], "text": d["text"]}) for d in documents(500)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "old whale"}) + "\n")
    command = [sys.executable, SCRIPT, tmp_path, "-o", tmp_path / "work", "--model", "none", "--clients", "2"]
    command += ["--seconds", "1", "--requests", "400", "--pause", "0.1", "--soak-pause", "0.1"]
    command += ["--json", tmp_path / "found.json", "--plot", tmp_path / "memory.svg"]
    said = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert [(row["server"], row["index"]) for row in found["rows"]] == [
        ("counterpoint serve", "quiet"),
        ("plain FastAPI", "quiet"),
        ("counterpoint serve", "changes"),
        ("counterpoint serve", "soak"),
    ]
    assert all(row["p99"] >= row["p50"] > 0 and row["rate"] > 0 for row in found["rows"])
    check = found["check"]
    assert check["answers"] == sum(row["queries"] for row in found["rows"]) > 400
    assert (check["failed"], check["stale"], check["wrong"]) == (0, 0, 0) and found["commits"] > 4
    assert check["compared"] >= check["scored"] > 0 and check["missed"] == 0
    assert found["soak"]["memory"] and "<svg" in (tmp_path / "memory.svg").read_text()


@pytest.mark.parametrize("count, growth", [(2, 1), (3, 1), (10, 6.0), (100, 60.0)])
def test_growth_is_from_the_second_fifth_to_the_last(count, growth):
    found = summary([{"RssAnon": 100 + i} for i in range(count)])
    assert found["growth_mb"] == growth


@pytest.fixture
def judge(tmp_path):
    """Checks one answer to "whale" after a change; the right answer, changed by some members."""
    some = documents(40)
    cp.index(some, tmp_path / "one", model=None).close()
    first = first_commit(tmp_path / "one", some)
    with cp.index(some[1:], tmp_path / "two", model=None) as notes:
        hits = [(hit.id, hit.score, checksum({"text": hit.text})) for hit in notes.search("whale", 5)]
    texts = {d["id"]: checksum(d) for d in some[1:]}
    commits = [first, Commit("after", 10.0, 11.0, texts, tmp_path / "two")]
    right = {"asked": "whale", "commit": "after", "sent": 12.0, "done": 13.0, "status": 200, "hits": hits}

    def judged(**changed):
        found = checked([right | changed], commits, 5, 1)
        return {key for key in ("failed", "stale", "wrong") if found[key]}

    return judged, hits


def test_right_answers_are_right(judge):
    judged, _ = judge
    assert judged() == set()
    assert judged(sent=9.0) == set()
    assert judged(commit="of a merge", sent=10.5) == set()


def test_wrong_answers_are_found(judge):
    judged, hits = judge
    (best, score, text), *others = hits
    assert judged(hits=others) == {"wrong"}
    assert judged(hits=[hits[1], hits[0], *hits[2:]]) == {"wrong"} or hits[0][1] == hits[1][1]
    assert judged(hits=[(best, score + 0.01, text), *others]) == {"wrong"}
    assert judged(hits=[(best, score, text + 1), *others]) == {"wrong"}
    assert judged(hits=[("d0", score, text), *others]) == {"wrong"}
    assert judged(hits=[hits[1], *others]) == {"wrong"}
    assert judged(fault="too many requests wait already", status=503) == {"failed"}


def test_answers_of_another_time_are_found(judge):
    judged, _ = judge
    assert judged(sent=1.0, done=2.0) == {"stale"}
    assert judged(commit="nobody's") == {"stale"}


def test_scores_of_every_document_find_what_the_library_lacks():
    scores = {"a": 3.0, "b": 2.0, "c": 1.0}
    assert right([("a", 3.0), ("b", 2.0)], scores) and not misses([("a", 3.0), ("b", 2.0)], scores)
    assert right([("a", 3.0), ("c", 1.0)], scores) and misses([("a", 3.0), ("c", 1.0)], scores)
    assert not right([("b", 2.0), ("a", 3.0)], scores) and not right([("a", 3.1), ("b", 2.0)], scores)


def test_the_change_of_a_turn_never_meets_its_own_documents():
    assert HELD % ADDED == 0
