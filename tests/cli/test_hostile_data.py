"""Collections that are broken or made to break something: refused with a message, or read."""

import gzip
import json
import os
import shutil

import pytest
from tests.cli.commands import in_a_process
from tests.cli.hostile import survives

from counterpoint.cli.main import main

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
    "-Infinity": "-Infinity",
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

CORPORA: dict[str, str | bytes] = {}
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


# Each field's cases in the normal tier; all values in all fields are in the long one.
QUICK = {
    "_id": ("null", "float", "5,000 digits", "list", "blank", "NUL", "line breaks", "lone surrogate"),
    "title": ("integer", "object", "lone surrogate"),
    "text": ("true", "nested 900", "lone surrogate", "long", "combining"),
    "metadata": (
        "NaN", "1e999", "2 to the 64", "5,000 digits", "nested 100,000", "nested 900", "objects nested 900",
        "lone surrogate", "surrogate in a list", "surrogate in a key", "escape", "list",
    ),
    "parent": ("integer", "lone surrogate"),
    "start": ("2 to the 63", "5,000 digits", "lone surrogate"),
    "extra": ("-Infinity", "nested 330", "low surrogate", "surrogate in a key"),
}  # fmt: skip


def as_bytes(content):
    return content if isinstance(content, bytes) else content.encode("utf-8")


def try_corpus(content, tmp_path, capsys, *runs, searched=True):
    content, good = as_bytes(content), GOOD.encode()
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "corpus.jsonl").write_bytes(good + b"\n" + content)
    (tmp_path / "first.jsonl").write_bytes(content + b"\n" + good)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.jsonl").write_bytes(content + b"\n" + good)
    for number, (source, *more) in enumerate(runs):
        index = tmp_path / f"index{number}"
        code, _, _ = survives(
            capsys, "index", tmp_path / source, "-o", index, "--model", "none", *more,
            outputs=[index], names=[".jsonl"],
        )  # fmt: skip
        if code == 0 and searched:
            _, out, _ = survives(capsys, "search", index, "a fox", "-w", "lexical", "--json")
            json.loads(out)


@pytest.mark.parametrize("name", CORPORA)
def test_a_corpus(name, tmp_path, capsys):
    try_corpus(CORPORA[name], tmp_path, capsys, ("folder",), searched=False)


@pytest.mark.parametrize(("field", "name"), [(field, name) for field in QUICK for name in QUICK[field]])
def test_a_field(field, name, tmp_path, capsys):
    try_corpus(line(**{field: VALUES[name]}), tmp_path, capsys, ("folder",), searched=False)


def test_all_of_them_in_one_lenient_corpus(tmp_path, capsys):
    lines = [line(**{field: value}) for field in QUICK for value in VALUES.values()]
    try_corpus("\n".join(lines), tmp_path, capsys, ("folder", "--lenient"), ("files", "--lenient"))
    everything = b"\n".join(as_bytes(content) for content in CORPORA.values())
    (tmp_path / "all.jsonl").write_bytes(everything + b"\n" + GOOD.encode())
    index = tmp_path / "index"
    code, out, _ = survives(
        capsys, "index", tmp_path / "all.jsonl", "-o", index, "--model", "none", "--lenient", "--json"
    )
    assert code == 0 and json.loads(out)["read"]["skipped"] > 1000
    _, out, _ = survives(capsys, "search", index, "brown", "-w", "lexical", "--json")
    assert json.loads(out)["hits"][0]["id"] == "good"


@pytest.mark.long
@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("field", QUICK)
def test_every_value_in_every_field(field, name, tmp_path, capsys):
    runs = (("folder",), ("folder", "--lenient"), ("first.jsonl",), ("first.jsonl", "--lenient"), ("files",))
    try_corpus(line(**{field: VALUES[name]}), tmp_path, capsys, *runs)


@pytest.mark.long
@pytest.mark.parametrize("name", CORPORA)
def test_every_corpus_by_every_door(name, tmp_path, capsys):
    runs = (("folder", "--lenient"), ("first.jsonl",), ("first.jsonl", "--lenient"), ("files",))
    try_corpus(CORPORA[name], tmp_path, capsys, *runs)


