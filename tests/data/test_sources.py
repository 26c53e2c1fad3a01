import gzip
import json
import os
import subprocess
import sys

import pytest

from counterpoint.data import ReadPolicy, ReadReport, open_collection, read_queries
from counterpoint.errors import ConfigError, DataError
from counterpoint.types import Document


def write(path, *records):
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


@pytest.mark.parametrize(
    ("record", "document"),
    [
        ({"_id": "1", "title": "T", "text": "x", "metadata": {"a": 1}, "u": 2}, ("T", {"a": 1, "u": 2})),
        ({"id": 1, "contents": "x", "year": 2000}, ("", {"year": 2000})),
        ({"docid": "1", "title": "T", "text": "x"}, ("T", {})),
        ({"docid": "1", "document_text": "x"}, ("", {})),
        ({"id": "1", "text": "x", "metadata": "m"}, ("", {"metadata": "m"})),
    ],
)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_the_first_record_decides_the_layout(tmp_path, record, document, ending):
    path = write(tmp_path / f"c.jsonl{ending}", record)
    title, metadata = document
    assert list(open_collection(path).documents()) == [Document("1", "x", title, metadata=metadata)]


def test_a_later_record_of_another_layout_is_an_error(tmp_path):
    path = write(tmp_path / "c.jsonl", {"id": "1", "contents": "x"}, {"_id": "2", "text": "y"})
    with pytest.raises(DataError, match=r"c\.jsonl:2: no id: 'id' is not among the keys '_id', 'text'"):
        list(open_collection(path).documents())


def test_format_overrides_the_first_record(tmp_path):
    path = write(tmp_path / "c.jsonl", {"id": "1", "contents": "x", "text": "y"})
    assert next(open_collection(path).documents()).text == "x"
    assert next(open_collection(path, format="plain").documents()).text == "y"
    with pytest.raises(DataError, match="no id: '_id'"):
        list(open_collection(path, format="beir-jsonl").documents())


def test_keys_of_no_layout(tmp_path):
    with pytest.raises(DataError, match=r"c\.jsonl:1: the keys 'a' fit no known layout \(beir-jsonl: _id"):
        open_collection(write(tmp_path / "c.jsonl", {"a": 1}))
    (tmp_path / "e.jsonl").touch()
    assert list(open_collection(tmp_path / "e.jsonl").documents()) == []


def test_msmarco_and_colbert_tables(tmp_path):
    path = tmp_path / "c.tsv"
    path.write_text('0\ta "quoted text\n1\tb\n\n')
    assert [(d.id, d.text) for d in open_collection(path).documents()] == [
        ("0", 'a "quoted text'),
        ("1", "b"),
    ]
    path.write_text("0\ta\n1\tb\tT\n")
    with pytest.raises(
        DataError, match=r"c\.tsv:2: expected id and text, separated by tabs, found 3 columns"
    ):
        list(open_collection(path).documents())
    assert [d.title for d in open_collection(path, format="colbert").documents()] == ["", "T"]
    path.write_text("id\ttext\ttitle\n1\tb\tT\n2\tc\n")
    assert [d.title for d in open_collection(path).documents()] == ["T", ""]
    path.write_text("0\ta\nonly\n")
    report = ReadReport()
    assert len(list(open_collection(path, policy=ReadPolicy(malformed="skip")).documents(report))) == 1
    assert report.skipped == 1


def test_beir_folder(tmp_path):
    write(tmp_path / "corpus.jsonl.gz", {"_id": "d1", "title": "T", "text": "x"})
    bare = open_collection(tmp_path)
    assert (bare.queries(), bare.query_metadata(), bare.splits) == ({}, {}, ())
    write(tmp_path / "queries.jsonl", {"_id": "q1", "text": "?"}, {"_id": 2, "text": "!"})
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n2\td1\t1\n")
    (tmp_path / "qrels" / "dev.tsv.gz").write_bytes(gzip.compress(b"query-id\tcorpus-id\tscore\nq1\td1\t2\n"))
    collection = open_collection(str(tmp_path))
    assert (collection.name, collection.splits) == (tmp_path.name, ("dev", "test"))
    assert collection.queries("test") == {"2": "!"}
    assert collection.qrels("dev") == {"q1": {"d1": 2}}


