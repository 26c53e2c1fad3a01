"""`counterpoint compare` on small runs and on the real ones."""

import csv
import gzip
import json

import pytest
from scipy import stats
from tests.cli.commands import fails

QRELS = "".join(f"q{at} 0 good{at} 2\nq{at} 0 bad{at} 0\nq{at} 0 fair{at} 1\n" for at in range(6))


@pytest.fixture
def files(tmp_path):
    """Two collections, and runs that find the good documents late or early."""

    def run(name, order):
        rows = []
        for at in range(6):
            found = order(at)
            rows += [f"q{at} Q0 {d}{at} {rank} {-rank} t\n" for rank, d in enumerate(found, 1)]
        path = tmp_path / name
        path.write_text("".join(rows))
        return path

    for name in ("one.qrels", "two.qrels"):
        (tmp_path / name).write_text(QRELS)
    return {
        "one": tmp_path / "one.qrels",
        "two": tmp_path / "two.qrels",
        "late": run("late.one.trec", lambda at: ["bad", "x", "fair", "good"][at % 3 :]),
        "early": run(
            "early.one.trec", lambda at: ["good", "fair", "bad"] if at % 3 else ["fair", "x", "good"]
        ),
        "other": run("other.trec", lambda at: ["good", "bad"] if at % 2 else ["fair", "good"]),
        "mixed": run("mixed.trec", lambda at: ["x", "good", "bad"] if at % 2 else ["good", "x", "bad"]),
    }


def test_two_runs_on_one_collection(call, files):
    code, out, err = call("compare", files["one"], files["late"], files["early"])
    assert code == 0, err
    assert "Effectiveness on one\n" in out
    assert "b early" in out and "early − late" in out and "wins/ties/losses" in out


def test_json_has_everything(call, files):
    code, out, _ = call(
        "compare", f"c={files['one']}", files["late"], files["early"], files["mixed"],
        "--measures", "nDCG@10 RR", "--baseline", "late", "--json",
    )  # fmt: skip
    data = json.loads(out)
    assert code == 0
    assert [(c["collection"], c["measure"]) for c in data["comparisons"]] == [("c", "nDCG@10"), ("c", "RR")]
    pair = data["comparisons"][1]["pairs"][0]
    values = data["comparisons"][1]["per_query"]
    expected = stats.ttest_rel(list(values["early"].values()), list(values["late"].values()))
    assert pair["outcome"] == pytest.approx({"statistic": expected.statistic, "p_value": expected.pvalue})
    assert data["syntheses"] == [] and data["settings"]["baseline"] == "late"


