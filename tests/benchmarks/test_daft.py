"""The rows of the benchmark of DAFT, and the columns that are not measured but computed."""

import argparse
import json
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.papers.daft import PAIRS, load, save, show
from benchmarks.papers.daft_measures import cells, described
from benchmarks.papers.daft_rows import collapse_rows, layer_rows
from benchmarks.papers.daft_times import faster

from counterpoint.recipe import check

ROWS = {"collapse": collapse_rows, "layers": layer_rows}


def test_savings_are_those_of_the_papers_table_2(golden):
    case = golden("latency_table")
    taken = [*case["inputs"]["ms"], case["inputs"]["base"]]
    *found, slowest = faster({str(ms): np.array([ms]) for ms in taken}).values()
    assert [one["% less"] for one in found] == pytest.approx(case["expected"]["percent"], abs=case["tol"])
    assert found[0]["times faster"] == pytest.approx(case["expected"]["speedup_L2"], abs=case["tol"])
    assert slowest == {"ms a query": taken[-1], "% less": 0, "times faster": 1, "95 %": "[1.00, 1.00]"}


def test_the_interval_of_a_ratio_of_times_is_over_queries():
    """Half of the queries are as slow with either; with so many, the ratio is nearly normal."""
    slow, fast = np.full(400, 3.0), np.where(np.arange(400) % 2, 3.0, 1.0)
    found = faster({"slow": slow, "fast": fast})["fast"]
    assert found["times faster"] == 1.5 and found["ms a query"] == 2
    assert found["95 %"] == "[1.43, 1.58]"  # 1.5 / (1 ± 1.96 · .5 / √400)


@pytest.mark.parametrize("what", ROWS)
def test_rows_differ_by_seed_alone_and_pairs_name_rows(what):
    rows = ROWS[what]((1, 2))
    names = list(dict.fromkeys(name for name, _ in rows))
    assert list(rows) == [(name, seed) for seed in (1, 2) for name in names]  # a whole seed first
    for (_, seed), recipe in rows.items():
        assert check(recipe) == [] and recipe.seed == seed
    for name in names:
        one, other = (rows[name, seed] for seed in (1, 2))
        assert replace(one, name=other.name, seed=2).to_toml() == other.to_toml()
    assert {row for pair in PAIRS[what] for row in pair} <= set(names)


def layers(seed, lost):
    """A row of `layers` whose queries lose a little more from query to query."""
    queries = {f"q{n}": 0.8 - lost - n / 100 for n in range(4)}
    held_out = {"held out: R@100": 0.9 - lost}
    return {
        "loss": 4.0 + seed,
        "KL first": 8.0 + seed,
        **held_out,
        "queries": {"nDCG@10": queries, "R@100": queries},
    }


def test_layers_are_compared_with_the_whole_over_seeds(tmp_path, capsys):
    lost = {"6 layers": (0.0, 0.0, 0.0), "2 layers, first and last": (0.2, 0.3, 0.4)}
    found = {(row, seed): layers(seed, each[seed - 1]) for row, each in lost.items() for seed in (1, 2, 3)}
    table = cells(found)
    assert table["6 layers"]["loss"] == "6.000 (5.000 to 7.000) [3.516, 8.484]"  # by hand: 1/√3 · 4.3027
    assert table["2 layers, first and last"]["nDCG@10"] == "0.485 (0.385 to 0.585) [0.237, 0.733]"
    assert table["6 layers"]["KL first"] == "10.000 (9.000 to 11.000) [7.516, 12.484]"
    parts = [tmp_path / "one.json", tmp_path / "other.json"]
    for path, seeds in zip(parts, ((2, 3), (1,)), strict=True):  # trained apart
        part = {key: row for key, row in found.items() if key[1] in seeds}
        save(part, argparse.Namespace(what="layers", json=path))
    (read,) = load(parts).values()
    assert read == found
    show("layers", read)
    printed = capsys.readouterr().out
    # By hand: mean −.3, standard error .1/√3, Student's t with two degrees of freedom 4.3027.
    assert "| 2 layers, first and last − 6 layers | -0.300 | -0.548 | -0.052 | 3 seeds |" in printed
    of_seeds = "-0.200, -0.300, -0.400 | -0.300 | -0.548 | -0.052 |"
    assert f"| 2 layers, first and last − 6 layers | {of_seeds}" in printed


def test_a_log_is_described_by_its_last_stage(tmp_path):
    watched = {f"watch.v.{side}.{of}": 0.5 for side in ("document", "query") for of in ("cosine", "rank")}
    lines = [
        {"stage": "align", "step": 50, "alignment.kl": 9.2, "nDCG@10": 0.1},
        {"stage": "align", "step": 100, "alignment.kl": 3.8, "stopped": "aligned: below"},
        *({"stage": "fine-tune", "step": step, "loss": float(step)} for step in range(1, 8)),
        {"stage": "fine-tune", "step": 7, "nDCG@10": 0.3, "R@100": 0.6, **watched},
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = described(tmp_path)
    assert found["loss"] == 5.0  # the mean of 3 to 7
    assert (found["held out: nDCG@10"], found["held out: R@100"]) == (0.3, 0.6)
    assert (found["KL first"], found["KL last"]) == (9.2, 3.8) and found["aligned"] == "100 steps, aligned"
    assert found["cos d"] == found["rank q"] == 0.5
