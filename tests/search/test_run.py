import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import ConfigError, DataError
from counterpoint.search.run import Run

IDS = st.text("abcé1", min_size=1, max_size=3)
RESULTS = st.dictionaries(
    IDS,
    st.dictionaries(IDS, st.sampled_from([-1.5, 0.0, 0.1, 2.0, 2.0000000001, 1e300]), max_size=6),
    max_size=4,
)


@settings(deadline=None)
@given(RESULTS)
def test_order_is_that_of_trec_eval(results):
    run = Run(results)
    for query, found in results.items():
        with np.errstate(over="ignore"):
            expected = sorted(found, key=lambda name: (np.float32(found[name]), name.encode()), reverse=True)
        assert run[query] == [(name, found[name]) for name in expected]
        assert run.scores(query) == found


@settings(deadline=None)
@given(RESULTS)
def test_dicts_arrays_and_plain_data_give_the_same_run(results):
    run = Run(results, provenance={"tag": "t"})
    arrays = {q: (list(found)[::-1], np.array(list(found.values())[::-1])) for q, found in results.items()}
    assert Run.from_arrays(arrays) == run == Run(**run.to_dict())
    assert run.queries == tuple(results) == tuple(run) and len(run) == len(results)


def test_survives_a_file(tmp_path):
    run = Run({"q1": {"a": 0.1, "b": 1 / 3}, "q2": {"c": -7.0}}, provenance={"tag": "mine"})
    for name in ("run.trec", "run.trec.gz"):
        run.write(tmp_path / name)
        again = Run.read(tmp_path / name)
        assert again == run
        assert again.provenance == {"tag": "mine", "file": str(tmp_path / name)}


def test_equality_looks_at_documents_and_scores():
    run = Run({"q": {"a": 1.0, "b": 0.5}}, provenance={"tag": "x"})
    assert run == Run({"q": {"b": 0.5, "a": 1.0}})
    assert run != Run({"q": {"a": 1.0}}) and run != Run({"q": {"a": 1.0, "b": 0.6}}) and run != Run({})
    assert run != {"q": {"a": 1.0, "b": 0.5}}


def test_cannot_be_changed():
    run = Run({"q": {"a": 1.0}}, provenance={"tag": "x"})
    run["q"].append(("b", 2.0))
    run.scores("q")["b"] = 2.0
    assert run["q"] == [("a", 1.0)]
    with pytest.raises(TypeError):
        run.provenance["tag"] = "y"
    with pytest.raises(TypeError):
        run["q"] = []


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run))])
def test_a_copy_and_what_another_process_gets_are_equal(copied):
    run = Run({"q1": {"a": 0.1, "b": 1 / 3}, "none": {}}, provenance={"tag": "mine"})
    again = copied(run)
    assert again == run and again.queries == run.queries and again.provenance == {"tag": "mine"}


def test_top():
    run = Run({"q": {"a": 1.0, "b": 2.0, "c": 2.0}, "r": {}}, provenance={"tag": "x"})
    assert run.top(2).to_dict() == {
        "results": {"q": {"c": 2.0, "b": 2.0}, "r": {}},
        "provenance": {"tag": "x"},
    }
    assert run.top(10) == run and run.top(0)["q"] == []
    with pytest.raises(ConfigError, match="-1"):
        run.top(-1)


def test_best_passage_scores_the_document():
    run = Run({"q": {"d1#0": 1.0, "d2#0": 3.0, "d1#1": -2.0, "d2#1": 2.5, "d3#0": -1.0}})
    parents = {name: name.split("#")[0] for name in run.scores("q")}
    assert run.max_passage(parents)["q"] == [("d2", 3.0), ("d1", 1.0), ("d3", -1.0)]
    with pytest.raises(DataError, match="'q'.*'d3#0'"):
        run.max_passage({name: name for name in parents if name != "d3#0"})


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "high"])
def test_scores_must_be_finite_numbers(score):
    with pytest.raises(DataError, match="'q7'"):
        Run({"q7": {"a": 1.0, "b": score}})


def test_documents_stand_once():
    with pytest.raises(DataError, match="'q7': document 'a' is ranked twice"):
        Run.from_arrays({"q7": (["a", "b", "a"], np.array([3.0, 2.0, 1.0]))})
    with pytest.raises(DataError, match="1 documents but 2 scores"):
        Run.from_arrays({"q7": (["a"], np.array([3.0, 2.0]))})


def test_unknown_query():
    with pytest.raises(KeyError, match="nope"):
        Run({})["nope"]


def test_imports_no_torch():
    modules = "counterpoint.data.trec, counterpoint.measure"
    code = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
