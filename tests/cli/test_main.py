"""How a failure becomes a message and an exit code, whatever raised it."""

import errno
import io
import os
import sys

import pytest

from counterpoint.cli import main as module
from counterpoint.cli.main import main
from counterpoint.errors import ConfigError, DataError


def raising(error):
    def app(*arguments, **options):
        raise error

    return app


def noted(error, note):
    error.add_note(note)
    return error


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ConfigError("one", "two"), 2, ["error: one", "two"]),
        (DataError("broken", path="a.tsv", line=3), 2, ["a.tsv"]),
        (KeyboardInterrupt(), 130, ["interrupted"]),
        (
            PermissionError(errno.EACCES, "Permission denied", "secret.tsv"),
            2,
            ["secret.tsv: Permission denied"],
        ),
        (FileNotFoundError(errno.ENOENT, "No such file", "ours"), 1, ["This is a bug"]),
        (OSError(errno.EDOM, "odd"), 1, ["This is a bug", "--debug"]),
        (RuntimeError("oops"), 1, ["RuntimeError: oops", "This is a bug"]),
    ],
)
def test_what_is_raised_is_told(error, code, said, monkeypatch, capsys):
    monkeypatch.setattr(module, "app", raising(error))
    assert main(["info", "x"]) == code
    err = capsys.readouterr().err
    assert all(words in err for words in said), err
    if code == 1:
        with pytest.raises(type(error)):
            main(["info", "x", "--debug"])
        return
    assert main(["info", "x", "--debug"]) == code
    err = capsys.readouterr().err
    assert code == 130 or ("Traceback" in err and all(words in err for words in said)), err


def test_an_interrupt_says_what_it_left(monkeypatch, capsys):
    command = raising(noted(KeyboardInterrupt(), "index: existing files are unchanged"))
    monkeypatch.setattr("typer.core.TyperGroup.invoke", lambda self, ctx: command())
    assert main(["info", "x"]) == 130
    assert "interrupted; index: existing files are unchanged" in capsys.readouterr().err


def test_a_reader_that_goes_away_ends_nothing_as_failed(monkeypatch):
    monkeypatch.setattr(module, "app", raising(BrokenPipeError()))
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["info", "x"]) == 0


def test_a_full_disk_under_stdout_is_the_users(monkeypatch, capsys, tmp_path):
    with open(tmp_path / "out", "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(module, "app", raising(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))
        assert main(["info", "x"]) == 2
    assert "No space left on device. Free some disk space" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--version"], 0), (["info"], 2), (["--debug", "info", "x"], 2)]
)
def test_the_process_ends_with_the_code(arguments, code, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "guard_streams", lambda: None)
    monkeypatch.setattr(sys, "argv", ["counterpoint", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
