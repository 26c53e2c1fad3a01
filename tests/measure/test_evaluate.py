import json
import math
from pathlib import Path

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data.trec import read_qrels
from counterpoint.errors import ConfigError, DataError
from counterpoint.measure import evaluate, parse_measure
from counterpoint.search.run import Run

QUERIES = st.sampled_from(["q1", "q2", "q3", "q4"])
DOCUMENTS = st.sampled_from([f"d{i}" for i in range(12)] + ["é"])
SCORES = st.one_of(st.sampled_from([-1.0, 0.0, 1.0, 1.00000001]), st.floats(-1e3, 1e3))
RUNS = st.dictionaries(QUERIES, st.dictionaries(DOCUMENTS, SCORES, max_size=12))
GRADES = st.dictionaries(DOCUMENTS, st.integers(0, 3), max_size=8)
QRELS = st.dictionaries(QUERIES, GRADES).filter(lambda qrels: any(qrels.values()))
NAMES = {  # ours, trec_eval's
    "nDCG@3": "ndcg_cut_3",
    "nDCG": "ndcg",
    "AP": "map",
    "AP@5": "map_cut_5",
    "P@3": "P_3",
    "R@3": "recall_3",
    "RR": "recip_rank",
    "Rprec": "Rprec",
    "Bpref": "bpref",
    "Success@1": "success_1",
    "NumRel": "num_rel",
    "NumRet": "num_ret",
    "NumRelRet": "num_rel_ret",
    "NumQ": "num_q",
    "SetAP": "set_map",
    "SetF": "set_F",
    "SetP": "set_P",
    "SetRelP": "set_relative_P",
    "SetR": "set_recall",
    "IPrec@0.5": "iprec_at_recall_0.50",
    "infAP": "infAP",
}
BINARY = [name for name in NAMES if name not in ("nDCG", "nDCG@3", "NumRet", "NumQ", "NumRel", "NumRelRet")]


def at_level(name, level):
    base, at, k = name.partition("@")
    if base == "SetRelP":
        return f"SetP(relative=True,rel={level})"
    return f"{base}(rel={level}){at}{k}"


def test_every_measure_of_trec_eval_is_compared():
    provider = ir_measures.pytrec_eval
    known = {measure.NAME for measure in provider.SUPPORTED_MEASURES}
    assert {parse_measure(name).NAME for name in NAMES} == known


@settings(deadline=None)
@given(RUNS, QRELS)
def test_agrees_with_pytrec_eval(results, qrels):
    strict = {at_level(name, 2): NAMES[name] for name in BINARY}
    report = evaluate(Run(results), qrels, [*NAMES, *strict, "RR@2"])
    judged = [query for query in qrels if qrels[query]]
    found = {
        query: results[query] for query in judged if results.get(query)
    }  # pytrec-eval crashes on empty ones
    expected = {query: dict.fromkeys(NAMES.values(), 0.0) for query in judged}
    for query in judged:
        expected[query] |= {"num_rel": sum(grade >= 1 for grade in qrels[query].values()), "num_q": 1}
    level2 = {}
    if found:
        expected |= pytrec_eval.RelevanceEvaluator(qrels, set(NAMES.values())).evaluate(found)
        names = set(strict.values())
        level2 = pytrec_eval.RelevanceEvaluator(qrels, names, relevance_level=2).evaluate(found)
    for query, values in expected.items():
        for ours, theirs in NAMES.items():
            assert report.per_query[ours][query] == values[theirs]
        rank = round(1 / values["recip_rank"]) if values["recip_rank"] else math.inf
        assert report.per_query["RR@2"][query] == (1 / rank if rank <= 2 else 0)
        for ours, theirs in strict.items():
            assert report.per_query[ours][query] == level2.get(query, {}).get(theirs, 0)
    for name in ("nDCG@3", "AP", "Bpref"):
        assert list(report.per_query[name]) == judged
        mean = sum(values[NAMES[name]] for values in expected.values()) / len(judged)
        assert report.measures[name] == pytest.approx(mean, abs=1e-12)
    assert report.measures["NumRel"] == sum(values["num_rel"] for values in expected.values())
    assert set(report.missing) == set(judged) - found.keys()
    assert set(report.ignored) == results.keys() - set(judged)


