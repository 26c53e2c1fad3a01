import io
import os
import sys

import pytest

from counterpoint.data import ReadPolicy, ReadReport, open_collection
from counterpoint.errors import DataError, MissingExtraError


def read(root, *, passage_words=150, files="error", **policy):
    """By default strictly, though a folder is not."""
    report = ReadReport()
    policy["files"] = files
    collection = open_collection(root, policy=ReadPolicy(**policy), passage_words=passage_words)
    return list(collection.documents(report)), report


def pdf_bytes(*pages):
    """A PDF with one line of text a page, made by hand: no writer of ours or pypdf's draws text."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        content = f"BT /F1 12 Tf 72 700 Td ({text}) Tj ET" if text else ""
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {5 + 2 * number} 0 R "
            "/Resources << /Font << /F1 3 0 R >> >> >>"
        )
        objects.append(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
    file, places = io.BytesIO(), []
    file.write(b"%PDF-1.4\n")
    for number, body in enumerate(objects, 1):
        places.append(file.tell())
        file.write(f"{number} 0 obj\n{body}\nendobj\n".encode())
    start = file.tell()
    file.write(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode())
    file.write("".join(f"{place:010} 00000 n \n" for place in places).encode())
    file.write(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())
    return file.getvalue()


def test_a_folder_of_many_kinds(tmp_path):
    root = tmp_path / "docs"
    (root / "b").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / ".hidden" / "x.txt").write_text("no")
    (root / "a.txt").write_text("Plain\r\ntext.")
    (root / "b" / "page.HTML").write_bytes(
        "<meta charset=latin-1><title>Café</title><p>Voilà".encode("latin-1")
    )
    (root / "c.md").write_text("# Guide\n\nRead it.")
    (root / "d.rst").write_text("Start\n=====\n\nHere.")
    (root / "program.exe").write_bytes(b"\0\1")
    documents, report = read(root)
    assert [(d.id, d.title, d.text) for d in documents] == [
        ("a.txt", "a", "Plain\ntext."),
        ("b/page.HTML", "Café", "Voilà"),
        ("c.md", "Guide", "Guide\n\nRead it."),
        ("d.rst", "Start", "Start\n=====\n\nHere."),
    ]
    assert documents[1].metadata == {"file": "b/page.HTML"}
    assert (report.files, report.documents, report.other_files) == (4, 4, {".exe": 1})
    assert report.left_out == {"hidden": 1}
    assert report.kinds == {".txt": 1, ".html": 1, ".md": 1, ".rst": 1}
    assert report.notes == []
    assert report.summary() == "4 documents, 1 file not read (.exe)"


def test_long_files_become_passages_of_their_sections(tmp_path):
    (tmp_path / "g.md").write_text(
        "# Guide\n\n" + "Read it now. " * 30 + "\n\n## End\n\n" + "Stop here. " * 30
    )
    documents, _ = read(tmp_path, passage_words=60)
    (whole,), _ = read(tmp_path, passage_words=None)
    assert [(d.id, d.title) for d in documents] == [
        ("g.md#1", "Guide"),
        ("g.md#2", "Guide"),
        ("g.md#3", "Guide: End"),
        ("g.md#4", "Guide: End"),
    ]
    assert all(d.parent == "g.md" and whole.text[d.start :].startswith(d.text) for d in documents)
    assert documents[3].metadata == {"file": "g.md", "section": "End"}


def test_tables(tmp_path):
    (tmp_path / "t.csv").write_bytes(
        b'\xef\xbb\xbfTitle,Note,Year\r\nOne,"two\nlines, quoted",\r\n\r\nTwo,x,7\r\n'
    )
    (tmp_path / "t.tsv").write_text("a\tb\n1\t2\n")
    documents, _ = read(tmp_path)
    assert [(d.id, d.title, d.text) for d in documents] == [
        ("t.csv:2", "One", "Title: One\nNote: two\nlines, quoted"),
        ("t.csv:5", "Two", "Title: Two\nNote: x\nYear: 7"),
        ("t.tsv:2", "", "a: 1\nb: 2"),
    ]
    assert documents[1].metadata == {"Title": "Two", "Note": "x", "Year": "7", "file": "t.csv"}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("1,2,3", "the header names 2 columns, this row has 3"),
        ("1", "the header names 2 columns, this row has 1"),
        ('"1"x,2', "not a valid table: .*expected after"),
    ],
)
def test_malformed_rows(tmp_path, row, message):
    (tmp_path / "t.csv").write_text(f"a,b\n{row}\n3,4\n")
    with pytest.raises(DataError, match=rf"t\.csv:2: {message}"):
        read(tmp_path)
    documents, report = read(tmp_path, malformed="skip")
    assert ([d.id for d in documents], report.skipped) == (["t.csv:3"], 1)


def test_records(tmp_path):
    (tmp_path / "known.jsonl").write_text(
        '{"id": 1, "contents": "x", "u": 2}\n{"id": 2}\n{"id": " ", "contents": ""}\n'
    )
    (tmp_path / "own.jsonl").write_text('{"name": "N", "n": 1, "empty": null}\n')
    with pytest.raises(DataError, match=r"known\.jsonl:2: no 'contents'"):
        read(tmp_path)
    documents, report = read(tmp_path, malformed="skip")
    assert [(d.id, d.title, d.text, dict(d.metadata)) for d in documents] == [
        ("known.jsonl:1", "", "x", {"u": 2, "file": "known.jsonl"}),
        ("own.jsonl:1", "N", "name: N\nn: 1", {"name": "N", "n": 1, "empty": None, "file": "own.jsonl"}),
    ]
    assert report.skipped == 2


def test_broken_utf8_in_a_file(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xc3\xa9n\ntwo \xff\n")
    with pytest.raises(DataError, match=r"a\.txt:2: byte 0xff at offset 8 is not UTF-8"):
        read(tmp_path)
    documents, report = read(tmp_path, encoding="replace")
    assert (documents[0].text, report.replaced) == ("én\ntwo \ufffd\n", 1)


def test_a_character_cut_off_at_the_end_of_the_file(tmp_path):
    (tmp_path / "a.txt").write_bytes("é".encode()[:1])
    with pytest.raises(DataError, match=r"a\.txt:1: byte 0xc3 at offset 0"):
        read(tmp_path)


def test_a_page_in_an_encoding_that_nobody_knows_is_read_as_utf8(tmp_path):
    (tmp_path / "a.html").write_text("<meta charset='martian'>é", encoding="utf-8")
    assert read(tmp_path)[0][0].text == "é"


def test_long_files(tmp_path):
    (tmp_path / "a.txt").write_text("é" * 50, encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: a text of more than 9 characters"):
        read(tmp_path, max_characters=9)
    documents, report = read(tmp_path, max_characters=9, too_long="truncate")
    assert (documents[0].text, report.truncated) == ("é" * 9, 1)


def test_links_are_followed_once_and_loops_end(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("x")
    for link, target in [("a/up", tmp_path), ("b", tmp_path / "a"), ("broken.txt", tmp_path / "none")]:
        try:
            os.symlink(target, tmp_path / link)
        except OSError:
            pytest.skip("this system makes no links")
    documents, report = read(tmp_path)
    assert [d.id for d in documents] == ["a/x.txt"]
    assert report.left_out == {"folder met before": 2}
    assert report.not_read == [f"{tmp_path / 'broken.txt'}: a broken link, or not an ordinary file"]


def test_an_empty_folder_and_empty_files(tmp_path):
    assert read(tmp_path)[0] == []
    for name in ("a.txt", "b.md", "c.html", "d.csv", "e.jsonl", "f.rst"):
        (tmp_path / name).touch()
    documents, report = read(tmp_path)
    assert [d.id for d in documents] == ["a.txt", "b.md", "c.html", "f.rst"]
    assert (report.files, report.empty) == (6, 0)  # a file's name is a title, so none of these is empty


def test_pdf_pages(tmp_path):
    pytest.importorskip("pypdf")
    (tmp_path / "p.pdf").write_bytes(pdf_bytes("First page.", "", "Third page."))
    documents, report = read(tmp_path)
    assert [(d.id, d.title, d.text, d.metadata["page"]) for d in documents] == [
        ("p.pdf:1", "p", "First page.", 1),
        ("p.pdf:2", "p", "", 2),
        ("p.pdf:3", "p", "Third page.", 3),
    ]
    assert report.files == 1


@pytest.mark.parametrize("damage", [b"", b"%PDF-1.4\nnothing", pdf_bytes("x")[:150], b"\0" * 5000])
def test_damaged_pdf(tmp_path, damage):
    pytest.importorskip("pypdf")
    (tmp_path / "p.pdf").write_bytes(damage)
    with pytest.raises(DataError, match=r"p\.pdf: this PDF cannot be read at its beginning .*repair it"):
        read(tmp_path)
    documents, report = read(tmp_path, files="skip")
    assert (documents, report.skipped, report.unreadable) == ([], 0, 1)
    assert "p.pdf: this PDF cannot be read" in report.not_read[0]


def test_pdf_without_its_extra(tmp_path, monkeypatch):
    (tmp_path / "p.pdf").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[pdf\]'"):
        read(tmp_path)
    _, report = read(tmp_path, files="skip")
    assert report.unreadable == 1 and "[pdf]" in report.not_read[0]


def test_column_names(tmp_path):
    (tmp_path / "t.csv").write_text("a,\n1,2\n")
    assert read(tmp_path)[0][0].metadata == {"a": "1", "column 2": "2", "file": "t.csv"}
    (tmp_path / "t.csv").write_text("a, a\n1,2\n")
    with pytest.raises(DataError, match=r"t\.csv:1: two columns are named 'a'"):
        read(tmp_path)
