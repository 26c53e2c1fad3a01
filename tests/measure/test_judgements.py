"""Runs and judgements as a program has them: objects, tables and files."""

import numpy as np
import pytest

import counterpoint as cp
from counterpoint.data import open_collection, write_qrels
from counterpoint.errors import ConfigError, DataError
from counterpoint.search import Run

RUN = Run({"q1": {"a": 2.0, "b": 1.0}, "q2": {"c": 0.5}})
QRELS = {"q1": {"b": 1}, "q2": {"c": 2}, "q3": {}}
WANTED = {"nDCG@10": pytest.approx(0.8155, abs=1e-4), "R@100": 1.0}


@pytest.fixture
def collection(tmp_path):
    folder = tmp_path / "collection"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "a", "text": "x"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q1", "text": "x"}\n{"_id": "q2", "text": "y"}\n')
    for split in ("train", "test"):
        write_qrels({"q1": {"b": 1}, "q2": {"c": 2}}, folder / "qrels" / f"{split}.tsv", layout="beir")
    return folder


def test_runs_and_judgements_may_be_objects_tables_or_files(tmp_path, collection):
    RUN.write(tmp_path / "run.trec")
    write_qrels({"q1": {"b": 1}, "q2": {"c": 2}}, tmp_path / "qrels.txt")
    table = {query: RUN.scores(query) for query in RUN}
    for run in (RUN, table, tmp_path / "run.trec", str(tmp_path / "run.trec")):
        for qrels in (
            QRELS,
            tmp_path / "qrels.txt",
            str(tmp_path / "qrels.txt"),
            collection,
            str(collection),
            open_collection(collection),
        ):
            assert cp.evaluate(run, qrels, "nDCG@10 R@100").measures == WANTED
    assert cp.evaluate(RUN, QRELS, ["nDCG@10", "R@100"]).measures == WANTED


def test_grades_of_a_frame_are_numbers_of_numpy():
    qrels = {"q1": {"b": np.int64(1)}, "q2": {"c": np.int32(2)}}
    assert cp.evaluate(RUN, qrels, "nDCG@10 R@100").measures == WANTED
    with pytest.raises(DataError, match="query 'q1': a grade must be a whole number"):
        cp.evaluate(RUN, {"q1": {"b": 0.5}}, "nDCG@10")


def test_splits_that_are_not_clear_are_named(collection):
    (collection / "qrels" / "test.tsv").rename(collection / "qrels" / "dev.tsv")
    with pytest.raises(
        ConfigError, match=r"several sets of judgements: dev, train; name a file, such as .*dev.tsv"
    ):
        cp.evaluate(RUN, collection, "nDCG@10")
    with pytest.raises(ConfigError, match="choose the judgements with split=; there are dev, train"):
        cp.evaluate(RUN, open_collection(collection), "nDCG@10")
    assert cp.evaluate(RUN, collection / "qrels" / "dev.tsv", "R@100").measures == {"R@100": 1.0}


@pytest.mark.parametrize(
    ("run", "qrels", "error", "says"),
    [
        (["a"], QRELS, ConfigError, "a run: expected a Run or {query: {document: score}} .*, found list"),
        (
            RUN,
            [("q1", "b", 1)],
            ConfigError,
            "judgements: expected {query: {document: grade}}, an open collection or .*, found list",
        ),
        (RUN, {"q1": ["b"]}, ConfigError, "judgements: expected"),
        (RUN, "nowhere.txt", DataError, "nowhere.txt"),
        ("nowhere.trec", QRELS, DataError, "nowhere.trec"),
        (RUN, {"q1": {}}, DataError, "no judgement"),
    ],
)
def test_what_is_neither_is_refused(run, qrels, error, says):
    with pytest.raises(error, match=says):
        cp.evaluate(run, qrels, "nDCG@10")