@settings(deadline=None, max_examples=50)
@given(RUNS, QRELS)
def test_agrees_with_pytrec_eval_on_files(tmp_path_factory, results, qrels):
    """Both read the same files, so reading is compared too."""
    folder = tmp_path_factory.mktemp("files")
    lines = [f"{q} Q0 {d} 0 {score!r} x\n" for q, found in results.items() for d, score in found.items()]
    (folder / "run").write_text("".join(lines), encoding="utf-8")
    lines = [f"{q} 0 {d} {grade}\n" for q, grades in qrels.items() for d, grade in grades.items()]
    (folder / "qrels").write_text("".join(lines), encoding="utf-8")
    with open(folder / "run", encoding="utf-8") as run, open(folder / "qrels", encoding="utf-8") as judged:
        theirs = pytrec_eval.parse_run(run), pytrec_eval.parse_qrel(judged)
    report = evaluate(Run.read(folder / "run"), read_qrels(folder / "qrels"), ["nDCG@3", "AP", "RR"])
    trec_names = {"ndcg_cut_3", "map", "recip_rank"}
    values = pytrec_eval.RelevanceEvaluator(theirs[1], trec_names).evaluate(theirs[0]) if theirs[0] else {}
    for query in theirs[1]:
        for ours, name in (("nDCG@3", "ndcg_cut_3"), ("AP", "map"), ("RR", "recip_rank")):
            assert report.per_query[ours][query] == values.get(query, {}).get(name, 0)


def test_a_document_ranked_twice_is_refused_as_pytrec_eval_refuses_it(tmp_path):
    path = tmp_path / "run"
    path.write_text("q Q0 a 1 2.0 x\nq Q0 b 2 1.0 x\nq Q0 a 3 0.5 x\n")
    with open(path) as file, pytest.raises(AssertionError):
        pytrec_eval.parse_run(file)
    with pytest.raises(DataError, match=r"run:3: document 'a' is ranked twice for query 'q'"):
        Run.read(path)


@settings(deadline=None, max_examples=50)
@given(RUNS, QRELS)
def test_what_is_shown_is_what_is_evaluated(results, qrels):
    """Cutting a run at k and evaluating deeper changes nothing: both order documents alike."""
    run = Run(results)
    names = ["RR@2", "nDCG@2", "P@2", "Judged@2"]
    assert evaluate(run, qrels, names) == evaluate(run.top(2), qrels, names)


@settings(deadline=None, max_examples=50)
@given(RUNS, st.dictionaries(QUERIES, st.dictionaries(DOCUMENTS, st.integers(-3, 3), min_size=1), min_size=1))
def test_documents_with_negative_grades_are_not_judged(results, qrels):
    """Given to pytrec-eval as they are, they make it crash or hang."""
    names = [*NAMES, "RR@2", "P(judged_only=True)@2"]
    constant = {name: 1 if name == "NumQ" else 0 for name in names if name != "NumRet"}
    report = evaluate(Run(results), qrels, names)
    plain = {
        query: {d: grade for d, grade in grades.items() if grade >= 0} for query, grades in qrels.items()
    }
    if any(plain.values()):
        again = evaluate(Run(results), plain, names)
        for name in names:
            for query, value in again.per_query[name].items():
                assert report.per_query[name][query] == value
    for query in qrels.keys() - {query for query, grades in plain.items() if grades}:
        assert {name: report.per_query[name][query] for name in constant} == constant


