"""docs/papers.md: nothing of the five papers is missing, nothing claimed twice, and what is named exists."""

import importlib
import re
import shlex
from collections import Counter
from functools import reduce
from pathlib import Path

import pytest
import typer

from counterpoint.cli.main import app
from counterpoint.recipe import load_recipe, shipped_recipes, variants_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "papers.md"
PRINTED = {  # how many tables, figures and numbered equations each paper has, counted in the papers
    "Isotropic DR": {"table": 3, "figure": 4, "equation": 10},
    "HIL": {"table": 9, "figure": 8, "equation": 2},
    "ColBERTer": {"table": 5, "figure": 5, "equation": 20},
    "DAFT": {"table": 3, "figure": 6, "equation": 11, "algorithm": 1},
    "RoC": {"table": 6, "figure": 6, "equation": 11},
}
RANGE = r"\d+(?: to \d+)?"


def sections():
    """Rows of cells by the heading of the paper."""
    found = {}
    for part in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        lines = [re.split(r" *(?<!\\)\| *", line)[1:-1] for line in part.splitlines() if line.startswith("|")]
        found[part.splitlines()[0]] = lines[2:]
    return found


ROWS = [(paper, row) for paper, rows in sections().items() for row in rows]
NAMES = {
    name
    for recipe, path in shipped_recipes().items()
    for name in (recipe, *(f"{recipe}:{variant}" for variant in variants_of(path)))
}


def row_id(value):
    return value if isinstance(value, str) else value[0]


def places(cell):
    """What is printed under a number: `tables 3 and 4; figures 7 to 9` names five."""
    for kind, numbers in re.findall(rf"(table|figure|equation|algorithm)s? ({RANGE}(?: and {RANGE})?)", cell):
        for found in re.findall(RANGE, numbers):
            first, *last = map(int, found.split(" to "))
            yield from ((kind, number) for number in range(first, (last or [first])[0] + 1))


def code(cell):
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("paper", PRINTED)
def test_every_table_figure_and_equation_has_one_line(paper):
    found = Counter(place for row in sections()[paper] for place in places(row[0]))
    wanted = {(kind, at + 1) for kind, count in PRINTED[paper].items() for at in range(count)}
    assert set(found) == wanted and set(found.values()) == {1}


def test_the_page_has_the_five_papers_and_no_line_twice():
    assert set(sections()) == set(PRINTED)
    assert max(Counter((paper, row[0]) for paper, row in ROWS).values()) == 1


@pytest.mark.parametrize(("paper", "row"), ROWS, ids=row_id)
def test_what_a_line_names_exists(paper, row):
    what, how, functions, tests, result = row
    assert what and code(functions) and code(tests), f"{paper}: {what}"
    for name in code(how):
        assert is_there(name), name
    for name in code(functions):
        module, *rest = name.split(".")
        reduce(member, rest, importlib.import_module(f"counterpoint.{module}"))
    for name in code(tests):
        path, _, function = name.partition("::")
        assert (ROOT / path).is_file(), name
        assert not function or f"def {function}(" in (ROOT / path).read_text(encoding="utf-8"), name
    (link,) = re.findall(r"\]\(([^)]+)\)", result)
    page, _, anchor = link.partition("#")
    titles = re.findall(r"^#+ (.+)$", (ROOT / "docs" / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert not anchor or anchor in {slug(title) for title in titles}, link


def is_there(name):
    """A command that its parser takes, a benchmark with these options, or a recipe."""
    first, *arguments = shlex.split(name)
    if first == "python":
        script = (ROOT / arguments[1].replace(".", "/")).with_suffix(".py")
        files = [*script.parent.glob(f"{script.stem}*.py"), ROOT / "benchmarks" / "common.py"]
        source = "".join(file.read_text(encoding="utf-8") for file in files)
        options = [word for word in arguments[2:] if word.startswith("--")]
        return script.is_file() and all(f'"{option}"' in source for option in options)
    if first == "counterpoint":
        command = typer.main.get_command(app).commands[arguments[0]]
        command.make_context(arguments[0], arguments[1:])
        return True
    return name in NAMES


def member(found, name):
    """An attribute, or a module that has not been imported yet."""
    if hasattr(found, name):
        return getattr(found, name)
    return importlib.import_module(f"{found.__name__}.{name}")


def slug(title):
    return re.sub(r"[^\w]+", "-", title.replace("`", "").lower()).strip("-")


def test_every_recipe_of_the_five_is_named():
    named = {name for _, row in ROWS for name in code(row[1])}
    authors = {
        "Isotropic DR": "Jung et al. 2023",
        "HIL": "Kim, Lee and Hwang 2024",
        "ColBERTer": "Hofstätter et al. 2022",
        "DAFT": "Leonhardt et al. 2022",
        "RoC": "Lee et al. 2023",
    }
    papers = {name: load_recipe(name).paper for name in NAMES}
    ours = {name for name in NAMES if any(author in papers[name] for author in authors.values())}
    assert {paper for paper in authors if any(authors[paper] in papers[n] for n in ours)} == set(authors)
    assert ours <= named, sorted(ours - named)
