"""Files of other programs, source code, names without endings."""

import json
import sys
import zipfile

import pytest

from counterpoint.data import ReadPolicy, ReadReport, open_collection
from counterpoint.errors import DataError, MissingExtraError


def read(path, passage_words=None, **policy):
    report = ReadReport()
    collection = open_collection(path, passage_words=passage_words, policy=ReadPolicy(**policy))
    return list(collection.documents(report)), report


def save_docx(path, title=""):
    docx = pytest.importorskip("docx")
    made = docx.Document()
    made.core_properties.title = title
    made.add_heading("Whales", level=1)
    made.add_paragraph("A whale is a mammal – größer als 東京.")
    table = made.add_table(2, 2)
    for at, text in enumerate(("kind", "length", "blue", "30 m")):
        table.cell(at // 2, at % 2).text = text
    made.add_heading("Trains", level=2)
    made.add_paragraph("Trains leave from platform nine.")
    made.save(str(path))


def test_docx(tmp_path):
    save_docx(tmp_path / "a.docx", "On whales")
    ((document,), report) = read(tmp_path / "a.docx")
    assert document.text == (
        "Whales\n\nA whale is a mammal – größer als 東京.\n\nkind | length\nblue | 30 m\n\nTrains\n\n"
        "Trains leave from platform nine."
    )
    assert document.title == "On whales" and document.id == "a.docx"
    headings = document.metadata["headings"]
    assert [document.text[at:].split("\n")[0] for at, _ in headings] == ["Whales", "Trains"]
    assert report.kinds == {".docx": 1}
    passages, _ = read(tmp_path / "a.docx", passage_words=12)
    assert passages[-1].title == "On whales: Trains" and passages[-1].parent == "a.docx"


def test_docx_without_title_or_heading(tmp_path):
    docx = pytest.importorskip("docx")
    made = docx.Document()
    made.save(str(tmp_path / "empty.docx"))
    ((document,), _) = read(tmp_path / "empty.docx")
    assert (document.title, document.text) == ("empty", "")


@pytest.mark.parametrize("damage", ["garbage", "cut", "not word", "empty"])
def test_damaged_docx(damage, tmp_path):
    path = tmp_path / "a.docx"
    save_docx(path)
    data = path.read_bytes()
    if damage == "not word":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "x")
    else:
        path.write_bytes({"garbage": b"garbage", "cut": data[: len(data) // 2], "empty": b""}[damage])
    with pytest.raises(
        DataError, match=r"a\.docx: (this is not a \.docx file|this \.docx cannot be read) .*(save|repair)"
    ):
        read(path)
    (tmp_path / "b.txt").write_text("b")
    documents, report = read(tmp_path)
    assert [d.id for d in documents] == ["b.txt"] and report.unreadable == 1


def test_a_docx_that_is_a_bomb(tmp_path):
    save_docx(tmp_path / "a.docx")
    with zipfile.ZipFile(tmp_path / "a.docx", "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", b" " * 100_000_000)
    assert (tmp_path / "a.docx").stat().st_size < 300_000
    with pytest.raises(DataError, match=r"unpacks to 100,\d+,\d+ bytes, more than .* of text"):
        read(tmp_path / "a.docx")


def test_docx_without_its_extra(tmp_path, monkeypatch):
    (tmp_path / "a.docx").write_bytes(b"x")
    monkeypatch.setitem(sys.modules, "docx", None)
    with pytest.raises(MissingExtraError, match=r"python-docx.*pip install .*\[docx\]"):
        read(tmp_path / "a.docx")
    documents, report = read(tmp_path)
    assert not documents and "[docx]" in report.not_read[0]


def notebook(*cells):
    return {"nbformat": 4, "cells": [{"cell_type": kind, "source": source} for kind, source in cells]}


def test_notebooks(tmp_path):
    path = tmp_path / "a.ipynb"
    cells = notebook(
        ("markdown", ["# Whales\n", "They *swim*.\n"]),
        ("code", "x = 1\nprint(x)"),
        ("markdown", "## End\n\nDone."),
        ("code", []),
        ("unknown", "left out"),
    )
    cells["cells"][1]["outputs"] = [{"text": "not read"}]
    path.write_text(json.dumps(cells))
    ((document,), report) = read(path)
    assert document.text == "Whales\n\nThey swim.\n\nx = 1\nprint(x)\n\nEnd\n\nDone."
    assert document.title == "Whales" and report.kinds == {".ipynb": 1}
    assert [document.text[at : at + 3] for at, _ in document.metadata["headings"]] == ["Wha", "End"]


def test_an_old_notebook(tmp_path):
    sheet = {"cells": [{"cell_type": "markdown", "source": "Old"}, {"cell_type": "code", "input": "x = 1"}]}
    (tmp_path / "a.ipynb").write_text(json.dumps({"nbformat": 3, "worksheets": [sheet]}))
    assert read(tmp_path / "a.ipynb")[0][0].text == "Old\n\nx = 1"


@pytest.mark.parametrize(
    "content",
    [
        "{}",
        "[]",
        "x",
        "",
        '{"cells": 3}',
        '{"cells": [3]}',
        '{"worksheets": [{}]}',
        '{"worksheets": [{"cells": 1}]}',
    ],
)
def test_what_is_no_notebook(content, tmp_path):
    (tmp_path / "a.ipynb").write_text(content)
    with pytest.raises(DataError, match=r"a\.ipynb: (this is not a notebook|this notebook|not valid JSON)"):
        read(tmp_path / "a.ipynb")


CODE = ["a.py", "a.js", "a.ts", "a.go", "a.rs", "a.java", "a.c", "a.h", "a.cpp", "a.rb", "a.sh", "a.toml"]
CODE += [
    "a.yaml",
    "a.ini",
    "a.SQL",
    "README",
    "LICENSE",
    "Makefile",
    "readme.old",
    "CHANGES-1.0",
    "Dockerfile",
]


@pytest.mark.parametrize("name", CODE)
def test_code_and_names_without_endings(name, tmp_path):
    (tmp_path / name).write_text("# größe\n\tx = 1\n", encoding="utf-8")
    for source in (tmp_path, tmp_path / name):
        ((document,), _) = read(source)
        assert (document.id, document.title, document.text) == (name, name, "# größe\n\tx = 1\n")


def test_a_file_of_no_known_name(tmp_path):
    (tmp_path / "notes").write_text("some notes")
    assert read(tmp_path)[0] == [] and read(tmp_path)[1].other_files == {"no ending": 1}
    ((document,), _) = read(tmp_path / "notes")
    assert document.text == "some notes"
    (tmp_path / "a.exe").write_text("x")
    with pytest.raises(DataError, match=r"unsupported file type '\.exe'; a source is a BEIR folder"):
        read(tmp_path / "a.exe")
