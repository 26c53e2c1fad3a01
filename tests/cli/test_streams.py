"""The streams of the process, and results that must survive any of them."""

import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.commands import fails, in_a_process

from counterpoint.cli.console import emit, note
from counterpoint.cli.streams import guard_streams, show_traceback
from counterpoint.errors import DataError

EVIL = "\x1b]52;c;aGlj\x07\x9b2J\u202e\n\ud800 مرحبا"


@pytest.fixture
def streams(monkeypatch):
    """Both streams under guard, in an encoding; a function that gives what was written."""

    def guarded(encoding):
        files = {name: io.TextIOWrapper(io.BytesIO(), encoding) for name in ("stdout", "stderr")}
        for name, file in files.items():
            monkeypatch.setattr(sys, name, file)
        guard_streams()

        def written(name):
            getattr(sys, name).flush()
            return files[name].buffer.getvalue().decode(encoding)

        return written

    return guarded


def test_whatever_is_written_is_escaped(streams):
    written = streams("utf-8")
    print(EVIL, "\x1b[1mbold\x1b[0m", end="\r\n")
    assert written("stdout") == "\\x1b]52;c;aGlj\\x07\\u009b2J\\u202e\n\\ud800 مرحبا \x1b[1mbold\x1b[0m\r\n"
    sys.stderr.writelines([EVIL])
    assert "\x1b" not in written("stderr")


def test_a_stream_is_guarded_once_and_keeps_what_it_is(streams):
    streams("latin-1")
    before = sys.stdout
    guard_streams()
    assert sys.stdout is before and before.encoding == "latin-1" and not before.isatty()


def test_a_stream_of_another_kind_stays(monkeypatch):
    streams = io.StringIO(), io.StringIO()
    for name, stream in zip(("stdout", "stderr"), streams, strict=True):
        monkeypatch.setattr(sys, name, stream)
    guard_streams()
    assert (sys.stdout, sys.stderr) == streams


def test_an_encoding_that_lacks_a_character_is_no_failure(streams):
    written = streams("latin-1")
    emit({"é": EVIL}, lambda: "café مرحبا", False)
    emit({"é": EVIL}, lambda: "", True)
    text, result = written("stdout").splitlines()
    assert text == r"café \u0645\u0631\u062d\u0628\u0627" and json.loads(result) == {"é": EVIL}


def test_a_note_is_a_line_whatever_it_quotes(capsys):
    note(f"one {EVIL}", "two")
    assert capsys.readouterr().err == "one \\x1b]52;c;aGlj\\x07\\u009b2J\\u202e\\n\\ud800 مرحبا\ntwo\n"


def test_a_result_keeps_its_own_lines_only(capsys):
    emit({}, lambda: "a\nb\r\x1b[1mc\u2028", False)
    assert capsys.readouterr().out == "a\nb\\r\\x1b[1mc\\u2028\n"


def test_a_traceback_shows_the_message_escaped(capsys):
    try:
        try:
            raise ValueError(EVIL)
        except ValueError as error:
            raise DataError(f"because of {EVIL}") from error
    except DataError as error:
        show_traceback(error)
    shown = capsys.readouterr().err
    assert shown.count(r"\x1b]52;c;aGlj\x07\u009b2J\u202e\n\ud800 مرحبا") == 2
    assert not any(sign in shown for sign in ("\x1b", "\x9b", "\u202e", "\ud800"))
    assert shown.splitlines()[0] == "Traceback (most recent call last):"


@pytest.mark.parametrize("query", ["fox \udcff", EVIL])
def test_any_query_is_answered(lexical, call, tmp_path, query):
    page = tmp_path / "why.html"
    code, out, err = call("search", lexical, query, "--json", "--explain", "--html", page)
    assert code == 0 and json.loads(out)["query"] == query, err
    code, out, err = call("search", lexical, query, "--explain")
    assert code == 0 and "\ud800" not in out and "\udcff" not in out, err


def test_json_in_a_process_of_another_encoding(lexical):
    done = in_a_process("search", lexical, "fox é\x9b", "--json", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0 and json.loads(done.stdout)["query"] == "fox é\x9b"


def test_a_number_beyond_json_is_refused_where_it_stands(tmp_path, call):
    path = tmp_path / "c.jsonl"
    path.write_text('{"_id": "a", "text": "x"}\n{"_id": "b", "text": "y", "weight": [-1e999]}\n')
    found = call("index", path, "-o", tmp_path / "i", "--model", "none")
    assert fails(found, "c.jsonl:2", "-1e999 is not a finite number")


def test_a_usage_mistake_quotes_what_was_typed_escaped(call):
    evil = EVIL.replace("\ud800", "\u2069")
    for words in (("search", "i", "fox", f"--{evil}"), (evil,), ("search", "i", "fox", evil)):
        code, out, err = call(*words)
        assert code == 2 and out == "" and r"\x1b]52;c;aGlj\x07" in err and "\x1b" not in err
        assert re.search(r"\\u202e\\(n|x0a)\\u2069", err)  # the second where typer does it


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
def test_a_full_disk_under_the_output_is_the_users(tmp_path):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "counterpoint", "--help"]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr == (
        "error: the output cannot be written: No space left on device. Free some disk space\n"
    )
