import json
import random
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import ConfigError, DataError
from counterpoint.measure import Fold, cross_validate, read_folds, split_folds, write_folds

IDS = st.lists(st.text(max_size=4), min_size=3, max_size=40, unique=True)


@given(IDS, st.integers(3, 7), st.integers(0, 99), st.randoms())
def test_every_query_is_tested_and_validated_once_and_trained_on_elsewhere(queries, folds, seed, chance):
    folds = min(folds, len(queries))
    made = split_folds(queries, folds, seed)
    sizes = [len(fold.test) for fold in made]
    assert len(made) == folds and max(sizes) - min(sizes) <= 1
    for part, times in (("test", 1), ("validation", 1), ("train", folds - 2)):
        members = [query for fold in made for query in getattr(fold, part)]
        assert sorted(members) == sorted(queries * times)
    for fold in made:
        assert sorted(fold.train + fold.validation + fold.test) == sorted(queries)
    shuffled = list(queries)
    chance.shuffle(shuffled)
    assert split_folds(shuffled, folds, seed) == made


def test_the_documented_order():
    """SHA-256 of seed, line end and id; dealt out in turn; validation is the next group."""
    queries = [f"q{number}" for number in range(11)]
    dealt = sorted(queries, key=lambda query: sha256(b"7\n" + query.encode()).hexdigest())
    groups = [
        sorted(dealt[0::5]),
        sorted(dealt[1::5]),
        sorted(dealt[2::5]),
        sorted(dealt[3::5]),
        sorted(dealt[4::5]),
    ]
    made = split_folds(queries, seed=7)
    assert [list(fold.test) for fold in made] == groups
    assert [list(fold.validation) for fold in made] == [*groups[1:], groups[0]]
    assert list(made[3].train) == sorted(groups[0] + groups[1] + groups[2])
    assert split_folds(queries, seed=8) != made


def test_what_cannot_be_split():
    with pytest.raises(ConfigError, match="at least 3, found 2"):
        split_folds(["a", "b", "c"], 2)
    with pytest.raises(ConfigError, match="2 queries do not fill 5 folds"):
        split_folds(["a", "b"])
    with pytest.raises(ConfigError, match="'b' is repeated"):
        split_folds(["a", "b", "b"], 3)


@given(IDS, st.one_of(st.none(), st.integers()))
def test_what_is_written_is_read(tmp_path_factory, queries, seed):
    path = tmp_path_factory.mktemp("folds") / "folds.json"
    made = split_folds(queries, 3)
    write_folds(made, path, seed=seed)
    assert read_folds(path) == made and json.loads(path.read_text(encoding="utf-8"))["seed"] == seed


ONE = {"train": ["a"], "validation": ["b"], "test": ["c"]}
TWO = {"train": ["b"], "validation": ["c"], "test": ["a"]}
THREE = {"train": ["c"], "validation": ["a"], "test": ["b"]}


@pytest.mark.parametrize(
    "data, expected",
    [
        ([], "not a Counterpoint file of folds"),
        ({"format": 2, "folds": [ONE, TWO, THREE]}, "file of folds format 2"),
        ({"format": 1, "folds": {}}, "not a file of folds"),
        ({"format": 1, "folds": []}, "there are no folds"),
        ({"format": 1, "folds": [ONE, {**TWO, "dev": []}]}, "fold 2: expected train, validation and test"),
        ({"format": 1, "folds": [{**ONE, "train": "a"}]}, "fold 1: train must be a list of query ids"),
        ({"format": 1, "folds": [{**ONE, "test": [1]}]}, "fold 1: test must be a list of query ids"),
        ({"format": 1, "folds": [{**ONE, "validation": []}]}, "fold 1: validation must be a list"),
        (
            {"format": 1, "folds": [ONE, TWO, {**THREE, "train": ["b"]}]},
            "fold 3: query 'b' is in it 2 times",
        ),
        ({"format": 1, "folds": [ONE, TWO]}, "fold 1: query 'b' is tested in no fold"),
        (
            {"format": 1, "folds": [ONE, TWO, {**THREE, "train": ["c", "x"]}]},
            "fold 3: query 'x' is tested in no",
        ),
        ({"format": 1, "folds": [ONE, TWO, {**THREE, "train": ["c"], "validation": ["d"]}]}, "fold 3: query"),
        ({"format": 1, "folds": [ONE, TWO, THREE, ONE]}, "query 'c' is tested in 2 folds"),
    ],
)
def test_wrong_files_are_refused(tmp_path, data, expected):
    path = tmp_path / "folds.json"
    path.write_text(json.dumps(data))
    with pytest.raises(DataError, match="folds.json: ") as error:
        read_folds(path)
    assert expected in str(error.value)


def test_files_that_are_no_json_or_absent(tmp_path):
    (tmp_path / "folds.json").write_bytes(b"\xff{")
    with pytest.raises(DataError, match="folds.json: not valid JSON"):
        read_folds(tmp_path / "folds.json")
    with pytest.raises(DataError, match="absent.json: this file is missing"):
        read_folds(tmp_path / "absent.json")


FOLDS = (Fold(("c",), ("b",), ("a",)), Fold(("a",), ("c",), ("b",)), Fold(("b",), ("a",), ("c",)))


def test_cross_validation_by_hand():
    systems = {"one": {"a": 1.0, "b": 0.0, "c": 0.5}, "two": {"a": 0.0, "b": 0.6, "c": 0.5}}
    # fold 1 sees b and c: .5 and 1.1; fold 2 sees a and c: 1.5 and .5; fold 3 sees a and b: 1 and .6
    found = cross_validate(systems, FOLDS)
    assert found.chosen == ("two", "one", "one")
    assert found.values == {"a": 0.0, "b": 0.0, "c": 0.5}
    # validation alone: b .0 and .6; c a tie, which the first wins; a 1 and 0
    assert cross_validate(systems, FOLDS, choose_on="validation").chosen == ("two", "one", "one")
    swapped = {"two": systems["two"], "one": systems["one"]}
    assert cross_validate(swapped, FOLDS, choose_on="validation").chosen == ("two", "two", "one")


def test_the_test_queries_are_not_looked_at():
    queries = [f"q{number}" for number in range(20)]
    folds = split_folds(queries)
    chance = random.Random(0)
    systems = {name: {query: chance.random() for query in queries} for name in "abc"}
    chosen = cross_validate(systems, folds).chosen
    for number, fold in enumerate(folds):
        other = {
            name: {query: 1 - value if query in fold.test else value for query, value in values.items()}
            for name, values in systems.items()
        }
        assert cross_validate(other, folds).chosen[number] == chosen[number]


def test_what_cannot_be_cross_validated():
    with pytest.raises(ConfigError, match="there are none"):
        cross_validate({}, FOLDS)
    with pytest.raises(ConfigError, match="choose_on must be train\\+validation or validation, found 'test'"):
        cross_validate({"one": dict.fromkeys("abc", 0.0)}, FOLDS, choose_on="test")
    with pytest.raises(DataError, match="one: query 'c' is in the folds but was not measured"):
        cross_validate({"one": dict.fromkeys("ab", 0.0)}, FOLDS)
    with pytest.raises(DataError, match="one: query 'd' was measured but is in no fold"):
        cross_validate({"one": dict.fromkeys("abcd", 0.0)}, FOLDS)
