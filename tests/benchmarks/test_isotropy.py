"""The tables of the benchmark of Isotropic DR."""

import json

import pytest
from isotropy import saved


def a_file(path, seeds, ndcg):
    """What `--json` writes of one target, without a map and with one, at so many seeds."""

    def measured(value):
        queries = {name: {"1": value, "2": value / 2} for name in ("P@20", "nDCG@10")}
        return {"P@20": value, "nDCG@10": value, "I(W)": value, "avgcos": value, "queries": queries}

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
