"""ColBERTer's rows over several seeds."""

import json
from dataclasses import replace

import pytest
from benchmarks.papers.colberter_rows import THRESHOLDS, rows
from benchmarks.papers.colberter_seeds import QUESTIONS, show_seeds


def saved(path, words, tokens, collection="med"):
    """An evaluation of one collection of ten documents, with two rows."""
    found = {
        row: {
            "vectors": 20,
            "dim": 32,
            "exact": False,
            "workflows": {"dense-words": {"nDCG@10": value, "R@100": 0.5}},
        }
        for row, value in (("words 32", words), ("tokens 32", tokens))
    }
    path.write_text(json.dumps({collection: {"rows": found, "documents": 10}}))
    return path


def test_differences_are_of_means_with_intervals_over_seeds(tmp_path, capsys):
    show_seeds([saved(tmp_path / "1.json", 0.5, 0.6), saved(tmp_path / "2.json", 0.5, 0.8)])
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("| one vector per word"))
    # By hand: gaps of −.1 and −.3, standard error .1, Student's t with one degree of freedom 12.7062.
    assert line.endswith("| -0.200 [-1.471, 1.071] | 0.000 [0.000, 0.000] |")
    assert "what a gate costs" not in printed
    assert "| tokens 32 | 2 |" in printed and "0.700 (0.600 to 0.800)" in printed


def test_seeds_of_different_collections_are_refused(tmp_path):
    with pytest.raises(SystemExit, match="different collections"):
        show_seeds([saved(tmp_path / "1.json", 0.5, 0.6), saved(tmp_path / "2.json", 0.5, 0.6, "cisi")])


def test_questions_are_of_rows_and_a_seed_changes_nothing_else():
    one, other = rows(str), rows(str, 2)
    assert {row for pair in QUESTIONS.values() for row, _ in pair} <= {*one, *THRESHOLDS}
    for name, recipe in other.items():
        assert recipe.seed == 2 and one[name].seed == 1
        assert replace(recipe, seed=1).to_toml() == one[name].to_toml()
