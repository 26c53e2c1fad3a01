"""`counterpoint add`, `replace`, `delete` and `compact`: what they say, and what an error leaves."""

import io
import json

import pytest
from tests.cli.commands import fails

from counterpoint.cli.main import main
from counterpoint.index import Index, Manifest

NEW = [
    {"_id": "shark", "text": "Sharks are fish of the sea.", "metadata": {"year": 2020}},
    {"_id": "fox", "text": "A fox that was corrected.", "metadata": {"year": 1999}},
]


@pytest.fixture
def new(tmp_path):
    path = tmp_path / "new.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in NEW))
    return path


def said(capsys, *arguments):
    """What a command says with --json."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    """The message of a command that a user mistyped."""
    capsys.readouterr()
    code = main([*map(str, arguments)])
    out, err = capsys.readouterr()
    assert fails((code, out, err))
    return err


def names(folder):
    with Index(folder) as index:
        return set(index.names_of(index.positions))


def test_documents_come_and_go(lexical, new, capsys):
    before = Manifest.read(lexical)
    error = refused(capsys, "add", lexical, new)
    assert "'fox': already in the index" in error and Manifest.read(lexical) == before
    found = said(capsys, "replace", lexical, new)
    assert (found["added"], found["replaced"], found["documents"], found["deleted"]) == (2, 1, 5, 1)
    assert said(capsys, "search", lexical, "corrected")["hits"][0]["id"] == "fox"
    found = said(capsys, "delete", lexical, "whale", "train", "--no-compact")
    assert (found["deleted"], found["documents"], found["segments"]) == (2, 3, 2)
    found = said(capsys, "compact", lexical)
    assert (found["segments_before"], found["segments"], found["deleted"]) == (2, 1, 0)
    assert names(lexical) == {"shark", "fox", "empty"}
    assert said(capsys, "compact", lexical)["commits"] == 0
    assert main(["compact", str(lexical)]) == 0 and "nothing to do" in capsys.readouterr().out
    assert main(["verify", str(lexical)]) == 0


def test_deletes_by_condition_and_from_standard_input(lexical, new, capsys, monkeypatch):
    assert main(["replace", str(lexical), str(new)]) == 0
    assert said(capsys, "delete", lexical, "--where", "year < 2000")["deleted"] == 1
    monkeypatch.setattr("sys.stdin", io.StringIO("whale\n\ntrain\n"))
    assert said(capsys, "delete", lexical, "-")["deleted"] == 2
    assert names(lexical) == {"shark", "empty"}


def test_several_conditions_must_all_hold(collection, lexical, new, capsys):
    both = "--where", "year > 1990", "--where", "year = 1999 or year = 1800"
    assert main(["replace", str(lexical), str(new)]) == 0
    assert [hit["id"] for hit in said(capsys, "search", lexical, "fox sea", *both)["hits"]] == ["fox"]
    assert said(capsys, "export", lexical, "-o", lexical.parent / "e", *both)["documents"] == 1
    evaluated = "evaluate", collection, "--index", lexical, "-w", "lexical", "--measures", "P@1"
    assert said(capsys, *evaluated, "--where", "year = 1999")["measures"]["P@1"] > 0
    neither = "--where", "year = 2020", "--where", "year = 1999"
    assert said(capsys, *evaluated, *neither)["measures"]["P@1"] == 0
    halves = "--where", "year = 1) or (year = 1999", "--where", "year > 1990"
    assert "cannot be parsed" in refused(capsys, "delete", lexical, *halves)
    assert said(capsys, "delete", lexical, *both)["deleted"] == 1
    assert names(lexical) == {"shark", "whale", "train", "empty"}


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["delete"], "name the documents to delete, by their IDs"),
        (["delete", "whale", "--where", "year = 1"], "name documents by their IDs"),
        (["delete", "nobody"], "'nobody': no such document"),
        (["delete", "--where", "colour = 'red'"], "no metadata field 'colour'"),
        (["add", "nowhere.jsonl"], "there is no such file or folder"),
    ],
)
def test_what_cannot_be_done_changes_nothing(lexical, capsys, arguments, message):
    before = Manifest.read(lexical)
    command, *rest = arguments
    assert message in refused(capsys, command, lexical, *rest)
    assert Manifest.read(lexical) == before
    assert said(capsys, "delete", lexical, "nobody", "--missing-ok")["deleted"] == 0


def test_a_folder_that_is_no_index_stays_empty(tmp_path, new, capsys):
    (tmp_path / "x").mkdir()
    for command, given in (("add", new), ("delete", "a")):
        assert "not a Counterpoint index" in refused(capsys, command, tmp_path / "x", given)
    assert list((tmp_path / "x").iterdir()) == []


@pytest.mark.minilm
@pytest.mark.slow
def test_the_default_model_adds_and_refits(collection, new, tmp_path, capsys):
    folder = tmp_path / "hybrid"
    assert main(["index", str(collection), "-o", str(folder)]) == 0
    assert said(capsys, "replace", folder, new)["documents"] == 5
    assert said(capsys, "search", folder, "animals of the ocean")["hits"][0]["id"] in ("whale", "shark")
    found = said(capsys, "compact", folder, "--refit")
    assert (found["segments"], found["deleted"]) == (1, 0)
    assert said(capsys, "search", folder, "animals of the ocean")["hits"][0]["id"] in ("whale", "shark")
    assert main(["verify", str(folder)]) == 0


def test_counts_of_passages_are_called_that(lexical, tmp_path, capsys):
    """Documents that are cut count as what is stored: their passages."""
    path = tmp_path / "long.jsonl"
    path.write_text(json.dumps({"_id": "long", "text": "One two three. " * 20}) + "\n")
    assert main(["add", str(lexical), str(path)]) == 0
    assert capsys.readouterr().out.startswith("1 document added; the index now has 5 documents\n")
    arguments = [str(lexical), str(path), "--passage-words", "15", "--no-compact"]
    assert main(["replace", *arguments]) == 0
    said = "1 document replaced, 0 new (4 passages); the index now has 5 documents in 8 passages\n"
    assert capsys.readouterr().out == said
    assert main(["delete", str(lexical), "fox", "--no-compact"]) == 0
    assert main(["info", str(lexical)]) == 0
    assert "deleted passages still on disk: 1" in capsys.readouterr().out
    assert main(["compact", str(lexical)]) == 0 and "1 to 0 deleted passages" in capsys.readouterr().out


def test_what_replace_did_is_told(tmp_path, capsys):
    """Without --id the ids are other ones, and all documents are new."""
    table, folder = tmp_path / "t.csv", tmp_path / "t.index"
    table.write_text("nr,note\n7,A note on whales.\n8,A note on trains.\n")
    fields = "--id", "nr", "--text", "note"
    assert main(["index", str(table), "-o", str(folder), "--model", "none", *fields]) == 0
    capsys.readouterr()
    table.write_text("nr,note\n7,A note on sharks.\n9,A note on ships.\n")
    assert main(["replace", str(folder), str(table), *fields]) == 0
    out, err = capsys.readouterr()
    assert out == "1 document replaced, 1 new; the index now has 3 documents\n"
    assert "no document was replaced" not in err
    assert main(["replace", str(folder), str(table)]) == 0
    out, err = capsys.readouterr()
    assert out == "0 documents replaced, 2 new; the index now has 5 documents\n"
    assert "no document was replaced" in err and "--id" in err
    found = said(capsys, "replace", folder, table, *fields)
    assert (found["added"], found["replaced"], found["new"]) == (2, 2, 0)


def test_info_says_what_changes_left(lexical, new, capsys):
    assert main(["replace", str(lexical), str(new), "--no-compact"]) == 0
    capsys.readouterr()
    assert main(["info", str(lexical)]) == 0
    assert "2 segments; deleted documents still on disk: 1" in capsys.readouterr().out
    gone = sorted(names(lexical))
    assert said(capsys, "delete", lexical, *gone)["documents"] == 0
    assert main(["info", str(lexical)]) == 0 and "0 documents" in capsys.readouterr().out
    assert said(capsys, "search", lexical, "fox")["hits"] == []


def test_more_shards_than_documents_are_told(lexical, capsys):
    assert main(["compact", str(lexical), "--shards", "2"]) == 0
    assert "shards (" not in capsys.readouterr().err
    assert main(["compact", str(lexical), "--shards", "50"]) == 0
    assert "there are more shards (50) than documents (" in capsys.readouterr().err
