"""The tables of the benchmark of Isotropic DR."""

import json

import numpy as np
import pytest
import torch
from benchmarks.papers.isotropy import one_model, saved, with_tests
from benchmarks.papers.isotropy_figures import bars, draw, pairs
from benchmarks.papers.isotropy_tables import summary
from benchmarks.papers.isotropy_vectors import Encoded, Texts


def measured(value):
    """What is measured of one target at one seed."""
    queries = {name: {"1": value, "2": value / 2, "3": value / 4} for name in ("P@20", "nDCG@10")}
    shapes = {"I(W)": value, "I(W)±": value, "avgcos": value}
    return {"P@20": value, "nDCG@10": value, **shapes, "queries": queries}


def a_file(path, seeds, ndcg):
    """What `--json` writes of one target, without a map and with one, at so many seeds."""
    plain = {"source": "-", "target": "b", "mean": "-", "level": "-", "distribution": "-", "model": "ColBERT"}
    mapped = {"source": "a", "mean": "source", "level": "token", "distribution": "out", "method": "NICE"}
    rows = [
        {**plain, "method": "none", "seeds": [measured(0.5)]},
        {**plain, **mapped, "seeds": [measured(value) for value in ndcg]},
    ]
    path.write_text(json.dumps({"options": {"seeds": seeds}, "rows": rows}))
    return path


def test_seeds_of_several_files_make_one_row(tmp_path):
    first = a_file(tmp_path / "1", [0, 1], [0.4, 0.5])
    plain, mapped = saved([first, a_file(tmp_path / "2", [2], [0.9])])
    assert plain["nDCG@10"] == 0.5 and len(plain["seeds"]) == 1
    assert mapped["nDCG@10"] == pytest.approx(0.6) and len(mapped["seeds"]) == 3


def test_a_seed_counts_once(tmp_path):
    first = a_file(tmp_path / "1", [0, 1], [0.4, 0.5])
    with pytest.raises(SystemExit, match="2 has seed 1 again of a, b, source, out, ColBERT, token, NICE"):
        saved([first, a_file(tmp_path / "2", [1, 2], [0.5, 0.9])])


def row(source, target, method, value):
    """A row of a table where each source has a model."""
    about = {"mean": "-", "level": "-"} if method == "none" else {"mean": "source", "level": "token"}
    named = {"source": source, "target": target, "model": "ColBERT", "method": method}
    return {**named, **about, "seeds": [measured(value)]}


def test_where_each_source_has_a_model_its_rows_are_compared_with_its_own_baseline(capsys):
    """Table 3: Ft of the same source; in the same row, as in figure 3, Ft of the target's own model."""
    rows = with_tests(
        [row("a", "a", "none", 0.5), row("a", "b", "none", 0.2), row("a", "b", "whitening", 0.6)]
        + [row("b", "b", "none", 0.4), row("b", "b", "whitening", 0.3)]
    )
    _, far, mapped, own, worse = rows
    assert [r["distribution"] for r in rows] == ["in", "out", "out", "in", "in"]
    assert far["own P@20"] == mapped["own P@20"] == own["P@20"] == 0.4 and "own P@20" not in own
    assert mapped["p(queries) P@20"] < 0.1 < 0.9 < worse["p(queries) P@20"]
    summary(rows)
    out, near = capsys.readouterr().out.splitlines()[2:]
    assert "| out | source | ColBERT | token | whitening | 1 | 0.200 | 0.600 |" in out
    assert "| in | source | ColBERT | token | whitening | 1 | 0.400 | 0.300 |" in near


def test_isotropy_after_a_map_has_an_interval_over_seeds(capsys):
    """Of the means over targets, .2, .3 and .7: .4 ± 4.303·.2646/√3, by hand."""
    rows = [row("-", target, "none", 0.1) for target in "bc"]
    for target, values in {"b": (0.1, 0.3, 0.8), "c": (0.3, 0.3, 0.6)}.items():
        mapped = row("a", target, "Glow", 0)
        rows.append({**mapped, "seeds": [measured(value) for value in values]})
    summary(with_tests(rows))
    assert "| Glow | 2 | 0.100 | 0.400 [-0.257, 1.057] |" in capsys.readouterr().out


def test_figures_have_the_methods_of_each_pair_and_the_targets_own_model_as_a_line(tmp_path):
    rows = with_tests(
        [row("a", "a", "none", 0.5), row("a", "b", "none", 0.2), row("a", "b", "whitening", 0.6)]
        + [row("b", "b", "none", 0.4), row("b", "b", "whitening", 0.3), row("b", "b", "Glow", 0.35)]
    )
    found = pairs(rows, "token")
    assert [list(group) for group in found.values()] == [["none", "whitening"], ["none", "whitening", "Glow"]]
    axes = bars({"a → b": found["a", "b"]}, "P@20", line="own P@20").axes
    assert [bar.get_height() for bar in axes.patches] == [0.2, 0.6]
    assert list(axes.lines[0].get_ydata()) == [0.4, 0.4]
    draw(rows, tmp_path)
    kinds = ["figure1a", "figure1b", "figure1c", "figure3-P@20", "figure3-nDCG@10"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{kind}-ColBERT-token.svg" for kind in kinds]


def test_a_map_that_changes_no_ranking_is_neither_better_nor_worse(capsys):
    summary(with_tests([row("a", "a", method, 0.5) for method in ("none", "whitening")]))
    assert capsys.readouterr().out.splitlines()[2].endswith("| +0.0000 | 0 | 0 | +0.0000 | 0 | 0 |")


def test_isotropy_is_of_one_sign_as_in_print_and_of_both():
    """A cone of mean cosine 1/2: near exp(-√½) with one sign, exp(-2√½) with both."""
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(np.float32(rng.normal(size=(400, 64)) + 1))
    rows = torch.nn.functional.normalize(rows, dim=1)
    texts = Texts(np.zeros((1, 64), np.float16), np.array([0, 1]))
    target = Encoded("t", texts, texts, {"q": [0]}, ["d"], texts, None, {"q": {"d": 1}})
    found = one_model(target, (rows[:1], np.arange(2)), (rows, np.arange(401)))
    assert found["avgcos"] == pytest.approx(0.5, abs=0.02)
    assert found["I(W)"] == pytest.approx(np.exp(-(0.5**0.5)), abs=0.03)
    assert found["I(W)±"] == pytest.approx(np.exp(-2 * 0.5**0.5), abs=0.03)
