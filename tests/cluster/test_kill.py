"""Twenty thousand documents in eight shards by a Ray cluster, of which a worker and the driver are killed."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

import counterpoint as cp

DOCUMENTS = 20_000
QUERIES = 200

pytestmark = [
    pytest.mark.long,
    pytest.mark.shared,
    pytest.mark.minilm,
    pytest.mark.filterwarnings("ignore::Warning"),
]


def command(source, output, *more):
    return [
        *(sys.executable, "-m", "counterpoint", "index", str(source), "-o", str(output)),
        *("--model", "minilm", "--text", "definition", *more),
    ]


def below(driver):
    """What a process started, directly or not, by number; Ray's are in groups of their own."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True)
    rows = [line.split(None, 2) for line in listed.stdout.splitlines()]
    found, more = {}, {str(driver)}
    while more:
        children = {pid: args for pid, parent, args in rows if parent in more}
        more = children.keys() - found.keys()
        found |= children
    return {int(pid): args for pid, args in found.items()}


def workers(driver):
    """The processes that encode for a driver: Ray names them after the class of their actor."""
    return [pid for pid, args in below(driver).items() if args.startswith("ray::Worker")]


def kept(folder):
    """How many documents an unfinished build has a record of."""
    for path in folder.glob("segments/*/progress.json"):
        try:
            return json.loads(path.read_text())["documents"]
        except ValueError:
            return 0
    return 0


def waited(running, ready, seconds=900):
    end = time.monotonic() + seconds
    while not ready():
        assert running.poll() is None and time.monotonic() < end
        time.sleep(0.2)


def test_a_killed_cluster_goes_on_and_the_ranking_is_that_of_one_index(shared, tmp_path, say, monkeypatch):
    pytest.importorskip("ray")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "300")
    with gzip.open(shared / "data" / "wordnet" / "synsets.jsonl.gz", "rt") as lines:
        synsets = [json.loads(line) for line, _ in zip(lines, range(DOCUMENTS), strict=False)]
    source = tmp_path / "synsets.jsonl"
    source.write_text("".join(json.dumps(each) + "\n" for each in synsets))
    many = tmp_path / "many"
    ray = ("--shards", "8", "--ray", "local", "--processes", "2")
    running = subprocess.Popen(command(source, many, *ray))
    try:
        waited(running, lambda: kept(many) > 0)
        victim = workers(running.pid)[0]
        os.kill(victim, signal.SIGKILL)
        before = kept(many)
        waited(running, lambda: kept(many) > before)  # it went on without it
    finally:
        for pid in (running.pid, *below(running.pid)):  # the driver, and the cluster that it started
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        running.wait()
    resumed = kept(many)
    assert 0 < before < resumed < DOCUMENTS and not (many / "manifest.json").exists()
    subprocess.run(command(source, many, *ray, "--resume"), check=True)
    subprocess.run(command(source, tmp_path / "one"), check=True)
    queries = {str(i): each["members"][0] for i, each in enumerate(synsets[:: DOCUMENTS // QUERIES])}
    with cp.open(many) as shards, cp.open(tmp_path / "one") as one:
        assert shards.info()["shards"] == 8 and len(shards) == len(one) == DOCUMENTS
        for workflow in ("hybrid", "words", "dense", "lexical"):
            assert shards.run(queries, 100, workflow=workflow) == one.run(queries, 100, workflow=workflow)
    say(f"worker killed at {before:,} documents, driver at {resumed:,} of {DOCUMENTS:,}; rankings are equal")
