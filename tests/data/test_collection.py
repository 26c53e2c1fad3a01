import gzip
import json

import pytest

from counterpoint.data import ReadPolicy, ReadReport, collection_of, open_collection
from counterpoint.data.id_set import IdSet
from counterpoint.errors import ConfigError, DataError
from counterpoint.types import Document


def jsonl(path, *lines):
    path.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    )
    return path


def read(path, **policy):
    report = ReadReport()
    collection = open_collection(path, policy=ReadPolicy(**policy))
    return list(collection.documents(report)), report


A, B = {"_id": "a", "title": "", "text": "one"}, {"_id": "b", "title": "T", "text": "two"}


def test_documents_can_be_read_again_and_streamed(tmp_path):
    collection = open_collection(jsonl(tmp_path / "c.jsonl", A, B))
    assert list(collection.documents()) == list(collection.documents())
    first = next(collection.documents())
    assert (first.id, collection.size, collection.splits, collection.name) == ("a", None, (), "c")


def test_an_error_late_in_the_file_comes_after_the_documents_before_it(tmp_path):
    documents = open_collection(jsonl(tmp_path / "c.jsonl", A, B, b"{")).documents()
    assert [next(documents).id, next(documents).id] == ["a", "b"]
    with pytest.raises(DataError, match=r"c\.jsonl:3: not valid JSON"):
        next(documents)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "not valid JSON"),
        (b"[1]", "expected a JSON object, found list"),
        (b'{"_id": "x"}', "no 'text' among the keys '_id'"),
        (b'{"text": "x"}', "no id: '_id' is not among the keys 'text'"),
        (b'{"_id": 1.5, "text": ""}', "must be a string or a whole number, found 1.5"),
        (b'{"_id": true, "text": ""}', "must be a string or a whole number, found true"),
        (b'{"_id": "x", "text": 3}', "'text' must be a string, found 3"),
        (b'{"_id": "x", "text": "", "m": NaN}', "NaN is not JSON"),
        (b'{"_id": "x", "text": "", "m": ' + b"[" * 100_000, "not valid JSON"),
        (b'{"_id": " ", "text": "t"}', "id is blank"),
    ],
)
def test_malformed_line(tmp_path, line, message):
    path = jsonl(tmp_path / "c.jsonl", A, line, B)
    with pytest.raises(DataError, match=message) as caught:
        read(path)
    assert (caught.value.path, caught.value.line) == (path, 2)
    documents, report = read(path, malformed="skip")
    assert [document.id for document in documents] == ["a", "b"]
    assert (report.skipped, report.documents) == (1, 2)
    assert report.notes[0].startswith(f"{path}:2: ")


