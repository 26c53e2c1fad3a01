"""Encodings: told by a mark, by the bytes, or not at all; and what is no text."""

import codecs
import gzip
import os

import pytest
import zstandard

from counterpoint.data import ReadPolicy, ReadReport, open_collection
from counterpoint.data.charsets import charset_of
from counterpoint.errors import DataError

TEXTS = {
    "cp1252": "Voilà un café, s'il vous plaît – l'été est passé.",
    "latin-1": "El niño comió piña mañana por la mañana.",
    "cp1250": "Zażółć gęślą jaźń, proszę bardzo.",
    "cp1251": "Привет, как дела? Это текст на русском языке.",
    "koi8-r": "Привет, как дела? Это текст на русском языке, довольно длинный.",
    "cp1253": "Καλημέρα κόσμε, τι κάνεις σήμερα;",
    "shift_jis": "日本語のテキストです。エンコーディングを判定します。",
    "gb18030": "这是一个中文文本，用来测试编码检测。",
    "euc_kr": "안녕하세요 세계, 오늘은 날씨가 좋습니다",
}


def read(path, **policy):
    report = ReadReport()
    collection = open_collection(path, policy=ReadPolicy(**policy), passage_words=None)
    return list(collection.documents(report)), report


@pytest.mark.parametrize("encoding", TEXTS)
def test_a_text_in_another_encoding(encoding, tmp_path):
    (tmp_path / "a.txt").write_bytes(TEXTS[encoding].encode(encoding))
    ((document,), report) = read(tmp_path / "a.txt")
    assert document.text == TEXTS[encoding] and "\ufffd" not in document.text
    assert sum(report.encodings.values()) == 1 and "read as" in report.decisions[0]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be", "utf-8-sig"])
@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl", "md", "html", "tsv"])
def test_byte_order_marks(encoding, kind, tmp_path):
    marks = {
        "utf-16-le": codecs.BOM_UTF16_LE,
        "utf-16-be": codecs.BOM_UTF16_BE,
        "utf-32-be": codecs.BOM_UTF32_BE,
    }
    text = {
        "csv": "id,text\r\n1,größe 東京\r\n",
        "jsonl": '{"id": 1, "text": "größe 東京"}\r\n',
        "html": "<meta charset=latin-1><p>größe 東京",
        "tsv": "1\tgröße 東京\n",
    }.get(kind, "größe 東京")
    path = tmp_path / f"a.{kind}"
    path.write_bytes(marks.get(encoding, b"") + text.encode(encoding))
    ((document,), _) = read(path)
    assert document.text.strip() == "größe 東京"


def test_utf8_comes_first(tmp_path):
    for text in ("größe", "東京", "Ã© is how UTF-8 looks as Latin-1", "x" * 300_000 + "é" * 10):
        (tmp_path / "a.txt").write_text(text, encoding="utf-8")
        ((document,), report) = read(tmp_path / "a.txt")
        assert document.text == text and report.encodings == {}


def test_an_accent_far_into_a_file(tmp_path):
    rows = "".join(f"{n},plain text\n" for n in range(50_000))
    (tmp_path / "a.csv").write_bytes(f"id,text\n{rows}z,Ça y est déjà\n".encode("cp1252"))
    documents, report = read(tmp_path / "a.csv")
    assert documents[-1].text == "Ça y est déjà" and report.encodings == {"cp1252": 1}


@pytest.mark.parametrize(
    "damaged", ["größer".encode() + b"\xff", ("é" * 50).encode()[:-1], b"plain " + b"\xc3"]
)
def test_damaged_utf8_is_not_taken_for_another_encoding(damaged, tmp_path):
    (tmp_path / "a.txt").write_bytes(damaged)
    with pytest.raises(DataError, match=r"a\.txt:1: byte 0x.. at offset \d+ is not UTF-8; convert"):
        read(tmp_path / "a.txt")
    ((document,), report) = read(tmp_path / "a.txt", encoding="replace")
    assert document.text.endswith("\ufffd") and report.replaced == 1


