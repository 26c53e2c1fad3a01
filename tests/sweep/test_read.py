"""A grid is read whole or refused with all of its faults."""

import pytest
from tests.sweep.fake import write_collection, write_grid

from counterpoint.errors import ConfigError
from counterpoint.sweep import ModelEntry, read_grid


def test_what_is_read(grid, animals):
    read = read_grid(grid)
    assert read.measures == ("nDCG@5", "R@5") and read.k == 5 and read.keep_encodings
    assert read.models == (ModelEntry("one", "one"), ModelEntry("none", None))
    (collection,) = read.collections
    assert (collection.name, collection.source, collection.split) == ("animals", str(animals), "test")
    assert list(read.combinations()) == [
        {"codec": "int4", "fusion": "ceiling"},
        {"codec": "int4", "fusion": "rrf"},
        {"codec": "float32", "fusion": "ceiling"},
        {"codec": "float32", "fusion": "rrf"},
    ]


def test_the_resolved_grid_reads_the_same_from_anywhere(tmp_path, grid):
    (tmp_path / "my-model").mkdir()
    text = grid.read_text().replace('"none"]', '"none", "./my-model", {name = "two", model = "org/two"}]')
    text = text.replace('source = "animals"', 'source = "animals"\nname = "zoo"\nrelevant_from = 2')
    read = read_grid(write_grid(grid, text))
    assert read.models[2].model == str(tmp_path / "my-model") and read.models[3].name == "two"
    (tmp_path / "elsewhere").mkdir()
    assert read_grid(write_grid(tmp_path / "elsewhere" / "again.toml", read.to_toml())) == read


def test_the_grade_from_which_a_document_is_relevant(grid):
    text = grid.read_text().replace('"R@5"', '"R@5", "P(rel=1)@3", "ap"')
    (collection,) = read_grid(write_grid(grid, text)).collections
    read = read_grid(write_grid(grid, text.replace('"animals"', '"animals"\nrelevant_from = 2')))
    assert read.measures == ("nDCG@5", "R@5", "P(rel=1)@3", "ap")
    assert read.measures_for(read.collections[0]) == {
        "nDCG@5": "nDCG@5",  # takes grades as they are
        "R@5": "R(rel=2)@5",
        "P(rel=1)@3": "P(rel=1)@3",  # says itself
        "ap": "AP(rel=2)",
    }
    assert set(read.measures_for(collection).items()) == {(name, name) for name in read.measures}


FAULTY = """
mesures = ["nDCG@5"]
measures = ["nDGC@10", "R@1000"]
models = ["one", "one", {nme = "x", model = "y"}, "./nowhere", 3]
workflows = ["hybird", "words"]
k = 100
keep_encodings = "no"
[[collections]]
source = "nothing-here"
[[collections]]
source = "animals"
split = "dev"
[[collections]]
source = "animals"
relevant_from = 0
sorce = "x"
[index]
codec = ["int5", "int8", "int8"]
b = 1.5
analyser = "english"
[search]
fusion = "zscore"
weights = ["lexical=1", "lexical"]
feedback = ["0.1,5", 0.2, "0.1,0"]
"""


def test_all_faults_at_once_with_suggestions(tmp_path, animals):
    path = write_grid(tmp_path / "grid.toml", FAULTY)
    with pytest.raises(ConfigError) as caught:
        read_grid(path)
    expected = [
        "unknown key 'mesures'; did you mean 'measures'?",
        "unknown measure 'nDGC@10'; did you mean 'nDCG@10'?",
        "models: 'one' occurs more than once",
        "models: unknown key 'nme'; did you mean 'name'?",
        f"models: there is no folder {tmp_path / 'nowhere'}",
        'models: expected a name or {name = "…", model = "…"}, found 3',
        "workflows: unknown 'hybird'; did you mean 'hybrid'?",
        "keep_encodings: expected true or false, found 'no'",
        "collections, number 1: ",
        "collections, number 2: no judgements for a split 'dev'; it has test",
        "collections, number 3: relevant_from must be a whole number from 1 up, found 0",
        "collections, number 3: unknown key 'sorce'; did you mean 'source'?",
        "index.codec: unknown 'int5'; did you mean",
        "index.codec: 'int8' occurs more than once",
        "index.b: expected a number from 0 to 1, found 1.5",
        "index: unknown key 'analyser'; did you mean 'analyzer'?",
        "search.fusion: unknown 'zscore'; did you mean 'z-score'?",
        "search.weights: expected text such as",
        'search.feedback: expected text such as "0.1,5", found 0.2',
        "search.feedback: expected text such as \"0.1,5\", found '0.1,0'",
        "measures: R@1000 needs 1000 documents, but k is 100; write k = 1000",
    ]
    faults = caught.value.faults
    assert all(fault.startswith(f"{path}: ") for fault in faults)
    for needle in expected:
        assert sum(needle in fault for fault in faults) == 1, needle
    assert len(faults) == len(expected)


def test_nothing_is_asked_for(tmp_path):
    with pytest.raises(ConfigError) as caught:
        read_grid(write_grid(tmp_path / "grid.toml", "models = []"))
    assert [fault.rpartition("grid.toml: ")[2] for fault in caught.value.faults] == [
        "measures: missing",
        "models: expected a list that is not empty",
        "workflows: missing",
        "collections: missing",
    ]


def test_files_that_are_no_grid(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_grid(tmp_path / "absent.toml")
    with pytest.raises(ConfigError, match="not valid TOML"):
        read_grid(write_grid(tmp_path / "grid.toml", "measures = ["))


def test_several_splits_want_a_choice(tmp_path, grid, animals):
    write_collection(animals, split="dev")
    assert read_grid(grid).collections[0].split == "test"
    (animals / "qrels" / "test.tsv").rename(animals / "qrels" / "train.tsv")
    with pytest.raises(ConfigError, match="has the splits dev, train; choose one with split"):
        read_grid(grid)
    for path in animals.glob("qrels/*"):
        path.unlink()
    with pytest.raises(ConfigError, match="has no judgements"):
        read_grid(grid)