@pytest.mark.parametrize("name", ["garbage", "no keys", "list", "deep", "half a line", "NUL"])
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


# -- queries, judgements, runs -------------------------------------------------------------------------

QUERIES = {
    "null id": '{"_id": null, "text": "x"}',
    "list id": '{"_id": [], "text": "x"}',
    "no text": '{"_id": "q"}',
    "text number": '{"_id": "q", "text": 3}',
    "surrogates": '{"_id": "\\ud800", "text": "\\ud800", "m": "\\ud800"}',
    "surrogate in the text": '{"_id": "q1", "text": "\\ud800"}',
    "surrogate in metadata": '{"_id": "q1", "text": "fox", "metadata": {"\\ud800": "\\ud800"}}',
    "NUL": '{"_id": "q1", "text": "fox\\u0000"}',
    "blank id": '{"_id": " ", "text": "x"}',
    "line break id": '{"_id": "a\\nb", "text": "fox"}',
    "5,000 digits": '{"_id": ' + HUGE + ', "text": "x"}',
    "deep": "[" * 100_000,
    "garbage": "}{",
    "twice": '{"_id": "q1", "text": "x"}\n{"_id": "q1", "text": "y"}',
    "empty": "",
    "not UTF-8": b"\xff",
    "a list": "[]",
    "long": '{"_id": "q1", "text": "' + "fox " * 50_000 + '"}',
    "empty text": '{"_id": "q1", "text": ""}',
}
QRELS = {
    f"grade {grade!r}": f"q1 0 good {grade}\n"
    for grade in (
        "1_000", "\u0663", "+1", "-1", "-0", "1.5", "1e3", "0x1", "nan", "inf", "x", "\u2460", "\u00b2",
        "9999", "999999999", "2147483648", "9223372036854775808", "9" * 5000, "1\u00a0", "\u22121", "\0",
    )
}  # fmt: skip
QRELS |= {
    f"table {grade!r}": f"q1\tgood\t{grade}\n" for grade in ("1_000", "\u0663", "1.5", "x", "9" * 5000, "")
}
QRELS |= {
    "empty": "",
    "blank lines": "\n" * 100,
    "only a header": "query-id\tcorpus-id\tscore\n",
    "three columns": "q1 good 1\n",
    "five columns": "q1 0 good 1 1\n",
    "contradiction": "q1 0 good 1\nq1 0 good 2\n",
    "repeated": "q1 0 good 1\nq1 0 good 1\n",
    "NUL": "\0\0\0",
    "not UTF-8": b"q1 0 \xff 1\n",
    "BOM": "\ufeffq1 0 good 1\n",
    "UTF-16": "q1 0 good 1\n".encode("utf-16"),
    "a line of 5 MB": "q" * 5_000_000 + " 0 good 1\n",
    "a header and grades": "query-id\tcorpus-id\tscore\nq1\tgood\t1_0\n",
    "a BEIR id of spaces": "query-id\tcorpus-id\tscore\n \t \t1\n",
    "deep JSON": "[" * 100_000,
}
RUNS = {
    f"score {score!r}": f"q1 Q0 good 1 {score} t\n"
    for score in (
        "nan", "inf", "-inf", "1e999", "1_0", "\u0663", "x", "1e-400", "0x1p3", "9" * 5000, "1,5", "+1", ".5",
        "1e38", "1e300", "-1e300", "\0",
    )
}  # fmt: skip
RUNS |= {
    f"rank {rank!r}": f"q1 Q0 good {rank} 1.0 t\n" for rank in ("-1", "0", "x", "nan", "9" * 5000, "\u0663")
}
RUNS |= {
    "empty": "",
    "five columns": "q1 Q0 good 1 1.0\n",
    "seven columns": "q1 Q0 good 1 1.0 t t\n",
    "twice": "q1 Q0 good 1 1.0 t\nq1 Q0 good 2 0.5 t\n",
    "apart": "q1 Q0 good 1 1.0 t\nq2 Q0 good 1 1.0 t\nq1 Q0 good 2 0.5 t\n",
    "NUL": "\0",
    "not UTF-8": b"q1 Q0 \xff 1 1.0 t\n",
    "BOM": "\ufeffq1 Q0 good 1 1.0 t\n",
    "carriage returns": "q1 Q0 good 1 1.0 t\rq1 Q0 b 1 1.0 t\r",
    "a line of 5 MB": "q" * 5_000_000 + " Q0 good 1 1.0 t\n",
    "unicode spaces": "q1\u2003Q0\u2003good\u20031\u20031.0\u2003t\n",
    "an unknown document": "q1 Q0 nowhere 1 1.0 t\n",
    "sums that are infinite": "q1 Q0 good 1 1.7e308 t\nq1 Q0 b 2 1.7e308 t\n",
}


