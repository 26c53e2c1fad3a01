"""Which queries are trained on, and which are held back."""

import json

import pytest
from tests.recipe.small import declared, write_collection

from counterpoint.errors import ConfigError, DataError
from counterpoint.recipe import DataSettings, read_recipe_data


@pytest.fixture
def collection(tmp_path):
    return write_collection(tmp_path / "collection")


def training_data(collection, source=None, documents=None, **settings):
    return read_recipe_data(
        declared(data=DataSettings(**settings)), source or collection, documents=documents
    )


def test_a_development_split_is_used_where_there_is_one(collection):
    found = training_data(collection)
    assert set(found.development.queries) == {"q16", "q17", "q18", "q19"}
    assert found.development.qrels["q16"] == {"d16": 1} and len(found.development.documents) == 40
    assert len(found.training) == 16 and found.origin == "split dev of collection"


def test_examples_about_development_queries_are_left_out(collection):
    with open(collection / "queries.jsonl", "a") as file:  # another id, the same words
        file.write(json.dumps({"_id": "twin", "text": "Where is  cat MAT 16"}) + "\n")
    with open(collection / "qrels" / "train.tsv", "a") as file:
        file.write("q16\td1\t1\ntwin\td2\t1\n")
    found = training_data(collection)
    assert {example.query for example in found.training.examples} == {f"q{i}" for i in range(16)}
    assert found.left_out == 2


@pytest.mark.parametrize("split", ["train", "dev"])
def test_a_split_cannot_be_for_both(collection, split):
    said = rf"data\.train and data\.development are both '{split}'.*--dev-split 100"
    with pytest.raises(ConfigError, match=said):
        training_data(collection, train=split, development=split)
    assert training_data(collection, train=split, development=None, held_out=2).left_out == 0


def test_splits_of_the_same_queries_are_told(collection, tmp_path):
    (collection / "qrels" / "dev.tsv").write_bytes((collection / "qrels" / "train.tsv").read_bytes())
    said = r"all 16 training examples are about development queries \(split dev of collection\)"
    with pytest.raises(DataError, match=said):
        training_data(collection)
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(f'["q{i}", "d{i}", "d{i + 1}"]\n' for i in range(16)))
    with pytest.raises(DataError, match=said):
        training_data(collection, lists, collection)


def test_a_recipe_says_from_which_grade_on(collection):
    with open(collection / "qrels" / "train.tsv", "a") as file:
        file.write("q1\td30\t2\nq1\td31\t0\n")
    found = training_data(collection, relevant_from=2).training
    (example,) = found.examples
    assert (example.query, example.positives, example.negatives) == ("q1", ("d30",), ("d31",))
    assert found.relevant["q1"] == {"d1", "d30"} and found.provenance["relevant_from"] == 2
    triples = collection.parent / "triples.tsv"
    triples.write_text("q1\td1\td2\n")
    with pytest.raises(ConfigError, match="relevant_from= has no meaning for a single file"):
        training_data(collection, triples, collection, relevant_from=2)
    with pytest.raises(ConfigError, match="a grade from 1 up, found 0"):
        DataSettings(relevant_from=0)


def test_queries_are_held_out_by_the_seed_where_there_is_no_split(collection):
    (collection / "qrels" / "dev.tsv").unlink()
    found, again = training_data(collection, held_out=5), training_data(collection, held_out=5)
    held = set(found.development.queries)
    assert len(held) == 5 and len(found.training) == 11
    assert not held & {example.query for example in found.training.examples}
    assert found.development.qrels == {query: {f"d{query[1:]}": 1} for query in found.development.queries}
    assert set(again.development.queries) == held
    other = read_recipe_data(declared(seed=2, data=DataSettings(held_out=5)), collection)
    assert set(other.development.queries) != held


def test_no_development_queries_at_all(collection):
    found = training_data(collection, development=None, held_out=0)
    assert found.development is None and len(found.training) == 16 and found.origin == "none"


def test_what_cannot_be_held_out(collection):
    with pytest.raises(DataError, match="no split 'nope' for development; there are dev, train"):
        training_data(collection, development="nope", held_out=0)
    with pytest.raises(
        ConfigError, match=r"cannot hold out 16 of 16 .*hold out fewer \(--dev-split 3\), or add judgements"
    ):
        training_data(collection, development=None, held_out=16)
    with pytest.raises(ConfigError, match="held_out must be at least 0"):
        DataSettings(held_out=-1)


def test_data_that_hold_ids_take_texts_and_development_from_a_collection(collection, tmp_path):
    lists = tmp_path / "lists.jsonl"
    lists.write_text("".join(f'["q{i}", "d{i}", "d{i + 1}"]\n' for i in range(16)))
    found = training_data(collection, lists, collection)
    assert found.training.examples[3].negatives == ("d4",) and len(found.development.queries) == 4


def test_what_tells_data_from_others(collection):
    one = training_data(collection).to_dict()
    json.dumps(one)  # it is written as JSON
    assert one["training"]["examples"] == 16 and one["development"]["queries"] == 4
    assert any(len(file["sha256"]) == 64 for file in one["training"]["provenance"]["files"])
    (collection / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq16\td3\t1\n")
    other = training_data(collection).to_dict()
    assert one["development"]["fingerprint"] != other["development"]["fingerprint"]
    assert one["training"]["fingerprint"] == other["training"]["fingerprint"]
