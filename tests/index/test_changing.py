"""Changing an index: what is refused, what becomes of the rest, and what is written."""

import gc
import json
import os
import sqlite3
import threading

import numpy as np
import pytest
from filelock import FileLock
from tests.fakes import HashModel, StaticModel, UniModel
from tests.index.test_damage import TokenModel
from tests.index.test_inverted import as_format_1
from tests.index.test_resume import interrupted
from tests.index.test_term_scores import with_stored_scores

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import Index, IndexSettings, build_index, stream
from counterpoint.index import changing as changing_module
from counterpoint.index.changing import changing
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.deletes import Deletes, write_deletes
from counterpoint.index.manifest import checksum_of
from counterpoint.index.term_scores import StoredScores
from counterpoint.search import Searcher
from counterpoint.search.recall import recall_of, sampled_queries
from counterpoint.types import Document

EXACT = {"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "exact": ["words"]}
WORKFLOWS = ("hybrid", "lexical", "dense", "words", "dense-words", "words-dense")
QUERIES = ("text about 3 word1", "new text", "nothing known")


def some(first, end, text="text", **given):
    return [Document(f"d{i}", f"{text} about {i} and word{i % 3}", **given) for i in range(first, end)]


def cut(name, count, text="passage"):
    return [Document(f"{name}#{i}", f"{text} {i} of it", parent=name, start=9 * i) for i in range(count)]


FIRST = [*some(0, 8), *cut("p", 3)]


@pytest.fixture
def folder(tmp_path):
    build_index(FIRST, None, tmp_path / "i")
    return tmp_path / "i"


def change(folder, *steps, model=None):
    """Make a change of some steps; the index afterwards."""
    with Index(folder) as index, changing(index, model) as made:
        for step in steps:
            step(made)
    return Index(folder)


def add(documents, **given):
    return lambda made: made.add(documents, **given)


def delete(*ids, **given):
    return lambda made: made.delete(ids, **given)


def texts(index):
    documents = [index.document(position) for position in index.positions.tolist()]
    return {each.id: each.text for each in documents}


def state(folder):
    """Every file with what it is: an index that nobody touched is the same."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def answers(index, model, workflows=WORKFLOWS):
    searcher = Searcher(index, model)
    return [searcher.search(q, 50, workflow=w, explain=True) for w in workflows for q in QUERIES]


def refuses(folder, error, match, *steps, **given):
    """A change that is refused, after which everything is as it was."""
    before = state(folder)
    with pytest.raises(error, match=match):
        change(folder, *steps, **given)
    assert state(folder) == before


# -- adding -----------------------------------------------------------------------------------------------


def test_what_is_added_is_found_and_stands_last(folder):
    index = change(folder, add(some(20, 22, "new")))
    assert texts(index) == {each.id: each.text for each in [*FIRST, *some(20, 22, "new")]}
    assert index.position_of("d21") == 12 and index.name_of(12) == "d21" and len(index.segments) == 2
    assert [hit.id for hit in Searcher(index).search("new", workflow="lexical")] == ["d21", "d20"]
    assert index.manifest.faults(folder) == []


@pytest.mark.parametrize(
    ("documents", "match"),
    [
        (some(2, 5), "'d2', 'd3', 'd4': already in the index; replace the document, or leave it out"),
        (some(1, 7), "'d1', 'd2', 'd3' and 3 more: already in the index"),
        (cut("p", 1), "'p#0'.*: already in the index"),
        ([Document("p", "whole")], "'p': already in the index"),
        ([Document("p#1", "a passage's id")], "'p#1': already in the index"),
        ([Document("d1", "as a passage", parent="new")], "'d1': already in the index"),
        ([Document("new", "x", parent="d1")], "'d1': already in the index"),
        ([*some(20, 22), *some(21, 22)], "duplicate document id 'd21': documents number 2 and 3"),
        ([Document("\ud800", "x")], "cannot store a document"),
        ([Document("x", "x", metadata={"a": float("nan")})], "its metadata is not JSON"),
    ],
)
def test_what_cannot_be_added_is_refused(folder, documents, match):
    refuses(folder, DataError, match, delete("d7"), add(documents))


@pytest.mark.parametrize("batch", [1, 2, 512])
def test_batches_do_not_show(folder, monkeypatch, batch):
    monkeypatch.setattr(stream, "BATCH", batch)
    monkeypatch.setattr(changing_module, "BATCH", batch)
    refuses(folder, DataError, "duplicate document id 'd20'", add([*some(20, 23), *some(20, 21)]))
    refuses(folder, DataError, "duplicate document id 'd2'", add([*some(0, 4), *some(2, 3)], replace=True))
    index = change(
        folder, add([*cut("p", 5, "new"), *some(1, 4, "new")], replace=True), delete("d0", "d5", "d3")
    )
    assert texts(index) == {
        each.id: each.text for each in [*some(4, 5), *some(6, 8), *cut("p", 5, "new"), *some(1, 3, "new")]
    }


def test_an_id_that_an_add_of_the_same_change_has(folder):
    refuses(folder, DataError, "'d20': already in the index", add(some(20, 21)), add(some(20, 21)))
    index = change(
        folder,
        add(some(20, 22)),
        add(some(20, 21, "new"), replace=True),
        delete("d21"),
        add(some(21, 22, "new")),
    )
    assert texts(index) == {each.id: each.text for each in [*FIRST, *some(20, 22, "new")]}
    assert index.end - len(index) == sum(segment.documents for segment in index.segments) - 13


def test_adding_nothing_is_no_commit(folder):
    before = state(folder)
    index = Index(folder)
    with changing(index) as made:
        assert made.add([]) == 0 and made.add([], replace=True) == 0 and made.delete([]) == 0
        assert made.delete(["nobody"], missing_ok=True) == 0
        assert made.add(some(20, 21)) == 1 and made.delete(["d20"]) == 1
    assert state(folder) == before and index.refreshed() is index


@pytest.mark.filterwarnings("error")
def test_files_of_what_came_and_went_are_closed(folder, recwarn):
    change(folder, add(some(20, 21)), delete("d20"))
    gc.collect()
    assert not [each for each in recwarn if each.category is ResourceWarning]


def test_progress_is_told_over_all_adds(folder):
    told = []
    with Index(folder) as index, changing(index, on_progress=told.append) as made:
        made.add(some(20, 23))
        made.add(some(30, 32))
    assert told == [3, 5]


def test_documents_longer_than_the_model_reads_are_counted_on(tmp_path):
    class Counted(HashModel):
        longest = 3
        table = gate_weights = save = lambda self, *_: pytest.fail("not needed")

    model = Counted()
    build_index([Document("a", "1 2 3 4"), Document("b", "1")], model, tmp_path / "i")
    index = change(tmp_path / "i", add([Document("c", "1 2 3 4"), Document("d", "1 2")]), model=model)
    assert index.info()["longer_than_model"] == 2


# -- replacing and deleting -------------------------------------------------------------------------------


def test_passages_are_replaced_and_deleted_with_their_document(folder):
    index = change(folder, add(cut("p", 2, "new"), replace=True))
    assert texts(index) == {each.id: each.text for each in [*some(0, 8), *cut("p", 2, "new")]}
    assert index.parents == {"p#0": "p", "p#1": "p"} and index.info()["documents"] == 9
    index = change(folder, add([Document("p", "whole")], replace=True))
    assert index.parents == {} and index.position_of("p#0") is None and texts(index)["p"] == "whole"
    index = change(folder, add(cut("p", 1), replace=True), delete("d1"))
    assert index.parents == {"p#0": "p"} and index.position_of("p") is None
    with Index(folder) as before, changing(before) as made:
        assert made.delete(["p", "d2", "p"]) == 2
    assert index.refreshed().parents == {} and len(index.refreshed()) == 6
    assert index.parents == {"p#0": "p"} and len(index) == 8


@pytest.mark.parametrize(
    ("step", "match"),
    [
        (delete("d1", "nobody"), "'nobody': no such document in the index; nothing was changed"),
        (delete("p#0"), "'p#0' is a passage; delete or replace the document it was cut from"),
        (delete("p#0", missing_ok=True), "'p#0' is a passage"),
        (delete(*"abcde"), "'a', 'b', 'c' and 2 more: no such document"),
        (add([Document("p#0", "x")], replace=True), "'p#0' is a passage"),
        (add([Document("d1", "x", parent="d2")], replace=True), "'d1': already in the index"),
        (add([Document("p#0", "x", parent="q")], replace=True), "'p#0': already in the index"),
    ],
)
def test_what_cannot_be_deleted_or_replaced_is_refused(folder, step, match):
    refuses(folder, DataError, match, add(some(30, 31)), step)


def test_a_document_is_deleted_once(folder):
    refuses(folder, DataError, "'d1': no such document", delete("d1"), delete("d1"))
    change(folder, delete("d1", "p"))
    refuses(folder, DataError, "'d1': no such document", delete("d1"))
    refuses(folder, DataError, "'p': no such document", delete("p"))
    refuses(folder, DataError, "'p#0': no such document", delete("p#0"))


@pytest.mark.parametrize("name", ["d0\0", "d0\0x", "\ud800", "", '"', "%", "d0 ", "D0", "d0'--"])
def test_an_id_is_no_other(folder, name):
    """SQLite's JSON ends a text at a NUL, where there is one."""
    refuses(folder, DataError, "no such document", delete(name))
    before = state(folder)
    assert len(change(folder, delete(name, missing_ok=True))) == 11 and state(folder) == before
    if name != "\ud800":
        index = change(folder, add([Document(name, "odd")]))
        assert texts(index)["d0"] == FIRST[0].text and index.document(11).id == name
        refuses(folder, DataError, "already in the index", add([Document(name, "odd")]))
        assert texts(change(folder, delete(name))) == {each.id: each.text for each in FIRST}


def test_deletes_of_many_commits_add_up(folder):
    for i in range(7):
        index = change(folder, delete(f"d{i}"))
        assert len(index) == 10 - i and len(index.segments) == 1 and index.manifest.faults(folder) == []
        assert len(list((folder / "deletes").iterdir())) == 1
    assert list(texts(index)) == ["d7", "p#0", "p#1", "p#2"]


def test_a_segment_of_which_nothing_is_left_goes(folder):
    index = change(folder, add(some(20, 23)))
    assert len(index.segments) == 2
    index = change(folder, delete("d20", "d21", "d22"))
    assert len(index.segments) == 1 and len(list(folder.glob("*/*"))) == 2
    assert list(texts(index)) == [each.id for each in FIRST]


@pytest.mark.parametrize(
    "model", [HashModel(), StaticModel(), TokenModel()], ids=["words", "static", "lists"]
)
@pytest.mark.parametrize("codec", ["int8", "1-bit"])
def test_an_index_of_which_nothing_is_left_answers_and_grows(tmp_path, model, codec):
    folder = tmp_path / "i"
    build_index(FIRST, model, folder, IndexSettings(codec=codec))
    index = change(folder, delete("p", *(f"d{i}" for i in range(8))))
    assert len(index) == 0 and index.positions.tolist() == [] and index.fields == {} and index.parents == {}
    workflows = WORKFLOWS if "mean" in model.sets else ("hybrid", "lexical", "words")
    assert [answer.hits for answer in answers(index, model, workflows)] == [()] * 3 * len(workflows)
    assert Searcher(index, model).run({"q": "text"})["q"] == []
    assert index.info()["documents"] == 0
    assert sampled_queries(index, 5) == {}
    index = change(folder, add([Document("empty", "")]), model=model)
    assert all({hit.id for hit in answer} <= {"empty"} for answer in answers(index, model, workflows))
    index = change(folder, add(some(20, 23, "new")), delete("empty"), model=model)
    assert list(texts(index)) == ["d20", "d21", "d22"]
    assert {hit.id for hit in Searcher(index, model).search("new text")} == {"d20", "d21", "d22"}
    assert len(index.segments) == 1


# -- conditions -------------------------------------------------------------------------------------------


@pytest.fixture
def typed(tmp_path):
    documents = [Document(f"d{i}", "text", metadata={"year": str(2000 + i), "lang": "en"}) for i in range(6)]
    build_index(documents, None, tmp_path / "i", IndexSettings(metadata={"year": "int"}))
    return tmp_path / "i"


def test_documents_are_deleted_by_a_condition(typed):
    with Index(typed) as index, changing(index) as made:
        assert made.delete_where("year >= 2003 or year = 2000") == 4
        assert made.add([Document("d3", "new", metadata={"year": "1999"})]) == 1
    index = Index(typed)
    assert texts(index) == {"d1": "text", "d2": "text", "d3": "new"}
    assert index.document(index.position_of("d3")).metadata == {"year": 1999}
    assert index.matching("year < 2002").tolist() == [False, True, *[False] * 4, True]
    assert dict(index.fields) == {"year": "int", "lang": "str"}
    assert dict(change(typed, delete("d1", "d2")).fields) == {"year": "int"}
    assert change(typed, lambda made: made.delete_where("year is not null")).end == 1


def test_a_condition_comes_first(typed):
    match = "delete by a condition before anything else, or in a separate change"
    refuses(typed, ConfigError, match, delete("d1"), lambda made: made.delete_where("year = 2000"))
    refuses(typed, ConfigError, match, add(some(20, 21)), lambda made: made.delete_where("year = 2000"))


@pytest.mark.parametrize("text", ["", "yaer = 1", "year = 'x'", "drop table documents"])
def test_what_is_no_condition_deletes_nothing(typed, text):
    refuses(typed, ConfigError, "the condition", lambda made: made.delete_where(text))


def test_a_value_of_another_type_is_refused(typed):
    bad = Document("x", "text", metadata={"year": "soon"})
    refuses(typed, DataError, "document 'x': its metadata field 'year' is 'soon'", delete("d1"), add([bad]))
    index = change(typed, add([Document("y", "text", metadata={"lang": 7})]))
    with pytest.raises(ConfigError, match="'lang' has int and str in the documents"):
        index.matching("lang = 'en'")
    assert change(typed, delete("y")).matching("lang = 'en'").sum() == 6


# -- models -----------------------------------------------------------------------------------------------


def test_the_model_is_asked_for_only_where_something_is_encoded(tmp_path):
    build_index(FIRST, HashModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index, changing(index, load=lambda: pytest.fail("loaded")) as made:
        made.delete(["d1"])
    refuses(tmp_path / "i", ConfigError, "adding documents needs the model", add(some(20, 21)))
    wrong = HashModel(seed=1)
    refuses(tmp_path / "i", ArtifactError, "built with the model hash-16-0", add(some(20, 21)), model=wrong)
    with Index(tmp_path / "i") as index, changing(index, load=HashModel) as made:
        made.add(some(20, 21))
    assert len(Index(tmp_path / "i")) == 11


def test_a_model_that_fails_leaves_everything(tmp_path):
    class Failing(HashModel):
        def encode_document(self, texts):
            raise RuntimeError("out of memory")

    build_index(FIRST, HashModel(), tmp_path / "i")
    refuses(tmp_path / "i", RuntimeError, "memory", delete("d1"), add(some(20, 21)), model=Failing())


# -- what is kept -----------------------------------------------------------------------------------------


def test_an_error_in_the_block_changes_nothing(folder):
    for error in (ValueError("mine"), KeyboardInterrupt(), FileNotFoundError("mine")):
        before = state(folder)
        with pytest.raises(type(error)), Index(folder) as index, changing(index) as made:
            made.delete(["d1"])
            made.add(some(20, 22))
            raise error
        assert state(folder) == before
    Index(folder).close()


def test_a_source_that_fails_is_named(folder):
    def source():
        yield from some(20, 22)
        raise ConnectionError("no route to host")

    refuses(folder, DataError, "the source cannot be read: no route to host", add(source()))


def test_one_writer_at_a_time(folder):
    before = state(folder)
    for held in (lambda: FileLock(folder / ".lock"), lambda: changing(Index(folder))):
        with held(), pytest.raises(ArtifactError, match="another process is writing this index"):
            change(folder, delete("d1"))
    refused = []

    def other():
        try:
            change(folder, delete("d1"))
        except ArtifactError as error:
            refused.append(error)

    with changing(Index(folder)) as made:
        made.delete(["d2"])
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(refused) == 1 and Index(folder).position_of("d2") is None
    assert Index(folder).position_of("d1") is not None and state(folder) != before


def test_a_change_is_made_to_what_is_there_now(folder):
    old = Index(folder)
    change(folder, delete("d1"), add(some(20, 21)))
    with changing(old) as made:
        assert made.delete(["d20"]) == 1
        with pytest.raises(DataError, match="'d1': no such"):
            made.delete(["d1"])
    assert len(old) == 11 and len(old.refreshed()) == 10


def test_what_is_no_index_is_left_alone(tmp_path, folder):
    old = Index(folder)
    folder.rename(tmp_path / "elsewhere")
    with pytest.raises(ArtifactError, match="there is no such folder"), changing(old):
        pytest.fail("there is nothing to change")
    assert not folder.exists()


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_index_says_so(folder):
    folder.chmod(0o500)
    with pytest.raises(ArtifactError, match="cannot write"):
        change(folder, delete("d1"))


def test_an_interrupted_build_can_still_be_gone_on_with(tmp_path, monkeypatch):
    from tests.index.test_resume import DOCUMENTS

    monkeypatch.setattr(stream, "BATCH", 7)
    monkeypatch.setattr("counterpoint.index.progress.EVERY", 0.0)
    build_index(FIRST, HashModel(), tmp_path / "i")
    interrupted(tmp_path / "i", 30, overwrite=True)
    change(tmp_path / "i", delete("d1"), add(some(20, 21)), model=HashModel())
    encoded, encode = [], HashModel.encode_document
    monkeypatch.setattr(HashModel, "encode_document", lambda self, x: [encoded.extend(x), encode(self, x)][1])
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", overwrite=True, resume=True)
    assert 0 < len(encoded) < len(DOCUMENTS) and len(Index(tmp_path / "i")) == len(DOCUMENTS)


def test_what_a_killed_writer_left_is_removed(folder):
    for name in ("segments/0123456789ab", "lexical/0123456789ac", "deletes/0123456789ad"):
        (folder / name).mkdir(parents=True)
        (folder / name / ".counterpoint").touch()
        (folder / name / "rows.npy").write_bytes(b"half")
    (folder / "deletes" / "mine").mkdir()
    index = change(folder, delete("d1"))
    named = {name for entry in index.manifest.segments for name in entry.folders()}
    assert {path.relative_to(folder).as_posix() for path in folder.glob("*/*")} == {*named, "deletes/mine"}


# -- snapshots --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ann", [None, "hnsw"])
def test_a_snapshot_shares_files_and_stays(tmp_path, monkeypatch, ann):
    if ann:
        pytest.importorskip("faiss")
    build_index(FIRST, HashModel(), tmp_path / "i", IndexSettings(search=EXACT, ann=ann))
    first, untouched = Index(tmp_path / "i"), Index(tmp_path / "i")
    before = answers(first, HashModel())
    change(tmp_path / "i", delete("d1"), add(some(20, 23)), model=HashModel())
    opened, folder_of = [], CheckedFolder.__init__
    monkeypatch.setattr(
        CheckedFolder,
        "__init__",
        lambda self, at, *rest: [opened.append(at.parent.name), folder_of(self, at, *rest)][1],
    )
    second = first.refreshed()
    assert sorted(opened) == ["deletes", "lexical", "segments"]  # of the new segment, and the deletes
    opened.clear()
    assert second.refreshed() is second and opened == []
    assert second.segments[0].files is first.segments[0].files
    assert second.sets["words"].parts[0] is first.sets["words"].parts[0]
    change(tmp_path / "i", add(some(0, 8, "new"), replace=True), delete("p"), model=HashModel())
    third = second.refreshed()
    assert len(third.segments) == 2 and third.segments[0].files is second.segments[1].files
    assert answers(first, HashModel()) == before == answers(untouched, HashModel())
    assert (len(first), len(second), len(third)) == (11, 13, 11)
    assert texts(second) == {each.id: each.text for each in [FIRST[0], *FIRST[2:], *some(20, 23)]}
    assert not {"d1"} & {hit.id for answer in answers(second, HashModel()) for hit in answer}
    second.close()
    with pytest.raises(ArtifactError, match="this index has been closed"):
        first.document(0)
    assert third.document(int(third.positions[-1])).text == "new about 7 and word1"
    assert untouched.document(1).id == "d1"


def test_conditions_and_counts_of_a_snapshot_are_its_own(typed):
    first = Index(typed)
    assert first.matching("year >= 2003").sum() == 3 and first.parents == {}
    change(typed, delete("d4"), add([Document("z#0", "zebra", parent="z", metadata={"year": 2010})]))
    second = first.refreshed()
    assert (first.matching("year >= 2003").sum(), second.matching("year >= 2003").sum()) == (3, 3)
    assert (first.parents, second.parents) == ({}, {"z#0": "z"})
    assert (len(first.lexical.scores("zebra")), len(second.lexical.scores("zebra"))) == (6, 7)
    assert second.lexical.scores("text")[4] == 0 < first.lexical.scores("text")[4]


# -- of live documents only -------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [HashModel(), UniModel(), StaticModel()], ids=["words", "uni", "static"])
def test_counts_are_those_of_an_index_that_is_built_anew(tmp_path, model):
    documents = [
        Document(f"d{i}", f"w{i % 5} " * (i % 4) + f"only{i}", metadata={f"m{i % 3}": i}) for i in range(9)
    ]
    build_index(documents, model, tmp_path / "i")
    more = [Document("e", "more words", metadata={"n": "x"}), *cut("q", 2)]
    old = change(tmp_path / "i", add(more), delete("d2", "d5", "d8"), model=model)
    left = [*(each for each in documents if each.id not in ("d2", "d5", "d8")), *more]
    build_index(left, model, tmp_path / "new")
    new = Index(tmp_path / "new")
    assert dict(old.fields) == dict(new.fields) == {"m0": "int", "m1": "int", "n": "str"}
    assert old.parents == new.parents and len(old) == len(new) == 9
    assert texts(old) == texts(new)
    for name in model.sets:
        assert old.mean_rows(name, old.positions) == new.mean_rows(name, new.positions)
        if model.sets[name].ids:
            ids = model.encode_query([each.full_text for each in documents])[name].ids
            np.testing.assert_array_equal(old.idf(name, ids), new.idf(name, ids))
            assert old.distinct_ids(name) == new.distinct_ids(name)
    for key in ("documents", "passages", "text_bytes"):
        assert old.info()[key] == new.info()[key], key
    for name in model.sets:
        assert old.info()["sets"][name]["distinct_ids"] == new.info()["sets"][name]["distinct_ids"]
        encoded = model.encode_document([each.full_text for each in [*documents, *more]])[name]
        told = old.info()["sets"][name]
        assert told["vectors"] == len(encoded.values)
        assert told["vectors_per_document"] == pytest.approx(len(encoded.values) / 12 * 9 / 8)
    assert (old.info()["deleted"], old.info()["segments"]) == (3, 2)
    queries = sampled_queries(old, 100)
    assert queries == sampled_queries(new, 100) and queries.keys() == texts(old).keys()
    for seed in range(5):
        assert sampled_queries(old, 3, seed).keys() <= texts(old).keys()
    found = recall_of(Searcher(old, model), queries, (3, 5))
    assert found == recall_of(Searcher(new, model), queries, (3, 5)) and found.recall == {3: 1.0, 5: 1.0}


# -- older indexes ----------------------------------------------------------------------------------------


def as_format(folder, version):
    """Rewrite an index as an earlier version had it."""
    if version == 1:
        as_format_1(folder)
    path = folder / "manifest.json"
    body = json.loads(path.read_text())
    if 1 < version < 4:
        for layout in body["settings"]["layouts"].values():
            kind = layout.pop("kind")
            layout |= {"pooled": kind == "dense", "static": False, "inverted": kind == "exact"}
    (segment,) = body["segments"]
    body["segments"] = [{key: segment[key] for key in ("name", "documents", "vectors")}]
    body["lexical"], body["version"] = segment["lexical"], version
    del body["checksum"]
    path.write_text(json.dumps({**body, "checksum": checksum_of(body)}))


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("exact", [False, True])
def test_an_older_index_is_changed(tmp_path, version, exact):
    settings = IndexSettings(codec="float16", search=EXACT if exact else None)
    build_index(FIRST, HashModel(), tmp_path / "i", settings)
    as_format(tmp_path / "i", version)
    assert json.loads((tmp_path / "i" / "manifest.json").read_text())["version"] == version
    old = Index(tmp_path / "i")
    before = answers(old, HashModel())
    steps = delete("d1", "p"), add([*some(2, 3, "new"), *some(20, 22)], replace=True)
    index = change(tmp_path / "i", *steps, model=HashModel())
    assert index.manifest.faults(tmp_path / "i") == [] and answers(old, HashModel()) == before
    assert json.loads((tmp_path / "i" / "manifest.json").read_text())["version"] == 5
    left = [*some(0, 1), *some(3, 8), *some(2, 3, "new"), *some(20, 22)]
    build_index(left, HashModel(), tmp_path / "new", settings)
    assert answers(index, HashModel()) == answers(Index(tmp_path / "new"), HashModel())
    assert len(list((tmp_path / "i" / "lexical").iterdir())) == 2


def test_an_index_of_the_first_format_is_changed(tmp_path):
    settings, model = IndexSettings(codec="float16", lexical=None), UniModel()
    build_index(FIRST, model, tmp_path / "i", settings)
    as_format(tmp_path / "i", 1)
    index = change(
        tmp_path / "i",
        delete("d1", "p"),
        add([*some(2, 3, "new"), *some(20, 22)], replace=True),
        model=model,
    )
    assert index.manifest.faults(tmp_path / "i") == [] and len(index.segments) == 2
    build_index(
        [*some(0, 1), *some(3, 8), *some(2, 3, "new"), *some(20, 22)], model, tmp_path / "new", settings
    )
    workflows = [name for name in WORKFLOWS if name != "lexical"]
    assert answers(index, model, workflows) == answers(Index(tmp_path / "new"), model, workflows)


@pytest.mark.parametrize(
    "steps", [[delete("d1")], [add(some(20, 22))], [delete("p"), add(some(0, 3, "new"), replace=True)]]
)
def test_scores_that_an_earlier_version_stored_are_counted_anew(folder, tmp_path, steps):
    with_stored_scores(folder, [each.full_text for each in FIRST])
    old = Index(folder)
    assert isinstance(old.lexical._terms, StoredScores)
    before = answers(old, None, ["lexical"])
    index = change(folder, *steps)
    assert not isinstance(index.lexical._terms, StoredScores) and index.manifest.faults(folder) == []
    left = [index.document(position) for position in index.positions.tolist()]
    build_index(left, None, tmp_path / "new")
    assert answers(index, None, ["lexical"]) == answers(Index(tmp_path / "new"), None, ["lexical"])
    assert answers(old, None, ["lexical"]) == before
    named = {entry.lexical for entry in index.manifest.segments}
    assert {f"lexical/{path.name}" for path in folder.glob("lexical/*")} == named


# -- deletes on disk --------------------------------------------------------------------------------------


def test_deletes_of_another_segment_are_refused(tmp_path):
    live = np.array([True, False, True, True, True, True, True, True, False])
    write_deletes(tmp_path, live, {"words": (np.array([3, 7]), np.array([1, 2]))})
    found = Deletes(CheckedFolder(tmp_path), 9, 2)
    assert found.rows.tolist() == [1, 8] and found.live.tolist() == live.tolist()
    assert [x.tolist() for x in found.counts("words")] == [[3, 7], [1, 2]]
    with pytest.raises(ValueError, match="read-only"):
        found.live[0] = False
    with pytest.raises(ArtifactError, match="the deletes do not fit this segment"):
        Deletes(CheckedFolder(tmp_path), 8, 2)
    with pytest.raises(ArtifactError, match="2 documents are deleted, but the manifest says 3"):
        Deletes(CheckedFolder(tmp_path), 9, 3)


def test_a_damaged_delete_never_brings_a_document_back(folder):
    index = change(folder, delete("d1"))
    path = folder / index.manifest.segments[0].deletes / "rows.npy"
    whole = path.read_bytes()
    for at in range(len(whole)):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 2]) + whole[at + 1 :])
        with pytest.raises(ArtifactError, match="rows.npy"):
            Index(folder)
    path.unlink()
    with pytest.raises(ArtifactError, match="rows.npy"):
        Index(folder)


def test_a_full_disk_in_the_database_is_told(folder, monkeypatch):
    def full(*_):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = sqlite3.SQLITE_FULL
        raise error

    monkeypatch.setattr("counterpoint.index.segment.SegmentWriter.append", full)
    refuses(folder, ArtifactError, "No space left on device", add(some(20, 21)))


def test_a_condition_that_one_passage_meets_deletes_the_whole_document(tmp_path):
    """Passages of a document may differ in their metadata: the heading that each stands below."""
    cut = [Document(f"a#{i}", f"piece {i}", parent="a", metadata={"section": f"s{i}"}) for i in (1, 2)]
    build_index([*cut, Document("b", "other")], None, tmp_path / "i")
    with changing(Index(tmp_path / "i")) as made:
        assert made.delete_where("section = 's2'") == 1
    index = Index(tmp_path / "i")
    assert index.names_of(index.positions) == ["b"]