@pytest.fixture(scope="module")
def beir(tmp_path_factory):
    """A collection with an index and a run."""
    folder = tmp_path_factory.mktemp("hostile-beir")
    (folder / "c" / "qrels").mkdir(parents=True)
    (folder / "c" / "corpus.jsonl").write_text(GOOD)
    (folder / "c" / "queries.jsonl").write_text('{"_id": "q1", "text": "fox"}')
    (folder / "c" / "qrels" / "test.tsv").write_text("q1 0 good 1\n")
    (folder / "run.trec").write_text("q1 Q0 good 1 1.0 t\n")
    assert main(["index", str(folder / "c"), "-o", str(folder / "index"), "--model", "none"]) == 0
    return folder


@pytest.mark.parametrize("name", QUERIES)
def test_queries(name, beir, tmp_path, capsys):
    copy = shutil.copytree(beir / "c", tmp_path / "c")
    (copy / "queries.jsonl").write_bytes(as_bytes(QUERIES[name]))
    (copy / "qrels" / "test.tsv").write_text("q1 0 good 1\n")
    run = tmp_path / "run"
    evaluate = ("evaluate", copy, "--index", beir / "index", "-w", "lexical", "--save-run", run)
    survives(capsys, *evaluate, outputs=[run])


@pytest.mark.parametrize("name", QRELS)
def test_judgements(name, beir, tmp_path, capsys):
    path = tmp_path / "qrels.txt"
    path.write_bytes(as_bytes(QRELS[name]))
    names = [] if "9999999" in name else [path]
    code, out, _ = survives(capsys, "evaluate", path, "--run", beir / "run.trec", "--json", names=names)
    if code == 0:
        json.loads(out)
    good = ("'+1'", "'-1'", "'-0'", "'9999'", "'1\\xa0'")
    if name.startswith(("grade", "table")):
        assert code == (0 if name.endswith(good) else 2)


@pytest.mark.parametrize("name", RUNS)
def test_runs(name, beir, tmp_path, capsys):
    path, fused, picture = tmp_path / "run.trec", tmp_path / "fused.trec", tmp_path / "per.csv"
    path.write_bytes(as_bytes(RUNS[name]))
    code, out, _ = survives(
        capsys, "evaluate", beir / "c", "--run", path, "--per-query", picture, "--json", outputs=[picture]
    )
    if code == 0:
        json.loads(out)
    survives(capsys, "fuse", path, beir / "run.trec", "-o", fused, "--missing", "min", outputs=[fused])
    if name in ("score 'nan'", "score '1_0'", "score '\u0663'", "score 'inf'"):
        assert code == 2


# -- folders of files ----------------------------------------------------------------------------------