def test_by_hand():
    run = Run({"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 1.0}, "extra": {"a": 1.0}})
    qrels = {"q1": {"b": 2, "c": 1, "z": 0}, "q2": {"b": 1}, "q3": {"a": 1}, "none": {"a": 0}, "empty": {}}
    report = evaluate(run, qrels, ["ndcg@10", "RR@1", "RR@10", "P@2", "Judged@2", "num_rel"])
    ideal = 2 + 1 / math.log2(3)
    found = (2 / math.log2(3) + 1 / math.log2(4)) / ideal
    assert report.per_query["ndcg@10"] == {"q1": pytest.approx(found), "q2": 0, "q3": 0, "none": 0}
    assert list(report.measures) == ["ndcg@10", "RR@1", "RR@10", "P@2", "Judged@2", "num_rel"]
    assert report.measures["RR@1"] == 0 and report.measures["RR@10"] == 0.5 / 4
    assert report.measures["P@2"] == 0.5 / 4 and report.measures["Judged@2"] == 0.5 / 4
    assert report.measures["num_rel"] == 4
    assert report.missing == ("q3", "none") and report.ignored == ("extra",)


def test_measures_asked_for_together_do_not_change_each_other():
    """ir_measures alone computes nDCG by the gains of the other one, and mixes up close levels of recall."""
    run, qrels = Run({"q": {"b": 3.0, "a": 1.0}}), {"q": {"a": 1, "b": 2, "c": 1}}
    plain = (2 + 1 / math.log2(3)) / (2 + 1 / math.log2(3) + 1 / math.log2(4))
    steep = (2 + 5 / math.log2(3)) / (5 + 5 / math.log2(3) + 2 / math.log2(4))
    for names in (["nDCG@10", "nDCG(gains={1:5})@10"], ["nDCG(gains={1:5})@10", "nDCG@10"]):
        report = evaluate(run, qrels, [*names, "NumRel(rel=2)"])
        assert report.measures["nDCG@10"] == pytest.approx(plain)
        assert report.measures["nDCG(gains={1:5})@10"] == pytest.approx(steep)
        assert report.measures["NumRel(rel=2)"] == 1
    with pytest.raises(ConfigError, match=r"at most two digits after the point, found 0\.001"):
        evaluate(run, qrels, ["IPrec@0.001"])


def test_part_of_a_report():
    run = Run({"q1": {"a": 1.0}, "q2": {"b": 1.0}})
    report = evaluate(run, {"q1": {"a": 1}, "q2": {"a": 1, "b": 0}, "q3": {"a": 1}}, ["P@1", "NumRel"])
    part = report.over(["q3", "q1"])
    assert part.measures == {"P@1": 0.5, "NumRel": 2} and part.missing == ("q3",)
    assert list(part.per_query["P@1"]) == ["q1", "q3"]
    assert report.over(["q1", "q2", "q3"]) == report
    with pytest.raises(DataError, match="'x' was not measured"):
        report.over(["q1", "x"])
    with pytest.raises(DataError, match="there are no queries"):
        report.over([])


def test_report_prints_and_becomes_json():
    report = evaluate(
        Run({"q1": {"a": 1.0}, "x": {"a": 1.0}}), {"q1": {"a": 1}, "q2": {"a": 1}}, ["P@1", "ap"]
    )
    assert str(report).splitlines() == [
        "P@1  0.5000",
        "ap   0.5000",
        "1 judged queries have no results and count as empty",
        "1 queries of the run are not judged and were ignored",
    ]
    assert json.loads(json.dumps(report.to_dict())) == {
        "measures": {"P@1": 0.5, "ap": 0.5},
        "per_query": {"P@1": {"q1": 1.0, "q2": 0.0}, "ap": {"q1": 1.0, "q2": 0.0}},
        "missing": ["q2"],
        "ignored": ["x"],
    }


def test_ids_with_spaces_and_letters_reach_every_provider():
    run = Run({"a query": {"doc 1": 2.0, "doc 2": 1.0}})
    report = evaluate(run, {"a query": {"doc 2": 1}}, ["nDCG@10", "Judged@10", "Compat(p=0.5)"])
    assert report.measures["Judged@10"] == 0.5 and 0 < report.measures["Compat(p=0.5)"] < 1


def test_an_empty_run():
    report = evaluate(Run({}), {"q": {"a": 1, "b": 0}}, ["nDCG", "RR@10", "Judged@10", "NumRel", "NumQ"])
    assert list(report.measures.values()) == [0, 0, 0, 1, 1] and report.missing == ("q",)


def test_what_is_wrong_is_named():
    run = Run({"q": {"a": 1.0}})
    with pytest.raises(ConfigError, match="did you mean 'nDCG@10'"):
        evaluate(run, {"q": {"a": 1}}, ["P@1", "nDGC@10"])
    for results in (run, Run({})):
        with pytest.raises(ConfigError, match="pip install ir-measures"):
            evaluate(results, {"q": {"a": 1}}, ["alpha_nDCG@10"])
    with pytest.raises(DataError, match="'q' has a grade above 10000"):
        evaluate(run, {"q": {"a": 3_000_000_000}}, ["nDCG"])
    with pytest.raises(DataError, match="no judgement"):
        evaluate(run, {"q": {}}, ["P@1"])


RUNS_FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "runs"
PRINTED = {("bm25", 19): 0.5058, ("bm25", 20): 0.4796, ("bm25-rm3", 19): 0.5216, ("bm25-rm3", 20): 0.4896}
PRINTED |= {("tas-b", 19): 0.7210, ("tas-b", 20): 0.6854}


@pytest.mark.shared
@pytest.mark.parametrize("system, year", PRINTED)
def test_real_runs_give_the_printed_figures(system, year):
    run = Run.read(RUNS_FOLDER / f"{system}.dl{year}.trec.gz")
    qrels = read_qrels(RUNS_FOLDER / f"qrels.dl{year}-passage.txt")
    assert round(evaluate(run, qrels, ["nDCG@10"]).measures["nDCG@10"], 4) == PRINTED[system, year]


def test_accuracy_is_refused_where_it_is_not_defined():
    """It counts pairs of a relevant and another document; a list of relevant documents has none."""
    with pytest.raises(DataError, match="Accuracy: not defined where"):
        evaluate(Run({"q": {"a": 1.0}}), {"q": {"a": 1}}, ["Accuracy"])
