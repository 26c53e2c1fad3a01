"""HIL's rows over several seeds."""

import json

import pytest
from benchmarks.papers.hil_seeds import read, show_layers, show_seeds


def evaluated(hil, colbert, h=0.25):
    """An evaluation of one collection with two queries."""

    def system(*values):
        mean = sum(values) / len(values)
        of_queries = dict(zip(("a", "b"), values, strict=True))
        return {"full": {"nDCG@10": mean}, "rerank": {"nDCG@10": mean}, "easy": mean, "queries": of_queries}

    systems = {"ColBERT": system(*colbert), "HIL": system(*hil)}
    return {"systems": systems, "inter_iso": {"HIL|h": h, "HIL|l": 0.125, "ColBERT|tokens": 0.1}}


def saved(folder, **of_seed):
    for seed, measured in of_seed.items():
        (folder / f"{seed}.json").write_text(json.dumps({"collections": measured}))
    return [folder / f"{seed}.json" for seed in of_seed]


def test_means_are_over_seeds_and_differences_over_queries_and_seeds(tmp_path, capsys):
    first, second = evaluated((0.6, 0.4), (0.5, 0.3)), evaluated((0.7, 0.5), (0.4, 0.4), h=0.5)
    show_seeds(read(saved(tmp_path, one={"med": first}, two={"med": second})))
    printed = capsys.readouterr().out
    assert "| HIL | 2 | 55.0 (50.0 to 60.0) |" in printed
    # By hand: standard errors of .125, Student's t with one degree of freedom 12.7062.
    assert "| 0.38 (0.25 to 0.50) [-1.21, 1.96] | 0.25 (0.12 to 0.38) [-1.34, 1.84] |" in printed
    colbert = next(line for line in printed.splitlines() if line.startswith("| ColBERT | 2 |"))
    assert colbert.count("40.0 (40.0 to 40.0)") == 3 and "| 0.10 (0.10 to 0.10) [0.10, 0.10] |" in colbert
    assert "- HIL as the paper has it: HIL − ColBERT" in printed
    assert "- L alone" not in printed  # no row of that name
    lines = {line.split(" | ")[0]: line for line in reversed(printed.splitlines())}
    assert "| HIL − ColBERT; seed one | 0.100 |" in lines["| HIL − ColBERT; seed one"]
    assert lines["| HIL − ColBERT"].startswith("| HIL − ColBERT | 0.150 |")
    assert "| 2 seeds |" in lines["| HIL − ColBERT"]
    # By hand: gaps of 10 and 20, standard error 5, Student's t with one degree of freedom 12.7062.
    assert "| HIL − ColBERT | 15.0 [-48.5, 78.5] | 15.0 [-48.5, 78.5] | 15.0 [-48.5, 78.5] |" in printed


def test_seeds_of_different_collections_are_refused(tmp_path):
    one = evaluated((0.6, 0.4), (0.5, 0.3))
    with pytest.raises(SystemExit, match="different collections"):
        show_seeds(read(saved(tmp_path, one={"med": one}, two={"cisi": one})))


def test_bm25_and_citadel_are_compared_where_they_were_measured(tmp_path, capsys):
    one = evaluated((0.6, 0.4), (0.5, 0.3))
    one["BM25"] = {"nDCG@10": 0.4, "queries": {"a": 0.5, "b": 0.3}}
    one["citadel"] = {
        "CITADEL": {"nDCG@10": 0.4, "queries": {"a": 0.4, "b": 0.4}},
        "CITADEL-HIL": {"nDCG@10": 0.3, "queries": {"a": 0.4, "b": 0.2}},
    }
    for system in one["systems"].values():
        system["same"] = system["full"]
    show_seeds(read(saved(tmp_path, one={"med": one})))
    printed = capsys.readouterr().out
    assert "- HIL against BM25: HIL − BM25" in printed
    assert "| HIL − BM25; seed one | 0.100 |" in printed
    assert "| CITADEL-HIL − CITADEL; seed one | -0.100 |" in printed
    assert "| BM25 | 1 |" not in printed  # it was not trained
    assert "| HIL's hundred |" in printed
    assert "over seeds" not in printed.replace("means over", "")  # there is one


def test_layers_are_compared_over_seeds(tmp_path, capsys):
    paths = [tmp_path / "one.json", tmp_path / "two.json"]
    for path, top in zip(paths, (1.0, 2.0), strict=True):
        layers = [{"layer": 0, "log_difference": 0.0}, {"layer": 1, "log_difference": top}]
        path.write_text(json.dumps({"layers": {"layers": layers}}))
    show_layers(paths)
    printed = capsys.readouterr().out
    # By hand: a standard error of .5, Student's t with one degree of freedom 12.7062.
    assert "| 1 | 1.50 (1.00 to 2.00) [-4.85, 7.85] |" in printed
    paths[1].write_text(json.dumps({"layers": {"layers": layers[:1]}}))
    with pytest.raises(SystemExit, match="different numbers of layers"):
        show_layers(paths)
