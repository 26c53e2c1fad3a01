"""The benchmark of BM25 runs, and finds what its formats should take."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "speed" / "lexical.py"


def test_it_measures_what_is_installed(tmp_path):
    words = "whale sea oak ship old wood animal ocean salt timber".split()
    texts = {f"d{i}": " ".join(words[i % 7 : i % 7 + 3] * (1 + i % 2)) for i in range(40)}
    for kind, some in (("corpus", texts), ("queries", {"q": "old whale", "p": "salt"})):
        lines = [json.dumps({"_id": key, "text": text}) for key, text in some.items()]
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
    command = [sys.executable, SCRIPT, tmp_path, "--documents", "20", "0", "--json", tmp_path / "found.json"]
    command += ["--systems", "ours", "bm25s numpy"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    rows = json.loads((tmp_path / "found.json").read_text())
    assert [(row["documents"], row["system"]) for row in rows] == [
        (n, name) for n in (20, 40) for name in ("ours", "bm25s numpy")
    ]
    assert all(row["k1000_again_p95_ms"] >= row["k1000_again_p50_ms"] > 0 for row in rows)
