"""Collections that are broken or made to break something: refused with a message, or read."""

import json

import pytest
from tests.cli.hostile import survives

GOOD = '{"_id": "good", "title": "T", "text": "a brown fox"}'
HUGE = "9" * 5000


def line(**changes):
    """One line of a corpus with some fields replaced by the JSON given."""
    fields = {"_id": '"a"', "title": '"T"', "text": '"a fox"', **changes}
    return "{" + ", ".join(f'"{key}": {value}' for key, value in fields.items()) + "}"


VALUES = {
    "null": "null",
    "true": "true",
    "integer": "7",
    "negative": "-1",
    "float": "1.5",
    "1e999": "1e999",
    "-0": "-0",
    "NaN": "NaN",
    "Infinity": "-Infinity",
    "2 to the 63": "9223372036854775808",
    "2 to the 64": "18446744073709551616",
    "5,000 digits": HUGE,
    "4,000 digits": HUGE[:4000],
    "list": "[1, 2]",
    "object": '{"a": 1}',
    "nested 100,000": "[" * 100_000,
    "nested 900": "[" * 900 + "]" * 900,
    "objects nested 900": '{"a":' * 900 + "1" + "}" * 900,
    "nested 330": "[" * 330 + "]" * 330,
    "empty": '""',
    "blank": '" \\t\\u3000"',
    "NUL": '"a\\u0000b"',
    "line breaks": '"a\\r\\n\\u2028b\\u0085"',
    "tab": '"a\\tb"',
    "escape": '"\\u001b]52;c;eA==\\u0007"',
    "lone surrogate": '"\\ud800"',
    "low surrogate": '"x\\udfffy"',
    "pair": '"\\ud83d\\ude00"',
    "not a character": '"\\uffff"',
    "bidirectional": '"\\u202eabc"',
    "combining": '"' + "a" + "\\u0301" * 5000 + '"',
    "long": '"' + "x" * 1_000_000 + '"',
    "one word": '"' + "y" * 100_000 + ' z"',
    "deep html": '"' + "<div>" * 5000 + '"',
    "path": '"../../../etc/passwd"',
    "surrogate in a list": '["\\ud800", {"\\udc00": ["\\ud800"]}]',
    "surrogate in a key": '{"\\ud800": 1}',
}

CORPORA = {
    f"{field}: {name}": line(**{field: value})
    for field in ("_id", "title", "text", "metadata", "parent", "start", "extra")
    for name, value in VALUES.items()
}
CORPORA |= {
    f"start: {name}": line(parent='"p"', start=value)
    for name, value in {
        "2 to the 63": "9223372036854775808",
        "2 to the 63, negative": "-9223372036854775809",
        "just in": "9223372036854775807",
        "4,000 digits": HUGE[:4000],
        "negative": "-1",
        "float": "1.0",
        "bool": "true",
    }.items()
}
CORPORA |= {
    "parent: lone surrogate": line(parent='"\\ud800"', start="1"),
    "key: lone surrogate": line(**{"\\ud800": "1"}),
    "key: twice": '{"_id": "a", "_id": "b", "text": "x", "text": 3}',
    "key: empty": line(**{"": "1"}),
    "key: file": line(file="1"),
    "key: long": line(**{"k" * 100_000: "1"}),
    "keys: 10,000": line(**{f"k{i}": "1" for i in range(10_000)}),
    "no keys": "{}",
    "list": "[1, 2]",
    "number": "3",
    "text": '"x"',
    "garbage": "}{",
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 100_000,
    "half a line": '{"_id": "a", "te',
    "two objects": line() + line(),
    "trailing comma": '{"_id": "a", "text": "x",}',
    "single quotes": "{'_id': 'a', 'text': 'x'}",
    "NUL": "\0",
    "many NULs": "\0" * 100_000,
    "BOM": "\ufeff" + line(),
    "BOM twice": "\ufeff\ufeff" + line(),
    "BOM inside": line() + "\n\ufeff" + line(_id='"b"'),
    "UTF-16": line().encode("utf-16"),
    "UTF-32": line().encode("utf-32"),
    "not UTF-8": b'{"_id": "a", "text": "\xff\xfe"}',
    "cut in a character": b'{"_id": "a", "text": "\xe4\xb8',
    "surrogate in UTF-8": b'{"_id": "a", "text": "\xed\xa0\x80"}',
    "overlong UTF-8": b'{"_id": "a", "text": "\xc0\xaf"}',
    "empty": b"",
    "blank lines": b"\n" * 1000,
    "carriage returns": line().replace(", ", ",\r") + "\r" + line(_id='"b"'),
    "control characters": b'{"_id": "a", "text": "\x01\x02"}',
    "a line of 30 MB": b"[" + b" " * 30_000_000 + b"]",
    "10,000 bad lines": b"{\n" * 10_000,
    "duplicate": line() + "\n" + line(),
    "duplicate by number": line(_id="1") + "\n" + line(_id='"1"'),
    "ids that look alike": line(_id='"\\u00e9"') + "\n" + line(_id='"e\\u0301"'),
    "ids that differ by a space": line(_id='"a"') + "\n" + line(_id='"a "'),
    "other layout after the first": line() + '\n{"docid": "b", "text": "x"}',
    "a picture": b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 40,
}


def as_bytes(content):
    return content if isinstance(content, bytes) else content.encode("utf-8")


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus(name, tmp_path, capsys):
    content = as_bytes(CORPORA[name])
    good = GOOD.encode()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes(good + b"\n" + content)
    (tmp_path / "first.jsonl").write_bytes(content + b"\n" + good)
    for number, (source, *more) in enumerate([(folder,), (folder, "--lenient"), (tmp_path / "first.jsonl",)]):
        index = tmp_path / f"index{number}"
        code, _, _ = survives(
            capsys, "index", source, "-o", index, "--model", "none", *more,
            outputs=[index], names=[".jsonl"],
        )  # fmt: skip
        if code == 0:
            _, out, _ = survives(capsys, "search", index, "a fox", "-w", "lexical", "--json")
            json.loads(out)


@pytest.mark.parametrize("name", ["garbage", "no keys", "list", "deep", "not UTF-8", "half a line", "NUL"])
def test_a_malformed_first_line_is_skipped_as_any_other(name, tmp_path, capsys):
    for ending, good in (("jsonl", GOOD), ("tsv", "good\ta brown fox\tT")):
        source, index = tmp_path / f"c.{ending}", tmp_path / ending
        source.write_bytes(as_bytes(CORPORA[name]) + b"\n" + good.encode())
        code, out, _ = survives(
            capsys, "index", source, "-o", index, "--model", "none", "--lenient", "--json"
        )
        read = json.loads(out)["read"]
        assert code == 0 and read["documents"] == 1 and read["skipped"] == 1
        _, out, _ = survives(capsys, "search", index, "fox", "-w", "lexical", "--json")
        assert json.loads(out)["hits"][0]["id"] == "good"