FILES = {
    "empty.txt": b"",
    "nul.txt": b"\0" * 1000,
    "binary.txt": bytes(range(256)),
    "utf16.txt": "a fox".encode("utf-16"),
    "bom.txt": b"\xef\xbb\xbfa fox",
    "one-word.txt": b"x" * 300_000,
    "spaces.txt": b" " * 300_000,
    "combining.txt": ("a" + "\u0301" * 50_000).encode(),
    "deep.html": b"<div>" * 3000 + b"x",
    "open.html": b"<" * 100_000,
    "entities.html": b"&#xD800; &#1114112; &#" + b"9" * 5000 + b"; &amp" * 1000,
    "script.html": b"<script>" + b"<!--" * 1000,
    "charset.html": b"<meta charset=evil>a fox",
    "charset-hex.html": b"<meta charset=hex>a fox",
    "charset-idna.html": b"<meta charset=idna>a fox",
    "charset-utf7.html": b"<meta charset=utf-7>+ADw-fox",
    "charset-unicode-escape.html": b"<meta charset=unicode_escape>\\ud800 fox \\U00110000",
    "deep.md": b"> " * 3000 + b"x",
    "stars.md": b"*a_ " * 20_000,
    "brackets.md": b"[" * 20_000,
    "backticks.md": b"`" * 20_001,
    "table.md": b"|a" * 5000 + b"\n" + b"|-" * 5000,
    "headings.md": b"# a\n" * 5000,
    "titles.rst": b"a\n=\n" * 5000,
    "deep.rst": b"".join(b" " * i + b"- x\n" for i in range(500)),
    "quotes.csv": b'a,b\n"x,y\n',
    "nul.csv": b"a,b\n\0,\0\n",
    "many-columns.csv": b"," * 10_000 + b"\n" + b"," * 10_000,
    "twice.csv": b"a,a\n1,2\n",
    "long-field.csv": b"a,b\n" + b"x" * 200_000 + b",y\n",
    "header.csv": b"a,b\n",
    "ragged.csv": b"a,b\n1\n1,2,3\n",
    "latin.csv": "a,b\n\u00e9,x\n".encode("latin-1"),
    "tabs.tsv": b"\t" * 1000,
    "deep.jsonl": b"[" * 100_000,
    "own.jsonl": b'{"a": {"b": ' + b"[" * 300 + b"]" * 300 + b"}}",
    "surrogate.jsonl": b'{"a": "\\ud800"}',
    "surrogate-key.jsonl": b'{"\\ud800": 1}',
    "truncated.pdf": b"%PDF-1.4\n1 0 obj\n<<",
    "garbage.pdf": b"garbage",
    "loop.pdf": b"%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]>>\nendobj\n"
    b"trailer<</Root 1 0 R>>\nstartxref\n0\n%%EOF",
}


@pytest.mark.parametrize("name", FILES)
def test_a_file(name, tmp_path, capsys):
    folder, index = tmp_path / "folder", tmp_path / "index"
    folder.mkdir()
    (folder / name).write_bytes(FILES[name])
    (folder / "good.txt").write_text("a fox")
    survives(capsys, "index", folder, "-o", index, "--model", "none", outputs=[index], names=[name])


def test_all_files_leniently(tmp_path, capsys):
    for name, content in FILES.items():
        (tmp_path / name).write_bytes(content)
    index = tmp_path / "index"
    code, _, _ = survives(
        capsys, "index", tmp_path, "-o", index, "--model", "none", "--lenient", outputs=[index]
    )
    assert code in (0, 2)


# -- what is no ordinary file --------------------------------------------------------------------------


def link_to_itself(path):
    path.symlink_to(path.name)


