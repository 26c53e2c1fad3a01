"""Columns of tables and keys of records: named, or guessed, and told."""

import gzip
import json

import pytest

from counterpoint.data import Fields, ReadPolicy, ReadReport, items_of, open_collection
from counterpoint.errors import ConfigError, DataError


def read(path, policy=None, **named):
    report = ReadReport()
    collection = open_collection(path, fields=Fields(**named), policy=policy)
    decided = collection.decided()
    documents = list(collection.documents(report))
    assert set(decided) <= set(report.decisions) or not decided
    return documents, report


def made(tmp_path, name, text, encoding="utf-8"):
    path = tmp_path / name
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


TABLES = {
    "commas": ("t.csv", "id,title,text,year\n1,Sea,A whale,2020\n2,Rail,A train,2021\n"),
    "semicolons": ("t.csv", "id;title;text;year\n1;Sea;A whale;2020\n2;Rail;A train;2021\n"),
    "bars": ("t.csv", "id|title|text|year\n1|Sea|A whale|2020\n2|Rail|A train|2021\n"),
    "tabs in a csv": ("t.csv", "id\ttitle\ttext\tyear\n1\tSea\tA whale\t2020\n2\tRail\tA train\t2021\n"),
    "tabs": ("t.tsv", "id\ttitle\ttext\tyear\n1\tSea\tA whale\t2020\n2\tRail\tA train\t2021\n"),
    "packed": ("t.csv.gz", "id,title,text,year\n1,Sea,A whale,2020\n2,Rail,A train,2021\n"),
    "capitals": ("t.csv", "ID, Title ,TEXT,year\n1,Sea,A whale,2020\n2,Rail,A train,2021\n"),
    "another order": ("t.csv", "year,text,title,id\n2020,A whale,Sea,1\n2021,A train,Rail,2\n"),
    "blanks after": ("t.csv", "id, title, text, year\n1, Sea, A whale, 2020\n2, Rail, A train, 2021\n"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_header_is_recognised_and_the_delimiter_found(kind, tmp_path):
    documents, report = read(made(tmp_path, *TABLES[kind]))
    assert [(d.id, d.title, d.text, dict(d.metadata)) for d in documents] == [
        ("1", "Sea", "A whale", {"year": "2020"}),
        ("2", "Rail", "A train", {"year": "2021"}),
    ]
    (decided,) = report.decisions
    assert "columns id=" in decided and "(delimiter" in decided


def test_what_was_decided_is_told(tmp_path):
    path = made(tmp_path, "notes.csv", "id;title;body\n1;Öl;Größe\n", "cp1252")
    documents, report = read(path)
    assert (documents[0].title, documents[0].text) == ("Öl", "Größe")
    assert report.decisions == [
        f"{path}: columns id='id', title='title', text='body' (delimiter ';', cp1252)"
    ]
    assert report.encodings == {"cp1252": 1}


def test_commas_in_a_text_do_not_mislead_the_sniffer(tmp_path):
    rows = "".join(f"{n};one, two, three, and {n}\n" for n in range(20))
    documents, _ = read(made(tmp_path, "t.csv", "id;text\n" + rows))
    assert documents[3].text == "one, two, three, and 3"
    documents, _ = read(made(tmp_path, "t.csv", "id;text, in short\n" + rows))
    assert documents[3].metadata["text, in short"] == "one, two, three, and 3"


def test_named_columns_count_more_than_usual_names(tmp_path):
    path = made(tmp_path, "t.csv", "id,key,text,note,year\n1,a,wrong,right,2020\n")
    ((document,), _) = read(path, id="key", text="note", metadata=("year",))
    assert (document.id, document.text, document.metadata) == ("a", "right", {"year": "2020"})
    ((document,), _) = read(path, metadata=())
    assert document.metadata == {}
    for named, message in [
        ({"text": "body"}, r"t\.csv:1: no column 'body' for the text; there are 'id', 'key', .*--text"),
        ({"metadata": ("age",)}, r"no column 'age' for the metadata"),
    ]:
        with pytest.raises(DataError, match=message):
            read(path, **named)


NESTED = [
    {"_id": "a", "title": "Sea", "text": "A whale.", "draft": True, "metadata": {"year": 2020, "lang": "en"}},
    {"_id": "b", "text": "A train.", "metadata": {"year": 2021}},
]


@pytest.mark.parametrize("source", ["folder", "jsonl", "json", "named", "items"])
def test_metadata_to_keep_may_be_inside_metadata(source, tmp_path):
    kept = Fields("_id" if source == "named" else None, metadata=("year", "lang", "draft"))
    if source == "items":
        found = items_of(NESTED[:1], kept)  # every item must have what is named
    else:
        lines = "".join(json.dumps(record) + "\n" for record in NESTED)
        whole = source == "json"
        name = {"folder": "corpus.jsonl", "json": "docs.json"}.get(source, "docs.jsonl")
        (tmp_path / name).write_text(json.dumps(NESTED) if whole else lines)
        found = open_collection(tmp_path if source == "folder" else tmp_path / name, fields=kept)
    first, *others = [(one.id, one.metadata) for one in found.documents()]
    assert first == ("a", {"year": 2020, "lang": "en", "draft": True})
    assert source == "items" or others == [("b", {"year": 2021, "lang": None, "draft": None})]


@pytest.mark.parametrize("folder", [True, False])
def test_metadata_to_keep_that_no_record_has(folder, tmp_path):
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in NESTED))
    found = open_collection(tmp_path if folder else path, fields=Fields(metadata=("yaer",)))
    with pytest.raises(DataError, match=r"corpus.jsonl: no field 'yaer' for the metadata; .*'year'"):
        found.decided()
    with pytest.raises(ConfigError, match="has its own fields"):
        open_collection(tmp_path, fields=Fields(text="body", metadata=("year",)))


