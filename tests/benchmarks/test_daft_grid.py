"""The grid of the benchmark of DAFT: rows that differ in one thing, and tests over queries and over seeds."""

import json
from itertools import product

import numpy as np
import pytest
from benchmarks.papers.daft import main
from benchmarks.papers.daft_grid import CONSTANT, RATES, Cell, contrasts, grid_rows
from benchmarks.papers.daft_measures import cells, queries_of
from benchmarks.papers.daft_rows import ALIGNED
from benchmarks.papers.seeds import differences

from counterpoint.measure import paired_t_test
from counterpoint.recipe import check

CELLS = [Cell("mean, far", arm, rate) for arm, rate in product(ALIGNED, RATES)]


def test_rows_with_and_without_alignment_have_the_same_rate_at_every_step():
    rows = grid_rows(["mean, far"], seeds=(0, 1), steps=350, align=200)
    assert list(rows) == [(str(cell), seed) for seed, cell in product((0, 1), CELLS)]  # a whole seed first
    for (name, seed), recipe in rows.items():
        cell = Cell(*name.split("; "))
        assert check(recipe) == [] and recipe.seed == seed
        assert not any(stage.stop for stage in recipe.stages)
        rates = [stage.lr for stage in recipe.stages for _ in range(stage.steps)]
        first, then = RATES[cell.rate]
        assert rates == [first] * 200 + [then] * 150
        learnt = [stage.learn for stage in recipe.stages]
        assert learnt[0] == (("query.*",) if cell.arm == "alignment" else ("*",))
        assert learnt[1:] in ([], [("*",)])
    assert len({recipe.name for recipe in rows.values()}) == len(rows)


def row(*values):
    queries = {str(query): value for query, value in enumerate(values)}
    return {"loss": 4.0, "cos d": 0.5, "cos q": 0.5, "queries": {"nDCG@10": queries, "R@100": queries}}


def some(seeds=(0, 1, 2)):
    """Alignment gains .3, .4 and .5 at the high rates, and nothing at the low one."""
    low, unaligned, aligned = (0.1, 0.2, 0.3, 0.4), (0.2, 0.2, 0.3, 0.3), 0.3
    gains = (0.0, 0.02, -0.01, -0.01)
    found = {}
    for seed, cell in product(seeds, CELLS):
        gained = [one + aligned + seed / 10 + gain for one, gain in zip(unaligned, gains, strict=True)]
        high = gained if cell.arm == "alignment" else unaligned
        found[str(cell), seed] = row(*(low if cell.rate == CONSTANT else high))
    return found


def test_a_contrast_changes_the_arm_or_the_rate_alone():
    names = [str(cell) for cell in CELLS]
    found = contrasts(names)
    assert len(found) == 7
    for pair in found:
        treatment, control = (name.split("; ") for name in pair)
        assert sum(one != other for one, other in zip(treatment, control, strict=True)) == 1
    assert len(contrasts(names[1:])) == 4


def differences_of(found, measure):
    return differences(queries_of(found, measure), contrasts(dict.fromkeys(name for name, _ in found)))


def test_cells_have_the_mean_over_seeds_the_range_and_the_interval():
    aligned = cells(some())["mean, far; alignment; 2e-04"]
    assert aligned["seeds"] == "0 1 2"
    # By hand: standard error .1/√3, Student's t with two degrees of freedom 4.3027.
    assert aligned["nDCG@10"] == "0.650 (0.550 to 0.750) [0.402, 0.898]"
    assert aligned["loss"] == "4.000 (4.000 to 4.000) [4.000, 4.000]"


def test_differences_are_of_queries_within_a_seed_and_then_of_seeds():
    name = "mean, far; alignment; 2e-04 − mean, far; no alignment; 2e-04"
    found = differences_of(some(), "nDCG@10")
    last = found[f"{name}; seed 2"]
    assert last["difference"] == pytest.approx(0.5) and last["over"] == "4 queries"
    assert 0.48 < last["low"] < 0.5 < last["high"] < 0.53
    raw = paired_t_test(np.array([0.5, 0.52, 0.49, 0.49])).p_value
    assert 2 * raw < last["p"] < 0.001  # corrected for the tests of all contrasts and seeds
    over = found[name]
    assert over["difference"] == pytest.approx(0.4) and over["over"] == "3 seeds"
    # By hand: standard error .1/√3, Student's t with two degrees of freedom 4.3027.
    assert (over["low"], over["high"]) == pytest.approx((0.4 - 0.24841, 0.4 + 0.24841), abs=1e-4)
    assert over["p"] == pytest.approx(0.0202, abs=1e-4)
    assert found["mean, far; alignment; 2e-05 − mean, far; no alignment; 2e-05"]["difference"] == 0


def test_of_one_seed_there_is_no_line_over_seeds():
    assert all("seed 0" in name for name in differences_of(some(seeds=(0,)), "R@100"))


@pytest.mark.long
@pytest.mark.minilm
def test_a_row_is_trained_and_measured_once(tmp_path, monkeypatch, capsys):
    texts = [f"Paragraph {n} is about the town number {n * 7} and its river." for n in range(70)]
    data = tmp_path / "data"
    (data / "qrels").mkdir(parents=True)
    documents = (json.dumps({"_id": f"d{n}", "title": "", "text": text}) for n, text in enumerate(texts))
    (data / "corpus.jsonl").write_text("\n".join(documents))
    asked = (json.dumps({"_id": f"q{n}", "text": f"Which river has town {n * 7}?"}) for n in range(40))
    (data / "queries.jsonl").write_text("\n".join(asked))
    for split, numbers in (("train", range(32)), ("test", range(32, 40))):
        judged = "".join(f"q{n}\td{n}\t1\n" for n in numbers)
        (data / "qrels" / f"{split}.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
    found = tmp_path / "found.json"
    command = [
        "daft",
        "grid",
        data,
        "-o",
        tmp_path / "runs",
        "--json",
        found,
        "--steps",
        "50",
        "--align",
        "25",
    ]
    command += ["--seeds", "0", "--only", "far; alignment; 2e-04;"]
    monkeypatch.setattr("sys.argv", list(map(str, command)))
    main()
    assert "mean, far; alignment; 2e-04; 50 steps; seed 0: done" in capsys.readouterr().err
    first = json.loads(found.read_text())
    (values,) = first["rows"]
    assert values["row"] == "mean, far; alignment; 2e-04" and values["seed"] == 0
    assert set(values["queries"]["nDCG@10"]) == {f"q{n}" for n in range(32, 40)}
    assert values["queries"]["unseen: nDCG@10"].keys() == values["queries"]["nDCG@10"].keys()
    fewer, whole = (values["queries"][name] for name in ("unseen: nDCG@10", "nDCG@10"))
    assert all(
        fewer[query] >= whole[query] for query in whole
    )  # no document more to rank before the right one
    assert sum(fewer.values()) > sum(whole.values())  # and some fewer
    main()
    again = capsys.readouterr()
    assert "done" not in again.err and "| mean, far; alignment; 2e-04 | 0 |" in again.out
    assert json.loads(found.read_text()) == first
    monkeypatch.setattr("sys.argv", ["daft", "show", "--json", str(found)])
    main()
    assert capsys.readouterr().out == again.out
