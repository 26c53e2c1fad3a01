"""What a message tells to do can be done where it is printed."""

import ast
import json
import pickle
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from counterpoint.errors import (
    ArtifactError,
    ConfigError,
    DataError,
    MissingExtraError,
    NotFittedError,
    without_paths,
)

ROOT = Path(__file__).parents[1]


def test_an_error_of_another_process_arrives_as_it_was():
    made = MissingExtraError("reading it", package="pypdf", extra="pdf")
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is MissingExtraError and str(again) == str(made)


def remedy(monkeypatch, origin):
    """The command that a message prints where the package says it came from `origin`."""

    class Installed:
        def read_text(self, name):
            assert name == "direct_url.json"
            return origin

    def distribution(name):
        if origin is None:
            raise PackageNotFoundError(name)
        return Installed()

    monkeypatch.setattr("importlib.metadata.distribution", distribution)
    message = str(MissingExtraError("reading it", package="pypdf", extra="pdf"))
    assert message.startswith(
        "reading it needs the package 'pypdf', which is not installed. Install it with: "
    )
    return message.partition("Install it with: ")[2]


def test_an_extra_is_installed_from_where_the_package_came_from(monkeypatch):
    pip = f"{shlex.quote(sys.executable)} -m pip install"
    origin = {"url": "file:///a%20b/clone", "dir_info": {"editable": True}}
    assert remedy(monkeypatch, json.dumps(origin)) == f"{pip} -e '/a b/clone[pdf]'"
    assert remedy(monkeypatch, json.dumps({**origin, "dir_info": {}})) == f"{pip} '/a b/clone[pdf]'"
    for unknown in (None, "", "{", json.dumps({"url": "https://example.org/x.whl"})):
        assert remedy(monkeypatch, unknown) == f"{pip} -e '.[pdf]', in a clone of the repository"


def test_the_command_is_one_that_pip_takes():
    """As far as it goes without a network: pip finds the project and its extra."""
    message = str(MissingExtraError("reading it", package="pypdf", extra="pdf"))
    command = shlex.split(message.partition("Install it with: ")[2].partition(", in a clone")[0])
    done = subprocess.run(
        [*command, "--dry-run", "--no-deps", "--no-build-isolation", "--no-index", "--quiet"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if "No module named pip" in done.stderr or "hatchling" in done.stderr:
        pytest.skip("no pip, or nothing to build with, in this environment")
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stderr


def extras():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def name_of(requirement):
    return re.split(r"[<>=\[ ]", requirement)[0].lower().replace("_", "-")


def missing():
    """Every `MissingExtraError` of the source: its package and its extra."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "MissingExtraError":
                yield {keyword.arg: keyword.value for keyword in node.keywords}


def test_every_extra_that_a_message_names_brings_the_package():
    found = [{name: ast.literal_eval(value) for name, value in one.items()} for one in missing()]
    assert len(found) > 8
    for one in found:
        brought = {name_of(requirement) for requirement in extras()[one["extra"]]}
        through = {"pyarrow": "datasets"}  # a dependency of what the extra names
        assert through.get(one["package"], one["package"].lower().replace("_", "-")) in brought, one


def test_the_quickstart_environment_reads_every_file_that_its_docs_promise():
    line = re.search(r"installed-run:\s+EXTRAS = (\S+)", (ROOT / "Makefile").read_text())
    brought = {name_of(requirement) for extra in line[1].split(",") for requirement in extras()[extra]}
    wanted = {name_of(requirement) for extra in ("minilm", "pdf", "docx") for requirement in extras()[extra]}
    assert wanted <= brought


def test_clients_are_told_no_path():
    place = Path("/secret/place")
    assert without_paths(ConfigError("one", "two")) == "one; two"
    assert without_paths(DataError("bad row", path=place)) == "bad row"
    assert without_paths(DataError("bad row", path=place, line=12)) == "12: bad row"
    assert without_paths(DataError("bad row")) == without_paths(NotFittedError("bad row")) == "bad row"
    for error in (ArtifactError("gone", path=place), MissingExtraError("it", package="a", extra="b")):
        assert "secret" not in without_paths(error) and sys.prefix not in without_paths(error)
