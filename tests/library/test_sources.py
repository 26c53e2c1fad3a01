"""Every kind of source, from Python and from the command line: one door, one result, and one dry run."""

import gzip
import io
import json
import sqlite3
import sys
from types import SimpleNamespace

import pytest

import counterpoint as cp
from counterpoint.data import collection_of, write_beir
from counterpoint.errors import ConfigError, DataError
from counterpoint.library import survey
from counterpoint.types import Document


def kept(index):
    """All that an index holds of its documents."""
    (path,) = index.glob("segments/*/documents.sqlite")
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT id, title, text, parent, start, metadata FROM documents").fetchall()
    database.close()
    return rows


def table(root):
    (root / "t.csv").write_bytes("key;headline;note;year\n1;Öl;Größe;2020\n2;Au;Fluß;2021\n".encode("cp1252"))
    return root / "t.csv"


def folder(root):
    docx = pytest.importorskip("docx")
    root = root / "folder"
    (root / "drafts").mkdir(parents=True)
    (root / "drafts" / "d.md").write_text("# Draft")
    (root / "a.md").write_text("# Guide\n\n" + "Read it now, and read it well. " * 30)
    (root / "b.txt.gz").write_bytes(gzip.compress(b"A whale is a mammal."))
    (root / "c.py").write_text("def whale():\n    return 'mammal'\n")
    (root / "e.csv").write_text("id,text\n1,a whale\n2,a train\n")
    (root / "f.json").write_text('[{"id": 1, "text": "a dog"}]')
    (root / "g.ipynb").write_text(json.dumps({"cells": [{"cell_type": "markdown", "source": "# Cell"}]}))
    (root / "README").write_text("Read me.")
    (root / "bad.pdf").write_bytes(b"no pdf")
    (root / "bin.txt").write_bytes(b"\0\1")
    (root / "x.exe").write_bytes(b"x")
    (root / "skip.log").write_text("left out")
    (root / ".gitignore").write_text("*.log\n")
    made = docx.Document()
    made.add_paragraph("A word about whales.")
    made.save(str(root / "h.docx"))
    return root


def records(root):
    (root / "r.jsonl").write_text(
        '{"slug": "x", "body": "a whale", "n": 1}\n{"slug": "y", "body": "a train"}\n'
    )
    return root / "r.jsonl"


SOURCES = {
    "table": (table, {"id": "key", "title": "headline", "text": "note", "metadata": ("year",)}, 2),
    "records": (records, {"id": "slug"}, 2),
    "records with ids that are made": (records, {}, 2),
    "folder": (folder, {}, 10),
    "part of a folder": (folder, {"include": ("*.md", "*.py"), "exclude": ("drafts/",)}, 2),
    "folder without .gitignore": (folder, {"gitignore": False, "include": "*.log"}, 1),
    "short passages": (folder, {"passage_words": 20, "include": ("*.md",)}, 2),
}


def typed(settings):
    """Settings as options of the command line."""
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            yield option.replace("--", "--no-")
        else:
            for one in [value] if isinstance(value, str | int) else value:
                yield from (option, str(one))


@pytest.mark.filterwarnings("ignore:2 files could not be read")
@pytest.mark.parametrize("kind", SOURCES)
def test_python_and_the_command_line_read_the_same(kind, tmp_path, call):
    make, settings, number = SOURCES[kind]
    source = make(tmp_path)
    code, out, err = call(
        "index", source, "-o", tmp_path / "a", "--model", "none", *typed(settings), "--json"
    )
    assert code == 0, err
    built = json.loads(out)
    cp.index(source, tmp_path / "b", model=None, **settings).close()
    assert kept(tmp_path / "a") == kept(tmp_path / "b")
    rows = kept(tmp_path / "a")
    assert (built["documents"], built["passages"]) == (number, len(rows))
    found = survey(source, **settings)
    assert [document.id for document in found.first] == [row[0] for row in rows[:3]]
    assert found.report.documents == number and found.report.passages == len(rows)
    code, out, err = call("index", source, "--dry-run", *typed(settings), "--json")
    told = json.loads(out)
    assert code == 0 and told["read"] == built["read"] and told["written"] is False
    assert told["first"][0]["id"] == rows[0][0]


def test_what_was_decided_is_printed(tmp_path, call):
    source = table(tmp_path)
    _, out, err = call("index", source, "-o", tmp_path / "i", "--model", "none", "--text", "note")
    assert (
        f"{source}: columns title='headline', text='note'; ids are line numbers (delimiter ';', cp1252)"
        in err
    )
    assert err.count("delimiter") == 1 and out.startswith("2 documents in ")


