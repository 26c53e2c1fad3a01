"""How a failure becomes a message and an exit code, whatever raised it."""

import errno
import io
import os
import sys

import pytest

from counterpoint.cli import main as module
from counterpoint.cli.main import main
from counterpoint.config import class_named
from counterpoint.errors import ArtifactError, ConfigError, DataError


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


def package(folder, name, code):
    """An installed package with a module of parts, named by another one that imports it."""
    (folder / name).mkdir(parents=True)
    (folder / name / "parts.py").write_text(code)
    (folder / name / "__init__.py").write_text(f"from {name}.parts import Mine\n")
    about = folder / f"{name}-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[counterpoint.parts]\nMine = {name}:Mine\n")


MINE = """
from counterpoint.part import Part

class Mine(Part):
    def fails(self):
        return self.nothing
"""


def test_parts_of_an_installed_package_and_their_failures(tmp_path, monkeypatch, capsys):
    package(tmp_path, "theirs", MINE)
    package(tmp_path, "broken", "import no_such_module")
    monkeypatch.syspath_prepend(tmp_path)
    found = class_named("theirs.parts:Mine")
    assert found.__module__ == "theirs.parts"
    monkeypatch.delitem(sys.modules, "theirs")  # so that the entry point has to be found
    assert class_named("theirs:Mine") is found
    with pytest.raises(
        ArtifactError, match="'broken:Mine', which an .* cannot be imported: ModuleNotFoundError: .*no_such"
    ):
        class_named("broken.parts:Mine")
    with pytest.raises(ArtifactError, match=r"under counterpoint\.parts \(there: broken:Mine, theirs:Mine\)"):
        class_named("theirs.parts:Other")

    def app(*arguments, **options):
        found().fails()

    monkeypatch.setattr(module, "app", app)
    assert main(["info", "x"]) == 2
    err = capsys.readouterr().err
    assert f"{tmp_path}/theirs/parts.py:6: AttributeError: " in err and "bug" not in err


def test_a_failure_names_the_classes_that_are_not_ours(monkeypatch, capsys):
    monkeypatch.setattr(module, "app", raising(RuntimeError("oops")))
    for own, words in (
        ([], "This is a bug in counterpoint. Please report it"),
        (["mine:Loss"], "a bug in counterpoint, unless a class of your own (mine:Loss) breaks its contract"),
        ([f"mine:Loss{i}" for i in range(9)], "mine:Loss4, …) breaks its contract"),
    ):
        monkeypatch.setattr("counterpoint.config.others", lambda own=own: own)
        assert main(["info", "x"]) == 1
        assert words in capsys.readouterr().err
