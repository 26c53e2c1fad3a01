"""`counterpoint overlap`: parts of an index, saved runs, and what is refused."""

import json

import pytest
from tests.cli.commands import fails

from counterpoint.search import Run


@pytest.fixture
def runs(tmp_path):
    Run({"q1": {"fox": 2.0, "whale": 1.0}, "q2": {"fox": 1.0}}).write(tmp_path / "one.trec")
    Run({"q1": {"whale": 2.0}, "q2": {"train": 1.0, "fox": 0.5}}).write(tmp_path / "two.trec")
    return tmp_path / "one.trec", tmp_path / "two.trec"


def test_saved_runs(collection, runs, call, tmp_path):
    """By hand: q1's fox is found by one, q2's train by two."""
    one, two = runs
    code, out, _ = call(
        "overlap", collection, "--run", one, "--run", f"b={two}", "-k", "1,2", "--json",
        "--plot", tmp_path / "venn.svg",
    )  # fmt: skip
    first, second = json.loads(out)["cutoffs"]
    assert code == 0 and json.loads(out)["runs"] == ["one", "b"]
    assert first["found"]["sizes"] == {"one": 2, "b": 2} and first["found"]["union"] == 4
    assert second["found"]["regions"] == [
        {"in": ["one"], "size": 1}, {"in": ["b"], "size": 1}, {"in": ["one", "b"], "size": 2},
    ]  # fmt: skip
    assert first["answered"]["universe"] == 2 and first["answered"]["failure"] == 0
    pair = first["answered"]["pairs"][0]
    assert (pair["first"], pair["second"], pair["roc"], pair["both"]) == ("one", "b", 1, 0)
    assert first["recall"] == {"one": 0.5, "b": 0.5} and first["union_recall"] == 1
    assert (tmp_path / "venn.svg").read_text().startswith("<?xml")
    code, out, _ = call("overlap", collection / "qrels" / "test.tsv", "--run", one, "--run", two, "-k", 2)
    assert code == 0 and "50.00% of the documents were found by several" in out
    assert "RoC of one against two: 1.0000" in out and "0.0% of 2 queries were answered by none" in out


def test_the_parts_of_an_index(collection, tiny_bert_folder, call, tmp_path):
    folder = tmp_path / "index"
    assert call("index", collection, "-o", folder, "--model", tiny_bert_folder)[0] == 0
    code, out, _ = call("overlap", collection, "--index", folder, "-k", 2, "--json")
    found = json.loads(out)
    assert code == 0 and found["runs"] == ["lexical", "mean"]
    (at,) = found["cutoffs"]
    assert at["found"]["sizes"] == {"lexical": 2, "mean": 4}
    assert at["union_recall"] >= max(at["recall"].values()) and at["recall"]["lexical"] == 1
    for part, workflow in (("lexical", "lexical"), ("mean", "dense")):
        measured = call(
            "evaluate", collection, "--index", folder, "-w", workflow, "--measures", "R@2", "--json"
        )
        assert json.loads(measured[1])["measures"]["R@2"] == at["recall"][part]


def test_nothing_to_draw_does_not_cost_the_table(collection, runs, call, tmp_path):
    """Neither run has a relevant document first, so these sets are empty."""
    picture = tmp_path / "venn.svg"
    for name in ("one", "two"):
        Run({"q1": {"whale": 1.0}, "q2": {"fox": 1.0}}).write(tmp_path / f"{name}.trec")
    asked = ["overlap", collection, "--run", runs[0], "--run", runs[1], "-k", 1, "--plot", picture]
    code, out, err = call(*asked, "--plot-of", "relevant")
    assert code == 0 and "100.0% of 2 queries were answered by none" in out and not picture.exists()
    assert f"--plot-of relevant: no run has any, so there is nothing to draw; {picture} was not" in err
    code, _, err = call(*asked)
    assert code == 0 and err == "" and picture.exists()


def test_what_is_refused(collection, lexical, runs, call):
    one, two = runs
    assert fails(call("overlap", collection), "--index, or --run twice")
    assert fails(call("overlap", collection, "--run", one), "at least two runs, found one")
    assert fails(call("overlap", collection, "--run", one, "--run", one), "two runs are called 'one'")
    assert fails(call("overlap", collection, "--run", one, "--parts", "mean"), "name it with --index")
    assert fails(call("overlap", collection, "--index", lexical, "--parts", "lexical,mean"), "no part 'mean'")
    assert fails(call("overlap", collection, "--index", lexical, "--run", f"lexical={one}"), "as is a part")
    assert fails(call("overlap", collection, "--run", one, "--run", two, "-k", "10,x"), "'10,x'")
    assert fails(call("overlap", collection, "--run", one, "--run", two, "-k", "0"), "from 1")
    assert fails(call("overlap", collection, "--run", one, "--run", two, "--plot", "a.gif"), "'a.gif'")
    two_runs = ["overlap", collection, "--run", one, "--run", two]
    assert fails(call(*two_runs, "--relevant-from", "0"), "--relevant-from", "equal to 1")
    assert fails(call(*two_runs, "--model", "foo"), "--model encodes the queries for an index; name it with")
    assert fails(call(*two_runs, "--plot-of", "found"), "--plot-of says what --plot draws; name its file")
    code, out, _ = call("overlap", collection, "--index", lexical, "--run", one, "-k", 1, "--json")
    assert code == 0 and json.loads(out)["runs"] == ["lexical", "one"]