def test_a_dry_run_tells_and_writes_nothing(tmp_path, call):
    source = folder(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    code, out, err = call("index", source, "--dry-run", "-o", tmp_path / "i")
    assert code == 0 and err == "" and sorted(tmp_path.rglob("*")) == before
    for said in (
        "10 documents in 11 passages; nothing is written",
        "2 .md",
        "1 no ending",
        "unsupported file types: 1 .exe",
        "left out: 1 hidden, 1 in .gitignore",
        "2 files could not be read, 1 file not read (.exe)",
        "e.csv: columns id='id', text='text' (delimiter ',')",
        "bad.pdf: this PDF cannot be read at its beginning",
        "bin.txt: has NUL bytes",
        "  README | README | Read me.",
    ):
        assert said in out, said
    code, _, err = call("index", source, "--dry-run", "--no-lenient")
    assert code == 2 and "bad.pdf: this PDF cannot be read" in err


@pytest.mark.parametrize(
    ("name", "content", "layout"),
    [
        (
            "a.jsonl",
            '{"docid": "1", "text": "x"}',
            "tevatron: id 'docid', text 'text' or 'document_text', title",
        ),
        ("b.json", '[{"id": "1", "contents": "x"}]', "pyserini: id 'id', text 'contents', title 'title'"),
        ("c.tsv", "1\tx y", "msmarco: id and text, separated by tabs"),
        ("d.tsv", "1\tx y\tz", "colbert: id, text and perhaps title, separated by tabs"),
    ],
)
def test_a_dry_run_tells_the_layout(name, content, layout, tmp_path, call):
    (tmp_path / name).write_text(content + "\n")
    code, out, _ = call("index", tmp_path / name, "--dry-run")
    assert code == 0 and f"{tmp_path / name}: layout {layout}" in out and "queries" not in out


def test_a_dry_run_of_a_collection_counts_queries_and_judgements(tmp_path, call):
    bread = collection_of(
        [Document("d1", "Mix flour."), Document("d2", "Bake it.")],
        queries={"q1": "baking", "q2": "not judged"},
        qrels={"test": {"q1": {"d2": 1}}, "dev": {"q1": {"d1": 1}, "q2": {"d1": 0}}},
    )
    write_beir(bread, tmp_path / "bread")
    code, out, _ = call("index", tmp_path / "bread", "--dry-run")
    assert code == 0 and f"{tmp_path / 'bread' / 'corpus.jsonl'}: layout beir-jsonl: id '_id', text" in out
    assert "queries: 2; judgements: dev (2 judged), test (1 judged)" in out
    told = json.loads(call("index", tmp_path / "bread", "--dry-run", "--json")[1])
    assert (told["queries"], told["judged"]) == (2, {"dev": 2, "test": 1})


def test_an_index_needs_a_place(tmp_path, call):
    code, _, err = call("index", tmp_path, "--model", "none")
    assert code == 2 and "--output" in err and "--dry-run" in err


def test_documents_and_passages_are_told_apart(tmp_path, call):
    for name in "abc":
        (tmp_path / "f").mkdir(exist_ok=True)
        (tmp_path / "f" / f"{name}.txt").write_text("One sentence of six words here. " * 20)
    code, out, err = call(
        "index", tmp_path / "f", "-o", tmp_path / "i", "--model", "none", "--passage-words", 30
    )
    assert (
        code == 0 and out.startswith("3 documents in 12 passages in ") and "3 documents in 12 passages" in err
    )
    _, out, _ = call("info", tmp_path / "i")
    assert out.startswith("3 documents in 12 passages, ")
    _, out, _ = call("info", tmp_path / "i", "--json")
    found = json.loads(out)
    assert (found["documents"], found["passages"]) == (3, 12)
    assert found["bytes_per_document"] == pytest.approx(found["bytes"] / 3)


def test_python_is_warned_of_what_was_skipped(tmp_path):
    source = folder(tmp_path)
    with pytest.warns(
        UserWarning, match=r"2 files could not be read\n.*bad\.pdf: this PDF(.|\n)*bin\.txt: has NUL"
    ):
        cp.index(source, tmp_path / "i", model=None).close()
    with pytest.raises(DataError, match=r"bad\.pdf: this PDF"):
        cp.index(source, tmp_path / "j", model=None, lenient=False)
    assert not (tmp_path / "j").exists()


def test_a_folder_of_nothing_that_can_be_read_says_why(tmp_path, call):
    (tmp_path / "f").mkdir()
    (tmp_path / "f" / "a.exe").write_text("x")
    (tmp_path / "f" / "b.pdf").write_text("x")
    code, _, err = call("index", tmp_path / "f", "-o", tmp_path / "i", "--model", "none")
    assert code == 2 and "no documents" in err and "1 file .exe" in err and "b.pdf: this PDF" in err


def test_standard_input(tmp_path, call, monkeypatch):
    def pipe(text):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))

    pipe("one whale\ntwo trains\n")
    code, out, err = call("index", "-", "-o", tmp_path / "i", "--model", "none")
    assert code == 0 and "stdin: one document per line" in err and out.startswith("2 documents in ")
    pipe('{"key": "a", "text": "one whale"}\n')
    code, _, err = call("index", "-", "-o", tmp_path / "j", "--model", "none", "--id", "key")
    assert code == 0 and "stdin: JSON Lines\nstdin: fields id='key', text='text'" in err
    pipe('{"key": "a", "text": "one whale"}\n')
    cp.index("-", tmp_path / "k", model=None, id="key").close()
    assert kept(tmp_path / "j") == kept(tmp_path / "k") == [("a", "", "one whale", None, 0, "{}")]


def test_settings_that_mean_nothing_are_refused(tmp_path, call):
    (tmp_path / "a.txt").write_text("x")
    for options in (("--text", "x"), ("--include", "*.md")):
        code, _, err = call("index", tmp_path / "a.txt", "--dry-run", *options)
        assert code == 2 and options[0] in err
    with pytest.raises(
        ConfigError, match="--include and --exclude .* this source is no folder|choose files of a folder"
    ):
        cp.index(["a"], tmp_path / "i", model=None, exclude="*.md")
    with pytest.raises(ConfigError, match="unknown setting 'txet'"):
        survey(["a"], txet="x")