def test_duplicate_id(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", A, B, {**A, "text": "other"})
    with pytest.raises(DataError, match=r"c\.jsonl:3: duplicate id 'a', first used at .*c\.jsonl:1"):
        read(path)
    documents, report = read(path, duplicates="first")
    assert [document.text for document in documents] == ["one", "two"]
    assert (report.duplicates, report.notes) == (1, [f"{path}:3: duplicate id 'a' skipped"])


def test_empty_documents_are_kept_and_counted(tmp_path):
    documents, report = read(jsonl(tmp_path / "c.jsonl", A, {"_id": "e", "title": None, "text": " "}))
    assert (documents[1].id, report.empty, report.documents) == ("e", 1, 2)
    assert report.summary() == "2 documents, 1 empty"


def test_broken_utf8(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", A, b'{"_id": "b", "text": "caf\xe9"}')
    offset = path.read_bytes().index(b"\xe9")
    with pytest.raises(DataError, match=rf"c\.jsonl:2: byte 0xe9 at offset {offset} is not UTF-8"):
        read(path)
    documents, report = read(path, encoding="replace")
    assert (documents[1].text, report.replaced) == ("caf\ufffd", 1)


def test_half_a_surrogate_pair(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", A, b'{"_id": "b", "text": "x\\ud83dy \\ud83d\\ude00"}')
    with pytest.raises(DataError, match=r"c\.jsonl:2: half a surrogate pair \(U\+D83D\) at character 1"):
        read(path)
    documents, report = read(path, encoding="replace")
    assert (documents[1].text, report.replaced) == ("x\ufffdy 😀", 1)


def test_absurdly_long_document(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", A, {"_id": "b", "text": "x" * 11})
    with pytest.raises(DataError, match=r"c\.jsonl:2: a text of more than 10 characters"):
        read(path, max_characters=10)
    documents, report = read(path, max_characters=10, too_long="truncate")
    assert (documents[1].text, report.truncated) == ("x" * 10, 1)


def test_a_line_beyond_every_document_is_not_held(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"x" * ((1 << 20) + 200))
    with pytest.raises(DataError, match=r"c\.jsonl:1: this line is longer than"):
        read(path, max_characters=10, too_long="truncate", malformed="skip")


def test_byte_order_mark_line_ends_and_blank_lines(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_bytes(
        b"\xef\xbb\xbf" + json.dumps(A).encode() + b"\r\n\n" + json.dumps(B).encode() + b"\n\n \n"
    )
    assert [document.id for document in read(path)[0]] == ["a", "b"]


def test_whole_numbers_become_string_ids(tmp_path):
    documents, _ = read(jsonl(tmp_path / "c.jsonl", {"_id": 3, "text": "x"}, {"_id": 10**30, "text": ""}))
    assert [document.id for document in documents] == ["3", "1" + "0" * 30]


def test_damaged_gzip(tmp_path):
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(A).encode() * 1000)[:40])
    with pytest.raises(DataError, match="gzip data are damaged or cut short"):
        read(path)
    path.write_bytes(b"plain")
    with pytest.raises(DataError, match="gzip data are damaged"):
        read(path)


def test_notes_are_few_and_counts_are_complete(tmp_path):
    _, report = read(jsonl(tmp_path / "c.jsonl", A, *[b"{"] * 100), malformed="skip")
    assert (report.skipped, len(report.notes)) == (100, 20)
    assert report.summary() == "1 document, 100 malformed and skipped"


def test_policy_names_all_its_faults():
    with pytest.raises(ConfigError) as caught:
        ReadPolicy(malformed="ignore", max_characters=0)  # type: ignore[arg-type]
    assert len(caught.value.faults) == 2
    assert "must be one of error, skip, found 'ignore'" in caught.value.faults[0]


def small(**policy):
    return collection_of(
        [Document("a", "one"), Document("b", "two")],
        name="small",
        queries={"q1": "first", "q2": "second", "q3": "third"},
        qrels={"test": {"q3": {"a": 1}, "q1": {"b": 2, "zz": 1}}, "broken": {"q9": {"a": 1}}},
        policy=ReadPolicy(**policy),
    )


def test_queries_of_a_split_are_in_the_order_of_its_judgements():
    assert list(small().queries()) == ["q1", "q2", "q3"]
    assert small().queries("test") == {"q3": "third", "q1": "first"}
    assert (small().splits, small().size) == (("broken", "test"), 2)


def test_judged_queries_need_a_text():
    with pytest.raises(DataError, match="'broken' judges 1 queries that have no text, such as 'q9'"):
        small().queries("broken")


def test_unknown_split_says_which_there_are():
    with pytest.raises(DataError, match="no judgements for a split 'dev'; it has broken, test"):
        small().qrels("dev")


def test_judged_documents_that_the_corpus_lacks():
    assert small().qrels("test")["q1"] == {"b": 2, "zz": 1}
    with pytest.raises(
        DataError, match="1 of 3 documents judged in split 'test' are not in the corpus.*'zz'"
    ):
        small(unknown_judged="error").qrels("test")
    assert small(unknown_judged="error").qrels("broken") == {"q9": {"a": 1}}


def test_id_set_grows_and_remembers():
    ids = IdSet()
    assert all(ids.add(str(number)) for number in range(3000))
    assert not any(ids.add(str(number)) for number in range(3000))
    assert len(ids._slots) == 8192
