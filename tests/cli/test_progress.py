"""Bars on a terminal, lines elsewhere, nothing with --quiet, and a word while a model loads."""

import re
import sys
import time

import pytest
from tests.cli.on_a_terminal import on_a_terminal

from counterpoint.cli import ahead as module_ahead
from counterpoint.cli import progress as module
from counterpoint.cli.ahead import ahead, sized
from counterpoint.cli.console import note, quietly
from counterpoint.cli.progress import line_of, loading, progress
from counterpoint.cli.train import Bars
from counterpoint.errors import DataError
from counterpoint.index import build_index
from counterpoint.library import BuildOptions, prepare
from counterpoint.types import Document


@pytest.mark.parametrize(
    ("counts", "seconds", "rate", "said"),
    [
        ((0, 100), 12, 0, "searching: 0 of 100 queries (0 %), after 00:12"),
        ((99, 100), 10, 9.9, "searching: 99 of 100 queries (99 %), 9.9 a second, 00:00 left"),
        ((1234, None), 10, 123.4, "searching: 1,234 queries, 123 a second"),
        ((100, 100), 70, 2, "searching: 100 of 100 queries (100 %), finishing, after 01:10"),
        ((7300, 14600), 3600, 2, "searching: 7,300 of 14,600 queries (50 %), 2 a second, 1:00:50 left"),
    ],
)
def test_a_line_has_total_rate_and_time_left(counts, seconds, rate, said):
    assert line_of("searching: ", "queries", counts, seconds, rate) == said


def test_off_a_terminal_there_is_a_line_now_and_then_even_if_nothing_moves(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.05)
    with progress("indexing", "documents", 10) as update:
        time.sleep(0.2)
        update(5)
        time.sleep(0.2)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 9
    assert lines[0].startswith("indexing: 0 of 10 documents (0 %), after ")
    assert re.fullmatch(r"indexing: 5 of 10 documents \(50 %\), \d+ a second, 00:00 left", lines[-1])


def test_a_bar_is_finishing_after_the_last_one_until_the_work_ends(monkeypatch, capsys):
    monkeypatch.setattr(module, "TICK", 0.02)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with progress("indexing", "documents", 10) as update:
        update(10)
        time.sleep(0.3)
    shown = [line for line in capsys.readouterr().err.split("\r") if "10/10" in line]
    assert "finishing" in shown[0] and "finishing" not in shown[-1]


def test_what_an_earlier_run_did_is_no_speed(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.05)
    with progress("train", "steps", 1000, 900):
        time.sleep(0.08)
    assert capsys.readouterr().err.startswith("train: 900 of 1,000 steps (90 %), after ")


def test_what_is_read_again_on_the_way_is_no_speed(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.05)
    with progress("indexing", "documents", 1000, 900) as update:
        for done in (300, 600, 900):
            update(done)
        time.sleep(0.08)
    assert capsys.readouterr().err.startswith("indexing: 900 of 1,000 documents (90 %), after ")


def test_steps_of_training_are_timed_from_the_first_one_here(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.05)
    now = 1000.0
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    with Bars() as bars:
        bars.stage("train", 100, 10)
        bars.busy("mining", 512)
        now += 170
        time.sleep(0.08)
        bars.step(11, {"loss": 1.0})
        time.sleep(0.08)
        bars.step(21, {"loss": 1.0})
        now += 5
        time.sleep(0.08)
    lines = dict.fromkeys(capsys.readouterr().err.splitlines())
    assert "train: 10 of 100 steps (10 %), mining 512, after 02:50" in lines
    assert "train: 11 of 100 steps (11 %), after 02:50" in lines
    assert "train: 21 of 100 steps (21 %), 2 a second, 00:39 left" in lines


