"""The benchmarks of sizes and of shards run, and print figures in the shape of the file that has them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from counterpoint.scale import Quantiles

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.minilm, pytest.mark.slow]


@pytest.fixture
def collection(tmp_path):
    words = [f"{stem}{end}" for stem in "whal oak ship seal salt stor".split() for end in ("e", "s", "ing")]
    with (tmp_path / "corpus.jsonl").open("w") as file:
        for i in range(60):
            text = " ".join(words[(i * 7 + j * (1 + i % 3)) % len(words)] for j in range(24))
            file.write(json.dumps({"_id": f"d{i}", "text": text}) + "\n")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "old whales and ships"}) + "\n")
    return tmp_path


def ran(*command):
    line = [sys.executable, "-m", *map(str, command)]
    done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
def test_shards_are_measured(collection):
    file, plots = collection / "found.json", collection / "plots"
    options = ["--quick", "--no-ray", "--json", file, "--plots", plots]
    out = ran("benchmarks.speed.scale", collection, "-o", collection, *options)
    found = json.loads(file.read_text())
    assert [row["shards"] for row in found["rows"]] == [1, 2]
    assert all(row["process"]["p95_ms"] >= row["process"]["p50_ms"] > 0 for row in found["rows"])
    assert found["rows"][0]["rounds"] == found["rows"][1]["rounds"] > 1
    latencies = found["latencies"]
    assert Quantiles(tuple(latencies["levels"]), tuple(latencies["ms"])).at(1.0) == latencies["ms"][-1]
    assert "| shards |" in out and (plots / "fan-out.svg").stat().st_size > 1000


@pytest.mark.long
def test_sizes_are_figures_of_the_plan(collection):
    out = ran("benchmarks.speed.sizes", collection, "--quick", "--words", 10, 30)
    found = tomllib.loads(out)["bytes"]
    assert list(found) == ["none", "minilm-dense", "minilm"] and "1-bit" in found["minilm"]
    fixed, slope = found["minilm-dense"]["int8"]["vectors: mean"]
    assert fixed == pytest.approx(386, abs=20) and slope == pytest.approx(0, abs=1)
    assert found["minilm"]["4-bit"]["vectors: words"] > found["minilm"]["1-bit"]["vectors: words"]
