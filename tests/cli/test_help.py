"""What help says: short enough, whole, and nothing that is not there."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import typer

import counterpoint
from counterpoint.cli import complete
from counterpoint.cli.catalogue import COMMANDS, GROUPS
from counterpoint.cli.main import app

SOURCE = Path(counterpoint.__file__).parent
GROUP = typer.main.get_command(app)
NESTED = [(name, below) for name, made in GROUP.commands.items() for below in getattr(made, "commands", {})]
CALLS = [(), *((name,) for name in COMMANDS), *NESTED]
PROSE = {"as", "reads", "that"}  # words of sentences: "another version of counterpoint that …"


def shown(call, *words):
    code, out, err = call(*words, "-h")
    assert code == 0 and err == ""
    return out


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_help_fits_a_terminal_and_is_whole(words, call):
    text = shown(call, *words)
    assert all(len(line) <= 80 for line in text.splitlines())
    below = re.sub(r"^Usage:.*?\n\n", "", text, flags=re.DOTALL)
    assert not re.search(r"(\.\.\.|\S…)$", below, re.MULTILINE), "cut off"
    assert re.search(r"^  -h, --help +Show this message and exit\.$", text, re.MULTILINE)
    assert call(*words, "--help")[1] == text


def test_commands_stand_in_groups_one_line_each(call):
    text = shown(call)
    for group, entries in GROUPS.items():
        (section,) = re.findall(rf"^{group}:\n((?:  .*\n)+)", text, re.MULTILINE)
        assert [line.split()[0] for line in section.splitlines()] == list(entries)
        assert all(entry.line in section and not entry.line.endswith(".") for entry in entries.values())


@pytest.mark.parametrize("name", ["index", "search", "evaluate", "train"])
def test_examples_are_shown_and_parse(name, call):
    text = shown(call, name)
    examples = COMMANDS[name].examples
    assert len(examples) >= 3
    for line in examples:
        assert f"    {line}\n" in text
        words = shlex.split(line.rpartition("|")[2].partition(" > ")[0])
        assert words[0] == "counterpoint"
        GROUP.commands[words[1]].make_context(words[1], words[2:])


def strings_of(path):
    """Every string of a module, the pieces of f-strings put together."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def options_of(command):
    found = {option for param in command.params for option in (*param.opts, *param.secondary_opts)}
    for below in getattr(command, "commands", {}).values():
        found |= options_of(below)
    return found | {"--help", "-h", "--debug", "--quiet"}


def test_nothing_names_a_command_or_an_option_that_is_not_there():
    anywhere = set().union(*map(options_of, GROUP.commands.values()), options_of(GROUP))
    theirs = {"--upgrade", "--porcelain", "--untracked-files", "--head"}  # of pip, git and ray
    wrong = []
    for path in SOURCE.rglob("*.py"):
        for text in strings_of(path):
            for name, rest in re.findall(r"\bcounterpoint ([a-z][a-z-]*)([^`\n]*)", text):
                if name in PROSE:
                    continue
                if name not in COMMANDS:
                    wrong.append(f"{path}: counterpoint {name}")
                    continue
                for option in re.findall(r"(?<!\S)(--[a-z][\w-]*)", rest):
                    if option not in options_of(GROUP.commands[name]):
                        wrong.append(f"{path}: {name} {option}")
            for option in re.findall(r"(?<![\w<!-])--[a-z][a-z0-9-]*", text):
                if option not in anywhere | theirs:
                    wrong.append(f"{path}: {option}")
    assert not wrong, "\n".join(wrong)


def test_a_misspelt_command_is_told_the_nearest(call):
    code, _, err = call("serch", "x")
    assert code == 2 and "Did you mean 'search'?" in err
    assert call("qwertz")[0] == 2


def completed(words, monkeypatch, capsys):
    monkeypatch.setenv("_COUNTERPOINT_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        app(prog_name="counterpoint", standalone_mode=False)
    return capsys.readouterr().out.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("counterpoint tr", ["train"]),
        ("counterpoint search x -w de", ["dense", "dense-words"]),
        ("counterpoint search x --model minilm-", ["minilm-dense", "minilm-tokens"]),
        ("counterpoint index x --model none", ["none"]),
        ("counterpoint evaluate x --measures nD", ["nDCG"]),
        ("counterpoint train hil", ["hil", "hil-paper"]),
    ],
)
def test_completion_knows_commands_models_workflows_measures_and_recipes(words, offered, monkeypatch, capsys):
    found = completed(words, monkeypatch, capsys)
    assert set(offered) <= set(found) and all(word.startswith(words.split()[-1]) for word in found)


def test_completion_offers_the_models_that_there_are():
    from counterpoint.presets import PRESETS

    assert list(PRESETS) == list(complete.MODELS)
    assert complete.measures("nDCG@10 R")[0].startswith("nDCG@10 R")