def test_passages_keep_their_document(tmp_path):
    record = {"_id": "a-1", "text": "A whale.", "parent": "a", "start": 9, "metadata": {"year": 2020, "x": 1}}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(record))
    (found,) = open_collection(tmp_path, fields=Fields(metadata=("year",))).documents()
    assert (found.parent, found.start, found.metadata) == ("a", 9, {"year": 2020})


def test_without_a_text_column_all_columns_are_the_text(tmp_path):
    documents, report = read(made(tmp_path, "prices.csv", "name,price\nFlour,2\nSalt,1\n"))
    assert [(d.id, d.title, d.text) for d in documents] == [
        ("prices.csv:2", "Flour", "name: Flour\nprice: 2"),
        ("prices.csv:3", "Salt", "name: Salt\nprice: 1"),
    ]
    assert "title='name', text=all of them; ids are line numbers" in report.decisions[0]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("country,2019,2020\nChad,1,2\n", ["country: Chad\n2019: 1\n2020: 2"]),
        ("sentence\nA whale.\n", ["A whale."]),
        ("1,A whale\n2,A train\n", ["column 1: 1\ncolumn 2: A whale", "column 1: 2\ncolumn 2: A train"]),
        ("A whale is a mammal.\nA train leaves.\n", ["A whale is a mammal.", "A train leaves."]),
        ("", []),
        ("id,text\n", []),
    ],
)
def test_a_header_never_becomes_a_document_and_a_row_never_a_header(text, texts, tmp_path):
    documents, _ = read(made(tmp_path, "t.csv", text))
    assert [d.text for d in documents] == texts


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("1\tone text\n2\ttwo texts\n", ["1", "2"]),  # MS MARCO
        ("d1\ttext\nd2\tbody of it\n", ["t.tsv:2"]),
        ("id\ttext\ttitle\n1\ta\tb\n", ["1"]),  # ColBERT
        ("docid\tbody\n7\ta whale\n", ["7"]),
        ("key\tquestion\n17\twhere do whales live\n18\twhere do trains go\n", ["t.tsv:2", "t.tsv:3"]),
        ("a\tb c\nd\te f\n", ["a", "d"]),
    ],
)
def test_tab_separated_files_with_and_without_header(text, ids, tmp_path):
    assert [d.id for d in read(made(tmp_path, "t.tsv", text))[0]] == ids


def test_tab_separated_files_of_a_folder(tmp_path):
    made(tmp_path, "header.tsv", "Country\tCapital\nFrance\tParis\n")
    made(tmp_path, "none.tsv", "7\tA whale\tSea\n")
    documents, _ = read(tmp_path)
    assert [(d.id, d.title, d.text) for d in documents] == [
        ("header.tsv:2", "", "Country: France\nCapital: Paris"),
        ("none.tsv:7", "Sea", "A whale"),
    ]


def test_ids_of_a_table_given_by_itself_are_strict(tmp_path):
    with pytest.raises(DataError, match=r"t\.csv:3: duplicate id '1'"):
        read(made(tmp_path, "t.csv", "id,text\n1,a\n1,b\n"))
    with pytest.raises(DataError, match=r"t\.csv:2: this document's id is blank"):
        read(made(tmp_path, "t.csv", "id,text\n,a\n"))
    with pytest.raises(DataError, match=r"t\.csv:3: the header names 2 columns, this row has 3"):
        read(made(tmp_path, "t.csv", "id,text\n1,a\n2,b,c\n"))
    documents, report = read(tmp_path / "t.csv", ReadPolicy.lenient())
    assert [d.id for d in documents] == ["1"] and report.skipped == 1


def test_an_unterminated_quote(tmp_path):
    path = made(tmp_path, "t.csv", 'id,text\n1,"a\n' + "2,b\n" * 10)
    with pytest.raises(DataError, match=r"t\.csv:2: not a valid table: unexpected end of data"):
        read(path)
    path = made(tmp_path, "t.csv", 'id,text\n0,x\n1,"' + "y\n" * 300)
    with pytest.raises(DataError, match=r"t\.csv:3: "):
        read(path, ReadPolicy(max_characters=100))