def test_metadata_of_queries_stand_beside_the_text_or_under_metadata(tmp_path):
    write(tmp_path / "corpus.jsonl", {"_id": "d", "text": "x"})
    rows = (
        {"_id": "q1", "text": "?", "kind": "how", "metadata": {"kind": "why", "year": 1}},
        {"_id": 2, "text": ""},
    )
    write(tmp_path / "queries.jsonl", *rows)
    collection = open_collection(tmp_path)
    assert collection.query_metadata() == {"q1": {"kind": "how", "year": 1}}
    assert collection.queries() == {"q1": "?", "2": ""}
    write(tmp_path / "queries.jsonl", {"_id": "q", "text": "?"}, {"_id": "q", "text": "?"})
    with pytest.raises(DataError, match=r"queries\.jsonl:2: duplicate query id 'q'"):
        collection.query_metadata()


def test_a_folder_that_is_not_beir_after_all(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(DataError, match=r"no corpus\.jsonl or corpus\.jsonl\.gz in this folder"):
        list(open_collection(tmp_path, format="beir").documents())


def test_names_and_formats_that_do_not_go(tmp_path):
    with pytest.raises(DataError, match="there is no such file or folder; a source is a BEIR folder"):
        open_collection(tmp_path / "absent")
    (tmp_path / "a.exe").touch()
    with pytest.raises(DataError, match=r"unsupported file type '\.exe'"):
        open_collection(tmp_path / "a.exe")
    for source, format, message in [
        (tmp_path, "csv", "unknown format 'csv'; it must be one of beir, files"),
        (tmp_path, "pyserini", "does not apply to a folder"),
        (tmp_path / "a.exe", "beir", "does not apply to a file"),
        (tmp_path / "a.exe", "files", "does not read '.exe'"),
        ("stdlib:", "files", "stdlib: has its own format"),
    ]:
        with pytest.raises(ConfigError, match=message):
            open_collection(source, format=format)
    with pytest.raises(ConfigError, match="passage_words"):
        open_collection(tmp_path, passage_words=0)


def test_one_file_of_text(tmp_path):
    (tmp_path / "notes.md").write_text("# Title\n\nText.")
    (document,) = open_collection(tmp_path / "notes.md").documents()
    assert (document.id, document.title, document.text) == ("notes.md", "Title", "Title\n\nText.")


def test_queries_of_other_toolkits(tmp_path):
    tevatron = write(tmp_path / "q.jsonl.gz", {"query_id": 7, "query_text": "x", "positive_document_ids": []})
    assert read_queries(tevatron) == {"7": "x"}
    (tmp_path / "q.tsv").write_text("1\tone two\n")
    assert read_queries(tmp_path / "q.tsv") == {"1": "one two"}
    (tmp_path / "r.tsv").write_text("1\tone\n\ttwo\n")
    with pytest.raises(DataError, match=r"r\.tsv:2: this query's id is blank"):
        read_queries(tmp_path / "r.tsv")
    (tmp_path / "r.tsv").write_text("1\tone\n1\ttwo\n")
    with pytest.raises(DataError, match=r"r\.tsv:2: duplicate query id '1'"):
        read_queries(tmp_path / "r.tsv")
    (tmp_path / "r.tsv").write_text("1\tone\n2\n")
    with pytest.raises(DataError, match=r"r\.tsv:2: expected id and text"):
        read_queries(tmp_path / "r.tsv", ReadPolicy(malformed="skip"))
    with pytest.raises(DataError, match=r"s\.jsonl:1: a query needs _id and text or query_id"):
        read_queries(write(tmp_path / "s.jsonl", {"x": 1}))
    with pytest.raises(DataError, match=r"s\.jsonl:2: no id"):
        read_queries(write(tmp_path / "s.jsonl", {"_id": "1", "text": ""}, {"x": 1}))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = write(tmp_path / "c.jsonl", {"_id": "1", "text": "x"})
    path.chmod(0)
    with pytest.raises(DataError, match="cannot be read: Permission denied"):
        open_collection(path)


def test_importing_loads_nothing_heavy_and_errors_survive_python_O(tmp_path):
    code = (
        "import sys\n"
        "from counterpoint.data import open_collection\n"
        "heavy = {'torch', 'bs4', 'markdown_it', 'pypdf', 'ir_datasets', 'transformers'} & set(sys.modules)\n"
        "if heavy: sys.exit(f'imported {heavy}')\n"
        "from counterpoint.errors import DataError\n"
        "try: open_collection('absent')\n"
        "except DataError: pass\n"
        "else: sys.exit('no error')\n"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
