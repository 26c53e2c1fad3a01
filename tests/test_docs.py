"""Documentation that runs: Python blocks of a page in order, command lines through their own parser."""

import pkgutil
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import typer

from counterpoint.cli.catalogue import COMMANDS
from counterpoint.cli.main import app
from tests.test_surface import LAYERS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    source = "\n".join(blocks(page, "python"))
    if "minilm" in source:
        pytest.importorskip("sentence_transformers", reason="comes with the embedded model")
    monkeypatch.chdir(tmp_path)
    exec(compile(source, str(page), "exec"), {"__name__": "__docs__"})


def command_lines():
    for page in PAGES:
        for block in blocks(page, "(?:console|bash)"):
            for line in block.replace("\\\n", " ").splitlines():
                line = line.removeprefix("$ ")
                if line.startswith("counterpoint "):
                    yield pytest.param(line, id=f"{page.name}: {line[:60]}")


@pytest.mark.parametrize("line", list(command_lines()))
def test_command_lines_parse(line):
    _, *arguments = shlex.split(line, comments=True)
    group = typer.main.get_command(app)
    command = group.commands[arguments[0]]
    # Commands are made once and keep their first help option, which a context without a parent does not know.
    above = group.context_class(group, info_name="counterpoint", **group.context_settings)
    command.make_context(arguments[0], arguments[1:], parent=above)


def test_the_pages_of_losses_and_codecs_have_all_of_them():
    from counterpoint import learn
    from counterpoint.index.codec import CODECS

    parts = [getattr(learn, name) for name in learn.__all__]
    losses = {each.__name__ for each in parts if isinstance(each, type) and issubclass(each, learn.Loss)}
    for page, names in (("losses.md", losses - {"Loss", "Objective"}), ("search.md", set(CODECS))):
        said = (ROOT / "docs" / page).read_text()
        assert len(names) > 6 and not {name for name in names if f"`{name}" not in said}, page


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_on_its_page(name):
    page = ROOT / "docs" / "command-line.md"
    lines = [line for block in blocks(page, "(?:console|bash)") for line in block.splitlines()]
    assert any(re.match(rf"counterpoint {name}\b", line) for line in lines)


def test_sentences_are_short_and_words_are_ours():
    """`scripts/prose.py` says what to change."""
    done = subprocess.run([sys.executable, ROOT / "scripts" / "prose.py"], capture_output=True, text=True)
    assert not done.returncode, done.stdout + done.stderr


WORD = "be" + "side"  # not in one piece, or this file would have it
UNWANTED = f"kept {WORD} the query"


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("page.md", f"# A page\n\nIt is {UNWANTED}.\n", 3),
        ("page.md", f"```sh\n{UNWANTED}\n```\n\nA vector is `{UNWANTED}`.\n", None),
        ("file.py", f"x = 1\n\n# {UNWANTED}\n", 3),
        ("file.py", f'"""A file.\n\nIt is {UNWANTED}.\n"""\n', 3),
        ("file.py", f'x = 1\ny = f"{{x}} {UNWANTED}"\n', 2),
        ("file.py", f"{WORD} = {WORD}s = 1\n", None),
    ],
)
def test_unwanted_words_are_found(name, text, line, tmp_path):
    """Those of prose, not of code."""
    (tmp_path / name).write_text(text)
    command = [sys.executable, ROOT / "scripts" / "prose.py", tmp_path / name]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == int(line is not None), done.stdout + done.stderr
    assert (f"{name}:{line}: '{WORD}' → next to" in done.stdout) == (line is not None)


def test_make_targets_in_the_text_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"`make (?:[A-Z]+=\S+ )?([a-z-]+)`", page.read_text()))
        named |= set(re.findall(r"^make ([a-z-]+)", page.read_text(), re.MULTILINE))
        assert named <= targets, page


def test_the_reference_says_what_the_names_of_the_package_are():
    rows = re.findall(
        r"^\| (`cp\..+?) \| (.+?) \|$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE
    )
    named = [re.findall(r"`(.+?)`", cell) for row in rows for cell in row]
    said = {}
    for short, full in zip(named[::2], named[1::2], strict=True):
        said |= dict(zip(short, full, strict=True))
    package = import_module("counterpoint")
    assert {f"cp.{name}" for name in package.__all__ if name != "__version__"} == said.keys()
    for short, full in said.items():
        home, _, name = full.rpartition(".")
        if short != "cp.index":  # the package of that name, which can be called
            assert getattr(package, short.removeprefix("cp.")) is getattr(import_module(home), name), short


def test_the_reference_lists_every_public_module():
    """Commands have a page of their own; the other internal modules are for the package itself."""
    ours = {name for _, name, _ in pkgutil.iter_modules([str(ROOT / "src" / "counterpoint")])}
    listed = re.findall(
        r"^::: counterpoint\.(\w+)", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE
    )
    internal = {
        "__main__",
        "cli",
        "dry_run",
        "escapes",
        "identifiers",
        "files",
        "folders",
        "foreign",
        "frames",
        "headers",
        "lazily",
        "locks",
        "pages",
        "provenance",
        "recent",
        "shipped",
        "suggestion",
        "tensors",
        "typed",
        "version",
        "weighted",
    }
    assert set(listed) == ours - internal


def test_the_layers_on_the_design_page_are_those_that_are_enforced():
    (text,) = re.findall(r"^```text\n(errors.*?)```", (ROOT / "docs" / "design.md").read_text(), re.M | re.S)
    assert [set(re.findall(r"\w+", layer)) for layer in text.split("→")] == LAYERS


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+?\.md)(?:#[^)]*)?\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