def test_long_cells_are_read(tmp_path):
    documents, _ = read(made(tmp_path, "t.csv", "id,text\n1," + "x" * 300_000 + "\n"))
    assert len(documents[0].text) == 300_000


JSONS = {
    "a list of objects": [{"id": 1, "title": "T", "body": "x"}, {"id": 2, "title": "", "body": "y"}],
    "a list in an object": {"version": 3, "documents": [{"id": "1", "title": "T", "body": "x"},
                                                        {"id": "2", "body": "y"}]},
    "an object of columns": {"id": [1, 2], "title": ["T", None], "body": ["x", "y"]},
    "an object of objects": {"1": {"title": "T", "body": "x"}, "2": {"body": "y"}},
}  # fmt: skip


@pytest.mark.parametrize("kind", JSONS)
@pytest.mark.parametrize("name", ["d.json", "d.json.gz"])
def test_json_in_the_usual_shapes(kind, name, tmp_path):
    documents, report = read(made(tmp_path, name, json.dumps(JSONS[kind], indent=2)))
    assert [(d.id, d.title, d.text) for d in documents] == [("1", "T", "x"), ("2", "", "y")]
    assert "fields id='id', title='title', text='body'" in report.decisions[-1]


def test_json_of_strings_of_one_object_and_of_settings(tmp_path):
    documents, _ = read(made(tmp_path, "d.json", '["one", "two"]'))
    assert [(d.id, d.text) for d in documents] == [("d.json:1", "one"), ("d.json:2", "two")]
    documents, _ = read(made(tmp_path, "d.json", '{"text": "all of it", "year": 3}'))
    assert [(d.text, d.metadata) for d in documents] == [("all of it", {"year": 3})]
    settings = '{"name": "x", "options": {"a": [1, 2]}}'
    documents, _ = read(made(tmp_path, "d.json", settings))
    assert [(d.id, d.title, d.text) for d in documents] == [("d.json", "d.json", settings)]


def test_json_lines_in_a_json_file(tmp_path):
    documents, report = read(made(tmp_path, "d.json", '{"id": 1, "text": "a"}\n{"id": 2, "text": "b"}\n'))
    assert [d.id for d in documents] == ["1", "2"]
    assert "read as JSON Lines" in report.decisions[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{]", "not valid JSON"),
        ("", "not valid JSON"),
        ('[{"a": 1}]', "no field is called text or contents .* there are 'a'. Name the field of the text"),
        ('[{"text": "x"}, 3]', "item 2: expected an object or a string, found int"),
        ('[{"text": "x"}, {"a": 1}]', "no 'text' among 'a'"),
        ('[{"text": ["x"]}]', "'text' must be a text, found list"),
        ("[" * 2000 + "]" * 2000, "not valid JSON|nested"),
        ('[{"text": "x", "n": NaN}]', "NaN is not JSON"),
    ],
)
def test_json_that_cannot_be_read(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read(made(tmp_path, "d.json", text))


def test_json_lines_with_fields_of_their_own(tmp_path):
    path = made(tmp_path, "d.jsonl", '{"url": "u", "headline": "H", "body": "b"}\n{"body": "c"}\n')
    documents, report = read(path)
    assert [(d.id, d.title, d.text) for d in documents] == [("d.jsonl:1", "H", "b"), ("d.jsonl:2", "", "c")]
    assert "fields title='headline', text='body'; ids are line numbers" in report.decisions[0]
    documents, _ = read(
        made(tmp_path, "d.ndjson", '{"k": 1, "q": "a"}\n{"k": 2, "q": "b"}\n'), id="k", text="q"
    )
    assert [(d.id, d.text) for d in documents] == [("1", "a"), ("2", "b")]
    with pytest.raises(DataError, match=r"no field 'z' for the text; there are 'k', 'q'"):
        read(tmp_path / "d.ndjson", text="z")
    ((document,), _) = read(
        made(tmp_path, "e.jsonl", '{"_id": "1", "text": "t", "summary": "s"}\n'), text="summary"
    )
    assert (document.id, document.text, document.metadata) == ("1", "s", {"text": "t"})


def test_fields_and_patterns_where_they_mean_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "corpus.jsonl").write_text('{"_id": "1", "text": "x"}\n')
    for source in (tmp_path / "a.txt", tmp_path / "b", "stdlib:json"):
        with pytest.raises(ConfigError, match="name fields of CSV, TSV, JSON and JSON Lines; "):
            open_collection(source, fields=Fields(text="x"))


def test_fields_hold_for_every_table_of_a_folder(tmp_path):
    made(tmp_path, "a.csv", "key,note\n1,one\n")
    made(tmp_path, "b.jsonl", '{"key": 2, "note": "two"}\n')
    made(tmp_path, "c.csv", "other\nx\n")
    documents, report = read(tmp_path, id="key", text="note")
    assert [(d.id, d.text) for d in documents] == [("a.csv:1", "one"), ("b.jsonl:2", "two")]
    assert report.unreadable == 1 and "c.csv:1: no column 'key' for the id" in report.not_read[0]
