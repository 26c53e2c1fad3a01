"""The command line as a user meets it: what is printed where, and with which exit code."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import fails, in_a_process
from tests.fakes import DOCUMENTS, UniModel

from counterpoint.cli.main import main
from counterpoint.index import Index, IndexSettings, build_index

# -- the way through -----------------------------------------------------------------------------------


def test_json_is_one_object_on_stdout_and_nothing_else(collection, call, tmp_path):
    folder = tmp_path / "index"
    code, out, _ = call("index", collection, "-o", folder, "--model", "none", "--json")
    built = json.loads(out)
    assert code == 0 and built["documents"] == 4 and built["read"]["empty"] == 1
    code, out, _ = call("search", folder, "brown fox", "-w", "lexical", "--json", "--explain")
    (hit,) = json.loads(out)["hits"]
    assert code == 0 and hit["id"] == "fox" and hit["explanation"]["score"] == pytest.approx(hit["score"])
    code, out, _ = call("evaluate", collection, "--index", folder, "-w", "lexical", "--json")
    measured = json.loads(out)
    assert measured["measures"] == {"nDCG@10": 1.0, "R@100": 1.0, "RR@10": 1.0} and measured["queries"] == 2
    code, out, _ = call("info", folder, "--json")
    on_disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    assert json.loads(out)["bytes"] == on_disk == built["bytes"]
    code, out, _ = call("verify", folder, "--json")
    assert code == 0 and json.loads(out)["ok"] is True


def test_bm25_is_built_as_asked(collection, call, tmp_path):
    def score(name, *more):
        assert call("index", collection, "-o", tmp_path / name, "--model", "none", *more)[0] == 0
        _, out, _ = call("search", tmp_path / name, "brown fox", "-w", "lexical", "--json")
        return json.loads(out)["hits"][0]["score"]

    scores = [
        score("plain"),
        score("k1", "--k1", 2),
        score("b", "--b", 0),
        score("cut", "--analyzer", "none"),
    ]
    assert len(set(scores)) == 4
    assert score("named", "--k1", 0.9, "--b", 0.4, "--analyzer", "english") == scores[0]
    with Index(tmp_path / "k1") as index:
        assert index.manifest.settings["lexical"] == {
            "k1": 2.0, "b": 0.4, "analyzer": "english", "identifiers": True,
        }  # fmt: skip
    for wrong in (("--k1", -1), ("--b", 2), ("--no-lexical", "--b", 0), ("--no-lexical", "--k1", 0.9)):
        result = call("index", collection, "-o", tmp_path / "none", "--model", "none", *wrong)
        assert fails(result, next(word for word in wrong if word != "--no-lexical").strip("-"))
        assert not (tmp_path / "none").exists()


def test_people_get_text(collection, lexical, call, tmp_path):
    code, out, _ = call(
        "search", lexical, "lazy fox", "-w", "lexical", "--explain", "--html", tmp_path / "why.html"
    )
    assert code == 0 and "lexical" in out and "share" in out and "100%" in out
    assert "<mark" in (tmp_path / "why.html").read_text()
    code, out, _ = call("info", lexical)
    assert code == 0 and "4 documents" in out and "lexical" in out
    code, out, _ = call("verify", lexical)
    assert code == 0 and "0 damaged" in out
    code, out, _ = call("evaluate", collection, "--index", lexical, "-w", "lexical")
    assert code == 0 and re.search(r"nDCG@10.*\n.*1\.0000", out)


def test_info_says_what_word_vectors_cost(call, tmp_path):
    search = {"weights": {"words": 1.0}, "exact": ["words"]}
    build_index(DOCUMENTS, UniModel(), tmp_path / "i", IndexSettings(search=search))
    _, out, _ = call("info", tmp_path / "i", "--json")
    found = json.loads(out)
    code, out, _ = call("info", tmp_path / "i")
    assert code == 0 and f"{found['factor_over_text']:.2f} times their plain text" in out
    assert f"{found['sets']['words']['distinct_ids']} distinct ids" in out
    for purpose in ("vectors: cls", "vectors: words", "ids: words", "offsets: words", "postings: words"):
        assert re.search(rf"{purpose} +{found['bytes_by_purpose'][purpose]:,} ", out)


def test_verify_repairs(tmp_path, lexical, call):
    folder = shutil.copytree(lexical, tmp_path / "i")
    path = next(folder.glob("lexical/*/*.npy"))
    path.write_bytes(path.read_bytes()[:-1])
    code, _, err = call("verify", folder)
    assert code == 2 and f"{path}: " in err and "--repair makes it again" in err
    code, out, _ = call("verify", folder, "--repair", "--json")
    found = json.loads(out)
    assert code == 0 and found["ok"] and found["repaired"]["files"] == [path.relative_to(folder).as_posix()]
    code, out, _ = call("verify", folder, "--repair")
    assert code == 0 and "repaired: 0 files" in out
    assert call("verify", folder, "--encode")[0] == 2


def test_verify_compares_with_brute_force(lexical, call):
    code, out, _ = call("verify", lexical, "--recall", 3)
    assert code == 0 and "0 damaged" in out and "100.0% and 100.0% over" in out
    found = json.loads(call("verify", lexical, "--recall", 3, "--json")[1])["recall"]
    assert found["R@10"] == found["R@100"] == found["worst"]["R@10"] == 1.0 and 0 < found["queries"] <= 3


def test_info_says_what_computes_scores(call, lexical):
    code, out, _ = call("info", "--hardware")
    assert code == 0 and re.fullmatch(r"scores: (compiled, .+|numpy)\n", out)
    found = json.loads(call("info", lexical, "--hardware", "--json")[1])
    assert out == f"scores: {found['hardware']['kernel']}\n" and found["documents"] == 4
    code, _, err = call("info")
    assert code == 2 and "name an INDEX, or ask for --hardware" in err


def test_runs_are_saved_measured_and_reranked(collection, lexical, call, tmp_path):
    run, table = tmp_path / "mine.trec", tmp_path / "mine.csv"
    arguments = ["evaluate", collection, "--index", lexical, "-w", "lexical", "--save-run", run, "--json"]
    first = json.loads(call(*arguments)[1])["measures"]
    code, out, _ = call("evaluate", collection, "--run", run, "--json", "--per-query", table)
    assert code == 0 and json.loads(out)["measures"] == first
    rows = table.read_text(encoding="utf-8").splitlines()
    assert rows[0] == "query,text,relevant,nDCG@10,R@100,RR@10" and len(rows) == 3
    qrels = collection / "qrels" / "test.tsv"
    copy = tmp_path / "copy.trec"
    copy.write_text(run.read_text())
    code, out, _ = call("evaluate", qrels, "--run", run, "--run", copy, "--json", "--measures", "AP P@1")
    assert code == 0 and [r["measures"] for r in json.loads(out)["runs"]] == [{"AP": 1.0, "P@1": 1.0}] * 2
    run.write_text("q1 Q0 whale 1 9.0 x\nq1 Q0 fox 2 1.0 x\n")
    code, out, _ = call(
        "evaluate", collection, "--index", lexical, "-w", "lexical", "--rerank", run, "--json"
    )
    assert json.loads(out)["without_results"] == 1 and json.loads(out)["measures"]["RR@10"] == 0.5


def test_parts_can_be_weighted_and_runs_fused(collection, lexical, call, tmp_path):
    arguments = ("search", lexical, "fox", "-w", "lexical", "--json")
    assert json.loads(call(*arguments, "--weights", "lexical=2")[1])["hits"]
    assert fails(call(*arguments, "--weights", "lexical=x"), "expected name=number, found 'lexical=x'")
    assert fails(call(*arguments, "--weights", "mean=1"), "unknown part 'mean'")
    assert fails(call(*arguments, "--fusion", "magic"), "magic", "z-score")
    assert fails(
        call(*arguments, "--feedback", "0.1"), "feedback works with the hybrid only", "the workflow lexical"
    )
    assert json.loads(call(*arguments, "--feedback", "0")[1])["hits"]
    hybrid = ("search", lexical, "fox", "--json")
    assert fails(call(*hybrid, "--feedback", "0.1"), "pooled vectors, and this index has no such set")
    assert fails(
        call(*hybrid, "--feedback", "0.1,few"), "expected WEIGHT or WEIGHT,DOCUMENTS, found '0.1,few'"
    )
    assert fails(
        call(*hybrid, "--feedback", "-1"), "search.feedback: expected a weight from 0 up, found -1.0"
    )
    assert json.loads(call(*hybrid, "--feedback", "0")[1])["hits"]
    for alone in (arguments, hybrid):
        assert fails(call(*alone, "--fusion", "rrf"), "fusion: for several parts", "has only lexical")
        assert call(*alone, "--weights", "lexical=3", "--no-adapt")[0] == 0
    one, two, out = tmp_path / "one.trec", tmp_path / "two.trec", tmp_path / "fused.trec"
    convex = ("fuse", one, two, "-o", out, "--method", "convex")
    one.write_text("q Q0 a 1 3.0 x\nq Q0 b 2 1.0 x\n")
    two.write_text("q Q0 b 1 5.0 y\nq Q0 a 2 1.0 y\n")
    code, text, _ = call(*convex, "--weights", "one.trec=1 two.trec=0.5", "--json")
    assert code == 0 and json.loads(text)["queries"] == 1
    assert [line.split()[2:5] for line in out.read_text().splitlines()] == [
        ["b", "1", "3.5"],
        ["a", "2", "3.5"],
    ]
    assert fails(call("fuse", one, two, "-o", out, "--weights", "one.trec=1"), "no weight for two.trec")
    assert fails(call("fuse", one, one, "-o", out), "named twice")
    two.write_text("q Q0 c 1 5.0 y\n")
    assert fails(call(*convex), "(--missing) to 'min' or 'zero'")
    assert "b" in out.read_text()  # what was there stays
    code, _, _ = call("fuse", one, two, "-o", out)
    assert code == 0 and len(out.read_text().splitlines()) == 3


def test_bm25_and_measuring_load_no_torch(collection, lexical, tmp_path):
    for arguments in (
        ["search", lexical, "fox", "-w", "lexical", "--explain"],
        ["evaluate", collection, "--index", lexical, "-w", "lexical"],
        ["index", collection, "-o", tmp_path / "another", "--model", "none"],
    ):
        code = "import sys; from counterpoint.cli.main import main; "
        code += f"assert main({list(map(str, arguments))!r}) == 0; assert 'torch' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_version_and_help(call):
    assert call("--version")[1].startswith("counterpoint ")
    for command in ("index", "search", "evaluate", "fuse", "info", "verify", "demo"):
        code, out, _ = call(command, "--help")
        assert code == 0 and "Usage" in out


# -- mistakes ------------------------------------------------------------------------------------------


def test_mistakes_in_the_call(collection, lexical, call, tmp_path):
    assert fails(call("index", tmp_path / "nowhere", "-o", tmp_path / "x", "--model", "none"), "no such file")
    assert not (tmp_path / "x").exists()
    assert fails(call("search", tmp_path, "x"), "not a Counterpoint index")
    assert fails(call("search", lexical, "fox", "--workflow", "hybird"), "hybird", "choose one of")
    assert fails(call("search", lexical, "fox", "-w", "dense"), "no such part; it has lexical")
    assert fails(call("search", lexical, "fox", "-k", "0"))
    assert fails(call("search", lexical), "nothing to search for", "QUERY", "--queries")
    assert fails(call("frobnicate"), "frobnicate")
    assert fails(call("evaluate", collection), "--index FOLDER or --run FILE")
    assert fails(call("evaluate", collection, "--index", lexical, "--split", "dev"), "dev", "test")
    measures = ("--measures", "nCDG@10", "-w", "lexical")
    assert fails(call("evaluate", collection, "--index", lexical, *measures), "nCDG@10")
    assert fails(call("index", collection, "-o", lexical, "--model", "none"), "--overwrite")


def test_bad_data_names_its_file_and_line(collection, call, tmp_path):
    corpus = collection / "corpus.jsonl"
    corpus.write_text(corpus.read_text() + '{broken\n{"_id": "fox", "text": "again"}\n')
    target = tmp_path / "index"
    assert fails(call("index", collection, "-o", target, "--model", "none"), "corpus.jsonl:5")
    assert not target.exists()  # nothing was there before, nothing is there now
    code, out, err = call("index", collection, "-o", target, "--model", "none", "--lenient", "--json")
    assert code == 0 and "corpus.jsonl:5" in err and "corpus.jsonl:6" in err
    read = json.loads(out)["read"]
    assert (read["documents"], read["skipped"], read["duplicates"]) == (4, 1, 1)


def test_a_file_of_queries_has_queries(lexical, call, tmp_path):
    file, run = tmp_path / "queries.tsv", tmp_path / "run.trec"
    asked = ("search", lexical, "--queries", file, "-o", run, "-w", "lexical", "--json")
    file.write_text("qid\tquery\nq1\tthe sea\nq2\t \n")
    code, out, err = call(*asked)
    assert code == 0 and json.loads(out)["queries"] == 2
    assert "1 of 2 queries have no text, such as 'q2'" in err
    file.write_text("qid\tquery\n")
    before = run.read_bytes()
    assert fails(call(*asked), "this file has no queries", "queries.tsv")
    assert run.read_bytes() == before


def test_a_group_of_commands_alone_shows_its_help(call):
    code, _, err = call("recipe")
    assert code == 2 and "\\n" not in err and "List, show and check recipes.\n" in err


def test_misspelt_metadata_with_a_type(call, tmp_path):
    (tmp_path / "t.csv").write_text("id,text,year\na,A cat.,1999\n")
    (tmp_path / "t.jsonl").write_text('{"id": "a", "text": "A cat.", "year": 1999}\n')
    (tmp_path / "files").mkdir()
    for name, text in (("t.csv", "text,year\nA cat.,1999\n"), ("u.csv", "text\nA dog.\n")):
        (tmp_path / "files" / name).write_text(text)
    both, told = ("--metadata", "year:int,yeer:int"), "no document has the metadata field 'yeer'\n"
    for how in (("-o", tmp_path / "i", "--model", "none"), ("--dry-run",)):
        result = call("index", tmp_path / "t.csv", *how, *both)
        assert fails(result, "no column 'yeer' for the metadata; there are 'id', 'text', 'year'")
        for source in ("t.jsonl", "files"):
            code, out, err = call("index", tmp_path / source, *how, "--overwrite", *both)
            assert (
                code == 0 and told in (out if how == ("--dry-run",) else err) and "'year'\n" not in out + err
            )
    code, out, _ = call("index", tmp_path / "t.jsonl", "--dry-run", "--json", *both)
    assert json.loads(out)["read"]["absent"] == ["yeer"]


def test_a_bug_of_ours_is_exit_code_1(lexical, call, monkeypatch):
    monkeypatch.setattr(Index, "info", lambda self: 1 / 0)
    code, out, err = call("info", lexical)
    assert code == 1 and out == "" and "bug in counterpoint" in err and "Traceback" not in err
    with pytest.raises(ZeroDivisionError):
        main(["info", str(lexical), "--debug"])


def test_ctrl_c_is_exit_code_130(lexical, call, monkeypatch):
    def interrupted(self):
        raise KeyboardInterrupt

    monkeypatch.setattr(Index, "info", interrupted)
    code, _, err = call("info", lexical)
    assert code == 130 and "interrupted" in err


# -- damage and full disks -----------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [(), ("-O",)])
def test_damage_is_found_with_and_without_assertions(lexical, flags):
    path = next(lexical.glob("lexical/*/postings.npy"))
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    result = in_a_process("verify", lexical, "--json", flags=flags)
    assert result.returncode == 2 and json.loads(result.stdout)["ok"] is False
    assert "postings.npy: its content does not match" in result.stderr
    path.write_bytes(whole[:-1])
    assert fails(in_a_process("search", lexical, "fox", "-w", "lexical", flags=flags), "postings.npy")
    path.write_bytes(whole)
    assert in_a_process("verify", lexical, flags=flags).returncode == 0


@pytest.mark.parametrize("flags", [(), ("-O",)])
@pytest.mark.parametrize("room", [0, 3_000, 9_000])
def test_a_full_disk_keeps_the_old_index(collection, lexical, flags, room):
    before = {path: path.read_bytes() for path in lexical.rglob("*") if path.is_file()}

    def limit():  # no file may grow beyond this: writes fail as they do when the disk is full
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    arguments = ("index", collection, "-o", lexical, "--model", "none", "--overwrite")
    result = in_a_process(*arguments, flags=flags, preexec_fn=limit)
    assert fails(result, "cannot write")
    assert {path: path.read_bytes() for path in lexical.rglob("*") if path.is_file()} == before


def test_a_folder_that_may_not_be_written(collection, call, tmp_path):
    if os.geteuid() == 0:  # root may write anywhere but here
        target = Path("/sys/counterpoint-index")
    else:
        (tmp_path / "locked").mkdir(mode=0o500)
        target = tmp_path / "locked" / "index"
    assert fails(call("index", collection, "-o", target, "--model", "none"), "cannot write", str(target))


def test_a_page_that_cannot_be_written(lexical, call, tmp_path):
    arguments = ("search", lexical, "fox", "-w", "lexical", "--html", tmp_path / "no" / "such" / "page.html")
    assert fails(call(*arguments), "cannot write", "page.html")


def test_a_read_only_index_can_be_searched(lexical, call):
    for path in [*lexical.rglob("*"), lexical]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        code, out, _ = call("search", lexical, "fox", "-w", "lexical", "--json")
        assert code == 0 and json.loads(out)["hits"]
    finally:
        for path in [lexical, *lexical.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
