"""docs/claims.md: verdicts, commands, links and figures of every line; the counts at the top of the page."""

import argparse
import importlib
import re
import shlex
import sys
from collections import Counter

import pytest
import typer

from counterpoint.cli.main import app
from tests.test_papers import PRINTED, ROOT, row_id, slug

PAGE = ROOT / "docs" / "claims.md"
VERDICTS = ["not held", "not testable here", "held in part", "held"]  # misses first
SURE = r"95 % interval|\bp\b|resampled|t-test|three seeds|counted|arithmetic"  # what a claim that held needs
NUMBER = r"(?<![\d.,])(?:\d[\d,]*)?\.?\d+"


def rows_of(text):
    """Cells of the lines of a table, without its head."""
    lines = [re.split(r" *\| *", line)[1:-1] for line in text.splitlines() if line.startswith("|")]
    return lines[2:]


TOP, *PARTS = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
CLAIMS = {part.splitlines()[0]: rows_of(part) for part in PARTS}
ROWS = [row for rows in CLAIMS.values() for row in rows]


class Parsed(Exception):
    """A benchmark's command line was accepted; nothing was run."""


def links(cell):
    return [link.partition("#")[::2] for link in re.findall(r"\]\(([^)]+)\)", cell)]


def section(page, anchor):
    """The text under a heading, up to the next one of its level; None if there is no such heading."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```", lambda code: code[0].replace("#", " "), text, flags=re.M | re.S)
    for heading in re.finditer(r"^(#+) (.+)$", prose, re.MULTILINE):
        if slug(heading[2]) == anchor:
            end = re.compile(rf"^#{{1,{len(heading[1])}}} ", re.MULTILINE).search(prose, heading.end())
            return prose[heading.end() : end.start() if end else None]
    return None


def numbers(text):
    """As they are written, without signs and leading zeros."""
    return {re.sub(r"^0(?=\.)", "", number) for number in re.findall(NUMBER, text)}


def test_every_paper_has_claims_and_misses_come_first():
    assert set(CLAIMS) == set(PRINTED)
    for rows in CLAIMS.values():
        found = [VERDICTS.index(row[1]) for row in rows]
        assert found and found == sorted(found)


def test_no_claim_is_there_twice():
    assert max(Counter((paper, row[0]) for paper, rows in CLAIMS.items() for row in rows).values()) == 1


def test_the_counts_at_the_top_are_those_of_the_lines():
    head = re.findall(r"^\| paper \| (.+) \|$", TOP, re.MULTILINE)
    assert head == [" | ".join([*VERDICTS, "all"])]
    wanted = {}
    for paper, rows in CLAIMS.items():
        count = Counter(row[1] for row in rows)
        wanted[paper] = [*(count[verdict] for verdict in VERDICTS), len(rows)]
    wanted["all"] = [sum(column) for column in zip(*wanted.values(), strict=True)]
    found = {re.sub(r"\[(.+)\]\(.+\)", r"\1", name): [int(c) for c in cells] for name, *cells in rows_of(TOP)}
    assert found == wanted


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_a_line_says_where_the_claim_is_printed_and_how_sure_its_verdict_is(row):
    claim, verdict, _, evidence, _, _ = row
    assert re.search(r"\((?:.*\b(?:tables?|figures?|sections?|equations?|abstract|question)\b.*)\)", claim)
    assert verdict in VERDICTS
    assert re.search(SURE if verdict == "held" else f"{SURE}|no interval", evidence), evidence


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_the_figures_of_a_line_are_in_the_sections_that_it_links(row):
    sources = [section(page, anchor) for page, anchor in links(row[5])]
    assert sources and None not in sources, row[5]
    missing = numbers(f"{row[2]} {row[3]}") - numbers(" ".join(sources))
    assert not missing, missing


def test_links_of_the_text_lead_somewhere():
    for page, anchor in links(PAGE.read_text(encoding="utf-8")):
        page = page or PAGE.name
        assert (ROOT / "docs" / page).is_file(), page
        assert not anchor or section(page, anchor) is not None, f"{page}#{anchor}"


@pytest.mark.parametrize("row", ROWS, ids=row_id)
def test_the_command_of_a_line_is_accepted(row, monkeypatch):
    (line,) = re.findall(r"^`([^`]+)`$", row[4])
    program, *arguments = shlex.split(line)
    if program == "counterpoint":
        group = typer.main.get_command(app)
        above = group.context_class(group, info_name="counterpoint", **group.context_settings)
        group.commands[arguments[0]].make_context(arguments[0], arguments[1:], parent=above)
        return
    assert program == "python" and arguments[0] == "-m" and arguments[1].startswith("benchmarks.")
    parse = argparse.ArgumentParser.parse_args

    def parse_only(self, *given, **named):
        parse(self, *given, **named)
        raise Parsed

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parse_only)
    monkeypatch.setattr(sys, "argv", arguments[1:])
    with pytest.raises(Parsed):
        importlib.import_module(arguments[1]).main()
