"""What a message tells to do can be done where it is printed."""

import json
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from counterpoint import errors
from counterpoint.errors import MissingExtraError

ROOT = Path(__file__).parents[1]


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

    monkeypatch.setattr(errors, "distribution", distribution)
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