def test_several_collections_are_synthesised(call, files, tmp_path):
    code, out, err = call(
        "compare", f"c1={files['one']}", f"a={files['late']}", f"b={files['early']}",
        f"c2={files['two']}", f"a={files['mixed']}", f"b={files['early']}",
        "--measures", "R@2", "--relevant-from", 1, "--relevant-from", 2,
        "--forest", tmp_path / "forest.svg", "--per-query", tmp_path / "q.csv",
    )  # fmt: skip
    assert code == 0, err
    assert "c1 R@2" in out and "c2 R(rel=2)@2" in out and "b − a over collections, R@2" in out
    assert (tmp_path / "forest.svg").read_text().startswith("<?xml")
    rows = list(csv.DictReader((tmp_path / "q.csv").read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 12 and list(rows[0]) == ["collection", "measure", "query", "a", "b", "b − a"]
    assert all(float(r["b − a"]) == pytest.approx(float(r["b"]) - float(r["a"])) for r in rows)


def test_a_system_named_twice_has_two_runs(call, files):
    code, out, err = call(
        "compare", files["one"], f"a={files['late']}", f"a={files['mixed']}", f"b={files['early']}",
        f"b={files['other']}",
    )  # fmt: skip
    assert code == 0, err
    assert "p over seeds" in out


@pytest.mark.parametrize(("form", "sign"), [("markdown", "| --- |"), ("latex", r"\toprule")])
def test_other_forms(call, files, form, sign):
    code, out, _ = call("compare", files["one"], files["late"], files["early"], "--format", form)
    assert code == 0 and sign in out


def test_condensed_takes_unjudged_documents_out(call, files):
    base = ["compare", f"c={files['one']}", files["mixed"], files["early"], "--measures", "RR", "--json"]
    plain, condensed = (json.loads(call(*base, *more)[1]) for more in ([], ["--condensed"]))
    assert plain["comparisons"][0]["means"]["mixed"] == pytest.approx(0.75)
    assert condensed["comparisons"][0]["means"]["mixed"] == 1.0
    assert condensed["comparisons"][0]["measured_as"] == "RR(judged_only=True)"


def test_what_is_wrong_is_said(call, files, tmp_path):
    one, late, early = files["one"], files["late"], files["early"]
    assert fails(call("compare", late, early), "name a collection or a qrels file before its runs")
    assert fails(call("compare", one, late), "at least two systems, found late")
    assert fails(call("compare", one, f"a={late}", f"a={late}", early), "late.one.trec twice")
    assert fails(call("compare", one, late, late), "two runs", "'late'", "NAME=")
    assert fails(call("compare", one, late, early, one, late, early), "two collections are called")
    assert fails(call("compare", one, late, early, "--baseline", "bm25"), "no system is called 'bm25'")
    assert fails(call("compare", one, late, early, "--alpha", "5"), "alpha must be between 0 and 1")
    assert fails(call("compare", one, late, early, "--forest", tmp_path / "f.gif"), ".svg, .png, .pdf")
    assert fails(
        call("compare", one, late, early, "--forest", tmp_path / "f.svg"), "two systems on two collections"
    )
    assert fails(
        call("compare", one, late, early, "--relevant-from", 1, "--relevant-from", 2),
        "--relevant-from is given 2 times for 1 collections",
    )
    assert fails(call("compare", one, late, tmp_path / "absent.trec"), "absent.trec")
    assert fails(call("compare", one, late, early, "--measures", " "), "names no measure")
    other = tmp_path / "other.trec"
    other.write_text("elsewhere Q0 d1 1 1.0 other\n")
    assert fails(
        call("compare", one, late, other), "other.trec: has results for none of the judged queries of"
    )


@pytest.mark.shared
def test_the_real_runs(call, shared):
    """BM25 against TAS-B on TREC DL 2019: the figures of the data's README, and scipy's p-value."""
    runs = shared / "data/runs"
    code, out, err = call(
        "compare", runs / "qrels.dl19-passage.txt", runs / "bm25.dl19.trec.gz", runs / "tas-b.dl19.trec.gz",
        "--json",
    )  # fmt: skip
    assert code == 0, err
    (comparison,) = json.loads(out)["comparisons"]
    assert {name: round(mean, 4) for name, mean in comparison["means"].items()} == {
        "bm25": 0.5058,
        "tas-b": 0.7210,
    }
    values = comparison["per_query"]
    expected = stats.ttest_rel(list(values["tas-b"].values()), list(values["bm25"].values()))
    assert comparison["pairs"][0]["outcome"]["p_value"] == pytest.approx(expected.pvalue, rel=1e-12)


def test_a_run_that_found_nothing_is_no_collection(call, files, tmp_path):
    (tmp_path / "empty.trec.gz").write_bytes(gzip.compress(b""))
    (tmp_path / "blank.trec").write_text("\n\n")
    code, out, err = call(
        "compare", files["one"], files["early"], tmp_path / "empty.trec.gz", tmp_path / "blank.trec"
    )
    assert code == 0 and "empty" in out and "blank" in out
    assert "6 judged queries have no results" in err


def test_outputs_are_looked_at_before_anything_is_read(call, files, tmp_path):
    base = ("compare", tmp_path / "nothing", tmp_path / "nobody")
    for option in ("--per-query", "--forest", "--venn"):
        assert fails(call(*base, option, tmp_path / "no" / "x.svg"), f"{option} ", "does not exist")
    both = ("--complementarity", 2, "--answered", tmp_path / "x.csv", "--per-query", tmp_path / "x.csv")
    assert fails(call(*base, *both), "--per-query and --answered name the same file")
