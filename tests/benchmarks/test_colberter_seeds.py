"""ColBERTer's rows over several seeds."""

import json
from dataclasses import replace

import pytest
from benchmarks.papers.colberter_rows import THRESHOLDS, rows
from benchmarks.papers.colberter_seeds import QUESTIONS, show_seeds

BM25 = {"1": 0.1, "2": 0.3, "3": 0.5, "4": 0.5}


def saved(path, words, tokens, *collections, row=None):
    """An evaluation of collections of ten documents, with two rows; `row` has these values of queries."""
    found = {
        name: {
            "vectors": 20,
            "dim": 32,
            "exact": False,
            "workflows": {"dense-words": {"nDCG@10": value, "R@100": 0.5}},
            "refined": {"nDCG@10": value + 0.01, "R@100": 0.5},
        }
        for name, value in (("words 32", words), ("tokens 32", tokens))
    }
    values = {"BM25": BM25} if row is None else {"BM25": BM25, "words 32": row}
    effects = {"measure": "nDCG@10", "values": values}
    one = {"rows": found, "documents": 10, "effects": effects}
    path.write_text(json.dumps(dict.fromkeys(collections or ("med",), one)))
    return path


def test_differences_are_of_means_with_intervals_over_seeds(tmp_path, capsys):
    show_seeds([saved(tmp_path / "1.json", 0.5, 0.6), saved(tmp_path / "2.json", 0.5, 0.8)], ())
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("| one vector per word"))
    # By hand: gaps of −.1 and −.3, standard error .1, Student's t with one degree of freedom 12.7062.
    assert line.endswith("| -0.200 [-1.471, 1.071] | 0.000 [0.000, 0.000] |")
    assert "what a gate costs" not in printed
    assert "| words 32 | 0.010 [0.010, 0.010] |" in printed  # what other candidates change
    assert "| tokens 32 | 2 | 2.0 (2.0 to 2.0) [2.0, 2.0] | " in printed  # 20 vectors of ten documents
    assert "0.700 (0.600 to 0.800)" in printed


def test_effects_are_summed_up_for_each_seed(tmp_path, capsys):
    pair = ("words 32", "BM25")
    first = saved(tmp_path / "1.json", 0.5, 0.6, "med", "cisi", row={"1": 0.2, "2": 0.4, "3": 0.6, "4": 0.6})
    second = saved(tmp_path / "2.json", 0.5, 0.6, "med", "cisi", row=BM25)
    show_seeds([first, second], [pair])
    line = capsys.readouterr().out.splitlines()[-1]
    # By hand: both standard deviations are .1915, so d = .1/.1915 with variance 2/4 + d²/16 = .5170. Hedges'
    # factor J = 1 − 3/23 makes it g = .4541 with variance J² · .5170 = .3910, or half for two collections.
    assert line.startswith("| words 32 − BM25 | +0.454 [-0.412, +1.321] | +0.000 [-0.852, +0.852] |")


def test_seeds_of_different_collections_are_refused(tmp_path):
    with pytest.raises(SystemExit, match="different collections"):
        show_seeds([saved(tmp_path / "1.json", 0.5, 0.6), saved(tmp_path / "2.json", 0.5, 0.6, "cisi")], ())


def test_questions_are_of_rows_and_a_seed_changes_nothing_else():
    one, other = rows(str), rows(str, 2)
    assert {row for pair in QUESTIONS.values() for row, _ in pair} <= {*one, *THRESHOLDS}
    for name, recipe in other.items():
        assert recipe.seed == 2 and one[name].seed == 1
        assert replace(recipe, seed=1).to_toml() == one[name].to_toml()