def test_a_bar_of_training_is_timed_from_the_first_step_here(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Bars() as bars:
        bars.stage("train", 100, 10)
        bars.bar.start_t -= 170
        bars.bar.last_print_t -= 170
        bars.step(11, {})
        assert bars.bar.n == 11 and bars.bar.format_dict["elapsed"] < 10
        assert not bars.bar.format_dict["rate"]
        bars.bar.mininterval = 0
        time.sleep(0.05)
        bars.step(21, {})
        assert bars.bar.n == 21 and bars.bar.format_dict["rate"] > 1


def test_quiet_says_nothing_but_errors(monkeypatch, capsys):
    monkeypatch.setattr(module, "EVERY", 0.01)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with quietly(True), progress("indexing", "documents", 10) as update, loading("minilm"):
        note("wrote something")
        time.sleep(0.05)
        update(3)
    assert capsys.readouterr() == ("", "")


def test_quiet_stands_anywhere_on_the_line(call, collection, tmp_path):
    code, out, err = call("index", collection, "-o", tmp_path / "a", "--model", "none")
    assert code == 0 and "documents" in out and err
    code, out, err = call("index", "--quiet", collection, "-o", tmp_path / "b", "--model", "none")
    assert code == 0 and "documents" in out and err == ""
    code, out, err = call("--quiet", "index", collection, "-o", tmp_path / "b", "--model", "none")
    assert code == 2 and out == "" and "already holds an index" in err
    code, out, err = call("search", tmp_path / "b", "--", "--quiet")
    assert code == 0 and "No document matches" in out


def test_documents_are_counted_ahead_and_all_come():
    documents = [Document(str(n), "text") for n in range(50)]
    assert ahead(iter(documents)) == (documents, 50)
    for less in ({"most": 20}, {"seconds": -1}):
        found, size = ahead(iter(documents), **less)
        assert size is None and list(found) == documents


def test_what_goes_wrong_in_reading_is_raised_in_its_place():
    def broken():
        yield Document("1", "text")
        raise DataError("broken", path="a.jsonl", line=2)

    found, size = ahead(broken())
    assert size is None
    read = iter(found)
    assert next(read).id == "1"
    with pytest.raises(DataError, match="a.jsonl:2: broken"):
        next(read)


def test_lines_are_counted_where_there_are_too_many_to_read_ahead(collection, tmp_path, monkeypatch):
    monkeypatch.setattr(module_ahead, "ahead", lambda documents: (documents, None))
    corpus = collection / "corpus.jsonl"
    for source, size in (
        (collection, 4),
        (corpus, 4),
        (collection / "qrels" / "test.tsv", None),
        ("-", None),
    ):
        build = prepare([Document("1", "a")].__iter__(), tmp_path / "i", BuildOptions(model=None))
        assert sized(build, str(source), whole=True).size == size
        assert sized(build, str(source), whole=False).size is None


def test_a_build_tells_of_every_batch_that_was_encoded(tiny_bert_folder, tmp_path):
    from counterpoint.loading import load_model

    told = []
    documents = [Document(str(n), "the cat sat on the mat " * (1 + 7 * n)) for n in range(5)]
    build_index(documents, load_model(tiny_bert_folder), tmp_path / "index", on_progress=told.append)
    assert told == sorted(told) and told[-1] == 5 and told[0] < 5


def test_a_model_tells_how_many_texts_are_done(tiny_bert_folder):
    from counterpoint.loading import load_model

    told = []
    model = load_model(tiny_bert_folder)
    model.encode_counted(["a dog", "the cat sat on the mat " * 8, ""], told.append)
    assert sum(told) == 3 and len(told) > 1


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_has_a_bar_and_a_word_while_the_model_loads(collection, tiny_bert_folder, tmp_path):
    index, search = on_a_terminal(
        [
            ["index", collection, "-o", "i", "--model", tiny_bert_folder],
            ["search", "i", "fox", "-k", "1"],
        ],
        tmp_path,
    )
    assert index.code == search.code == 0, index.text + search.text
    assert f"loading {tiny_bert_folder}…" in index.text
    assert re.search(r"indexing: 100%.*4/4 \[00:0\d<00:00, .*documents/s\]", index.text)
    assert "loading " in search.text