@pytest.mark.parametrize(
    "content",
    [
        b"\0" * 1000,
        bytes(range(256)) * 40,
        b"text\0",
        b"\x89PNG\r\n\x1a\n\0\0",
        "ohne Marke".encode("utf-16-le"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.py", "a.csv", "a.md", "a.html", "README", "a"])
def test_what_is_no_text_is_refused(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    for policy in ({}, {"encoding": "replace"}):
        with pytest.raises(DataError, match=r"has NUL bytes, so it is not text"):
            read(tmp_path / name, **policy)
    (tmp_path / "b.txt").write_text("b")
    if name != "a":  # of no known kind, in a folder
        documents, report = read(tmp_path)
        assert [d.id for d in documents] == ["b.txt"] and report.unreadable == 1


def test_noise_without_nul_bytes_is_refused(tmp_path):
    (tmp_path / "a.txt").write_bytes(os.urandom(20_000).replace(b"\0", b"\x81"))
    with pytest.raises(DataError, match="is not UTF-8"):
        read(tmp_path / "a.txt")


def test_a_page_that_says_utf8_and_is_not(tmp_path):
    (tmp_path / "a.html").write_bytes("<meta charset='utf-8'><p>Voilà un café".encode("cp1252"))
    assert read(tmp_path / "a.html")[0][0].text == "Voilà un café"


@pytest.mark.parametrize("pack", ["gz", "zst"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("a.txt", "größe"), ("a.csv", "id,text\n1,größe\n"), ("a.jsonl", '{"id": 1, "text": "größe"}\n'),
     ("a.md", "größe"), ("a.tsv", "1\tgröße\n"), ("a.json", '["größe"]'), ("README", "größe")],
)  # fmt: skip
def test_packed_files(name, text, pack, tmp_path):
    packed = {"gz": gzip.compress, "zst": zstandard.compress}[pack]
    (tmp_path / f"{name}.{pack}").write_bytes(packed(text.encode()))
    assert [d.text for d in read(tmp_path / f"{name}.{pack}")[0]] == ["größe"]
    assert [d.text for d in read(tmp_path)[0]] == ["größe"]


def test_zstandard_frames_one_after_the_other_and_damaged_ones(tmp_path):
    whole = zstandard.compress(b'{"id": 1, "text": "a"}\n' * 1)
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(whole + zstandard.compress(b'{"id": 2, "text": "b"}\n'))
    assert [d.id for d in read(path)[0]] == ["1", "2"]
    rows = "".join(f'{{"id": {n}, "text": "{os.urandom(40).hex()}"}}\n' for n in range(2000)).encode()
    packed = zstandard.compress(rows)
    path.write_bytes(packed)
    assert len(read(path)[0]) == 2000
    for damaged in (packed[:-10], packed[:1000], b"no such thing"):
        path.write_bytes(damaged)
        with pytest.raises(DataError, match=r"the Zstandard data are damaged or cut short .*copy it again"):
            read(path)
    path.write_bytes(b"")
    assert read(path)[0] == []


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
def test_bombs(pack, tmp_path):
    ending = "gz" if pack is gzip.compress else "zst"
    for name, content, message in [
        ("a.txt", b" " * 200_000_000, "a text of more than 10,000,000 characters"),
        ("a.csv", b"\n" * 50_000_000, "blank"),
        ("a.csv", b"x" * 200_000_000, "longer than 121,048,576"),
        ("a.json", b"[" * 100_000_000, "JSON"),
    ]:
        path = tmp_path / f"{name}.{ending}"
        path.write_bytes(pack(content))
        with pytest.raises(DataError, match=message):
            read(path)
        path.unlink()


def test_blocks_that_part_a_character():
    data = ("é" * 100).encode()
    assert charset_of([data[:51], data[51:]]) == "utf-8"
    assert charset_of([b"", b"plain"]) == "utf-8"
