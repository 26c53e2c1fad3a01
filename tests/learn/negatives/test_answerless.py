"""Negatives without an answer: what passes, in which order, and what is refused."""

import json

import numpy as np
import pytest
from tests.learn.training import training_set

from counterpoint.config import restore
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn import BM25Negatives, FromData, Mining, ModelNegatives, WithoutAnswers
from counterpoint.recipe import change, check, load_recipe

DOCUMENTS = {
    "a": "It was painted in 1503.",
    "b": "Leonardo da Vinci, by others",
    "c": "da  VINCI, Leonardo",
    "d": "by leonardo DA vinci.",
    "e": "a painter of Vinci",
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "queries.jsonl"
    rows = [{"_id": "q", "answers": ["Leonardo da Vinci", "Leonardo"]}, {"_id": "unasked", "answers": ["x"]}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.fixture
def mining(tmp_path):
    queries = {"q": "painter Leonardo", "r": "painted Vinci"}
    data = training_set([("q", ("a",), tuple("bcde")), ("r", ("a",), tuple("bcde"))], DOCUMENTS, queries)
    return Mining(data, None, tmp_path / "mined", seed=0)


def drawn(negatives, mining, at=0):
    return list(negatives.prepare(mining)(at, np.random.default_rng(0)))


def test_texts_with_an_answer_are_dropped_in_the_sources_order(file, mining):
    source = FromData(4, choose="first")
    assert drawn(source, mining) == ["b", "c", "d", "e"]
    assert drawn(WithoutAnswers(source, file), mining) == ["e"]  # c has "Leonardo", the second answer


def test_all_tokens_of_an_answer_must_stand_in_a_row(tmp_path, mining):
    path = tmp_path / "answers.tsv"
    path.write_text("q\tLeonardo da Vinci\n")
    assert drawn(WithoutAnswers(FromData(4, choose="first"), str(path)), mining) == ["c", "e"]
    assert drawn(WithoutAnswers(FromData(4, choose="first"), str(path), count=1), mining) == ["c"]


def test_a_query_without_answers_goes_by_judgements(file, mining):
    assert drawn(WithoutAnswers(FromData(4, choose="first"), file), mining, at=1) == ["b", "c", "d", "e"]


def test_bm25s_negatives(file, mining):
    found = drawn(WithoutAnswers(BM25Negatives(count=4), file), mining, at=0)
    assert found == ["e"]


def test_it_is_plain_data_and_as_often_as_its_source(file):
    made = WithoutAnswers(ModelNegatives(count=8, every=500), file, count=2)
    assert restore(made.to_dict()) == made and made.every == 500


def test_what_is_wrong_is_refused(file, tmp_path, mining):
    with pytest.raises(ConfigError, match="count must be at least 1"):
        WithoutAnswers(FromData(), file, count=0)
    other = tmp_path / "other.tsv"
    other.write_text("another\tLeonardo\n")
    with pytest.raises(DataError, match="none of them is in the training data"):
        WithoutAnswers(FromData(), str(other)).prepare(mining)
    everything = tmp_path / "all.tsv"
    everything.write_text("q\tLeonardo\tVinci\nr\tLeonardo\tVinci\n")
    with pytest.raises(DataError, match="WithoutAnswers finds no negative for 2 of 2"):
        WithoutAnswers(FromData(4), str(everything)).prepare(mining)
    negatives = (
        "stages.0.negatives=[" + str(WithoutAnswers(BM25Negatives(8), "gone.jsonl", 1).to_dict()) + "]"
    )
    (fault,) = check(change(load_recipe("roc"), [negatives]))
    assert fault.endswith("negatives.0.file: no such file: 'gone.jsonl'")
