"""Which files of a folder are read."""

import pytest

from counterpoint.data import FileChoice, ReadPolicy, ReadReport, open_collection
from counterpoint.errors import ConfigError, DataError


@pytest.fixture
def tree(tmp_path):
    names = [
        "a.md", "b.txt", "drafts/c.md", "docs/d.md", "docs/deep/e.rst", "docs/deep/keep.log", "x.log",
        "build/f.md",
        ".git/config.txt", ".hidden.md", "node_modules/g.js", "web/node_modules/h.js", "__pycache__/i.py",
        "env/lib/j.py", "old.index/segments/k.txt", "old.index/manifest.json",
    ]  # fmt: skip
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"text of {name}")
    (tmp_path / "env" / "pyvenv.cfg").write_text("home = /usr")
    (tmp_path / ".gitignore").write_text("# built\nbuild/\n*.log\n")
    (tmp_path / "docs" / ".gitignore").write_text("!keep.log\n/d.md\n")
    return tmp_path


def read(root, policy=None, **choice):
    report = ReadReport()
    collection = open_collection(root, choice=FileChoice(**choice), policy=policy)
    return [document.id for document in collection.documents(report)], report


def test_gitignore_counts_at_every_level(tree):
    names, report = read(tree)
    assert names == ["a.md", "b.txt", "docs/deep/e.rst", "docs/deep/keep.log", "drafts/c.md"]
    assert report.left_out == {
        "hidden": 4, "in .gitignore": 3, "an index": 1,
        "installed (node_modules, __pycache__, environments)": 4,
    }  # fmt: skip
    names, _ = read(tree, gitignore=False)
    assert {"build/f.md", "x.log", "docs/d.md"} <= set(names)


def test_a_folder_that_was_named_is_read_whatever_is_above_it(tree):
    assert read(tree / "build")[0] == ["f.md"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ({"include": ("*.md",)}, ["a.md", "drafts/c.md"]),
        ({"include": ("docs/**/*.rst", "b.txt")}, ["b.txt", "docs/deep/e.rst"]),
        ({"include": ("docs/",)}, ["docs/deep/e.rst", "docs/deep/keep.log"]),
        ({"exclude": ("drafts/", "docs")}, ["a.md", "b.txt"]),
        ({"include": ("*.md",), "exclude": ("/a.md",)}, ["drafts/c.md"]),
        ({"exclude": ("*.md", "!a.md")}, ["a.md", "b.txt", "docs/deep/e.rst", "docs/deep/keep.log"]),
    ],
)
def test_patterns(choice, names, tree):
    assert read(tree, **choice)[0] == names


def test_what_is_no_pattern(tree):
    with pytest.raises(ConfigError, match="--exclude: invalid pattern '!'; write it as in .gitignore"):
        FileChoice(exclude=("!",))
    (tree / "docs" / ".gitignore").write_text("!\n")
    names, report = read(tree)
    assert "docs/d.md" in names and report.unreadable == 1 and "it is ignored" in report.not_read[0]


def test_patterns_are_for_folders_of_files(tree):
    (tree / "c").mkdir()
    (tree / "c" / "corpus.jsonl").write_text('{"_id": "1", "text": "x"}\n')
    for source in (tree / "a.md", tree / "c", "stdlib:json"):
        with pytest.raises(ConfigError, match="--include and --exclude choose files of a folder"):
            read(source, include=("*.md",))


def test_a_folder_skips_counts_and_lists_and_can_be_strict(tmp_path):
    (tmp_path / "a.txt").write_text("fine")
    (tmp_path / "b.pdf").write_bytes(b"no pdf")
    (tmp_path / "c.txt").write_bytes(b"\0")
    (tmp_path / "d.jsonl").write_text('{"id": 1, "text": "one"}\n{"id": 1, "text": "again"}\nbroken\n')
    (tmp_path / "e.jsonl").write_text('{"id": 1, "text": "half \\ud800"}\n')
    (tmp_path / "f.jsonl").write_text('{"id": 1, "text": "good"}\n', encoding="utf-8")
    with open(tmp_path / "f.jsonl", "ab") as file:
        file.write(b'{"id": 2, "text": "\xff"}\n')
    names, report = read(tmp_path)
    assert names == ["a.txt", "d.jsonl:1", "f.jsonl:1"]
    assert (report.unreadable, report.skipped, report.duplicates) == (3, 2, 1)
    assert [note.removeprefix(str(tmp_path))[:7] for note in report.not_read] == [
        "/b.pdf:",
        "/c.txt:",
        "/f.json",
    ]
    assert report.not_read[2].endswith("(after 1 of its documents)")
    assert report.summary() == (
        "3 documents, 2 malformed and skipped, 1 duplicates left out, 3 files could not be read"
    )
    with pytest.raises(DataError, match=r"b\.pdf: this PDF cannot be read"):
        read(tmp_path, ReadPolicy(files="error"))


def test_documents_and_passages_are_counted_as_what_they_are(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("One sentence of six words here. " * 20)
    report = ReadReport()
    units = list(open_collection(tmp_path, passage_words=30).documents(report))
    assert (report.documents, report.passages) == (3, len(units)) and len(units) > 9
    assert report.summary() == f"3 documents in {len(units)} passages"