KINDS = {
    "a folder": os.mkdir,
    "a pipe": os.mkfifo,
    "a link to itself": link_to_itself,
    "a link to nowhere": lambda path: path.symlink_to("nowhere"),
    "a link to a device": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("/dev/null"),
    "a link to its folder": lambda path: path.symlink_to("."),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file(kind, beir, tmp_path, capsys):
    index = tmp_path / "index"
    for number, name in enumerate(("corpus.jsonl", "c.jsonl", "c.txt", "qrels/test.tsv")):
        folder = tmp_path / str(number)
        shutil.copytree(beir / "c", folder)
        (folder / name).unlink(missing_ok=True)
        KINDS[kind](folder / name)
        survives(capsys, "index", folder, "-o", index, "--model", "none", outputs=[])
        shutil.rmtree(index, ignore_errors=True)
        survives(capsys, "index", folder / name, "-o", index, "--model", "none", outputs=[index])
        survives(capsys, "evaluate", folder, "--run", beir / "run.trec")
        if kind != "a pipe":  # which may stand for a run, and is then waited for
            survives(capsys, "evaluate", beir / "c", "--run", folder / name)
        survives(capsys, "evaluate", folder / name, "--run", beir / "run.trec")
        survives(capsys, "search", folder / name, "fox")


def test_a_loop_of_folders(tmp_path, capsys):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (folder / "up").symlink_to(tmp_path)
    (folder / "x.txt").write_text("a fox")
    survives(capsys, "index", tmp_path / "a", "-o", tmp_path / "index", "--model", "none")


def test_long_and_odd_names(tmp_path, capsys):
    for number, name in enumerate(("x" * 5000, "\0", "a\nb.jsonl", "-", "~", "http://x")):
        index = tmp_path / str(number)
        survives(capsys, "index", name, "-o", index, "--model", "none", outputs=[index])
        survives(capsys, "search", name, "fox")
        survives(capsys, "evaluate", name, "--run", name)
        survives(capsys, "verify", name)
        survives(capsys, "info", name)


def test_a_name_that_is_not_utf8(tmp_path):
    """As processes, whose streams take what is written as a user's terminal does."""
    folder = tmp_path / "bytes"
    folder.mkdir()
    with open(os.fsencode(folder) + b"/\xff\xfe.txt", "wb") as file:
        file.write(b"a fox")
    for name, more in (("strict", ()), ("lenient", ("--lenient",))):
        done = in_a_process("index", folder, "-o", tmp_path / name, "--model", "none", *more)
        assert done.returncode == (0 if more else 2) and "This is a bug" not in done.stderr


# -- gzip ----------------------------------------------------------------------------------------------

BOMB = 20_000_000  # bytes of one kind, which gzip packs into twenty kilobytes
PACKED = {
    "blank lines": lambda: gzip.compress(b"\n" * 5 * BOMB, 1),
    "spaces": lambda: gzip.compress(b" " * BOMB),
    "carriage returns": lambda: gzip.compress(b"\r\n" * (BOMB // 2)),
    "brackets": lambda: gzip.compress(b"[" * BOMB),
    "one text": lambda: gzip.compress(b'{"_id": "a", "text": "' + b"x" * BOMB + b'"}'),
    "cut": lambda: gzip.compress(GOOD.encode())[:-9],
    "no checksum": lambda: gzip.compress(GOOD.encode())[:-8] + bytes(8),
    "rubbish after": lambda: gzip.compress(GOOD.encode()) + b"rubbish",
    "not packed": lambda: GOOD.encode(),
    "packed twice": lambda: gzip.compress(gzip.compress(GOOD.encode())),
    "empty": lambda: b"",
    "a header": lambda: b"\x1f\x8b\x08\0",
    "damaged": lambda: gzip.compress(GOOD.encode() * 100)[:40] + b"\xff" * 40,
}


@pytest.mark.parametrize("name", PACKED)
def test_gzip(name, beir, tmp_path, capsys):
    content = PACKED[name]()
    bomb = len(content) > 10_000
    for ending in ("jsonl.gz",) if bomb else ("jsonl.gz", "tsv.gz"):
        source, index = tmp_path / f"c.{ending}", tmp_path / "index"
        source.write_bytes(content)
        for more in ((), ("--lenient",)):
            survives(
                capsys, "index", source, "-o", index, "--model", "none", *more,
                outputs=[index], names=[] if more or name in ("spaces", "empty") else [source],
            )  # fmt: skip
            shutil.rmtree(index, ignore_errors=True)
    if not bomb or name == "blank lines":
        survives(capsys, "evaluate", beir / "c", "--run", source, names=[source])
        survives(capsys, "evaluate", source, "--run", beir / "run.trec", names=[source])
