"""No control character of a document, a file's name or an argument reaches a terminal."""

import json
import re
import shutil
import sys

import pytest
from tests.cli.on_a_terminal import on_a_terminal, write
from tests.encode.test_interactive import save_classifier
from tests.recipe.small import WORDS

# Writes the clipboard, clears the screen, colours, moves up, turns text round, begins lines of its own.
EVIL = (
    "\x1b]52;c;aGFja2Vk\x07\x1b[2J\x1b[38;5;199m\x9b31m\x1b[A\u202egnp.exe\u2066\u200f\u061c\x7f\x08"
    "\r\nINJECTED!\tx\x85INJECTED!\u2028INJECTED!\u2029INJECTED!\x0bINJECTED!\x0cINJECTED!"
)
WORD = "".join(EVIL.split())  # for ids where white space separates columns
NAME = EVIL[:-30]  # for files; with line ends, and not too long
SIGNS = (r"\x1b]52;c;aGFja2Vk\x07", r"\u202e", r"\u009b31m")  # what is shown instead

UNSAFE = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def save_collection(folder, rows=6):
    documents = [
        {"_id": f"{WORD}{n}", "title": f"{WORDS[n]} {EVIL}{n}", "text": f"fox {n} {EVIL} fox{EVIL}",
         "metadata": {EVIL: EVIL, "kind": f"{EVIL}{n % 2}"}}
        for n in range(rows)
    ]  # fmt: skip
    queries = [
        {"_id": f"q{WORD}{n}", "text": f"fox {n} {WORDS[n]} {EVIL}", "kind": f"{EVIL}{n}"}
        for n in range(rows)
    ]
    write(folder / "corpus.jsonl", jsonl(documents))
    write(folder / "queries.jsonl", jsonl(queries))
    for split, first in (("test", 0), ("train", 2), (WORD, 0)):
        judged = [f"q{WORD}{n}\t{WORD}{n}\t1" for n in range(first, first + 4)]
        write(folder / "qrels" / f"{split}.tsv", "\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    return folder


def save_run(path, first=0):
    lines = [
        f"q{WORD}{q} Q0 {WORD}{d} {rank} {9 - rank}.5 {WORD}"
        for q in range(4)
        for rank, d in enumerate(range(first, first + 3))
    ]
    return write(path, "\n".join(lines) + "\n")


@pytest.fixture
def place(tmp_path):
    """A folder of folders and files with such names, ids and texts."""
    place = tmp_path / NAME
    save_collection(place / "c")
    save_run(place / f"a{WORD}.trec")
    save_run(place / "b.trec", first=1)
    write(place / "files" / f"{NAME}.txt", f"A fox in a file {EVIL}.")
    write(place / "files" / f"x.{WORD}", "of an unknown kind")
    write(place / "twice.jsonl", jsonl([{"_id": EVIL, "text": "a"}, {"_id": EVIL, "text": "b"}]))
    write(place / f"bad{NAME}.jsonl", jsonl([{"_id": "1", "text": "a"}, {EVIL: 1}]))
    write(place / "key.jsonl", jsonl([{EVIL: 1}]))
    write(place / "json.jsonl", '{"_id": "1", "text": "a"}\n{"' + NAME + "\n")
    write(place / "number.jsonl", '{"_id": "1", "text": "a", "' + EVIL.encode("unicode_escape").decode()
          .replace("\\x", "\\u00") + '": 1e999}\n')  # fmt: skip
    write(place / "grade.tsv", f"q 0 d {WORD}\n")
    write(place / "score.trec", f"q Q0 {WORD} 1 {WORD} t\n")
    write(place / "again.trec", f"q Q0 {WORD} 1 2 t\nq Q0 {WORD} 2 1 t\n")
    write(place / "run" / "metrics.jsonl", jsonl([
        {"number": 0, "stage": EVIL, "step": 1, "loss": 1.0, "stopped": EVIL},
        {"number": 0, "stage": EVIL, "step": 2, EVIL: 0.5},
    ]))  # fmt: skip
    return place


def commands(place):
    """Every command that starts without torch: exit code and words."""
    a, b, c = place / f"a{WORD}.trec", place / "b.trec", place / "c"
    new = f"new{NAME}"
    return [
        (0, "index", c, "-o", f"i{NAME}", "--model", "none"),
        (0, "index", "files", "-o", "files-index", "--model", "none"),
        (0, "index", f"bad{NAME}.jsonl", "-o", "lenient", "--model", "none", "--lenient"),
        (0, "index", f"bad{NAME}.jsonl", "-o", place / "l2", "--model", "none", "--lenient", "--json"),
        (0, "info", f"i{NAME}"),
        (0, "verify", f"i{NAME}"),
        (0, "search", f"i{NAME}", "fox"),
        (0, "search", f"i{NAME}", f"fox {EVIL}", "--explain", "--html", f"{new}.html"),
        (0, "search", f"i{NAME}", EVIL.replace("INJECTED!", "zzz"), "-w", "lexical"),
        (0, "search", f"i{NAME}", f"fox {EVIL}", "--explain", "--json"),
        (0, "search", "files-index", "fox", "--explain"),
        (0, "evaluate", c, "--split", "test", "--index", f"i{NAME}", "--per-query", f"{new}.csv",
         "--save-run", f"{new}.trec", "--slice", "query.kind", "--slice", "document.kind"),
        (0, "evaluate", c, "--split", WORD, "--run", a, "--run", b, "--slice", f"bm25:{a}"),
        (0, "evaluate", c, "--split", "test", "--run", a, "--json"),
        (0, "evaluate", place / "c" / "qrels" / "test.tsv", "--run", a, "--split", EVIL),
        (0, "compare", f"{WORD}={c}", f"{WORD}1={a}", f"{WORD}2={b}", "--split", "test",
         "--complementarity", "2"),
        (0, "compare", c, a, b, "--split", "test", "--format", "markdown"),
        (0, "compare", c, a, b, "--split", "test", "--format", "latex"),
        (0, "compare", c, a, b, "--split", "test", "--json"),
        (0, "overlap", c, "--split", "test", "--index", f"i{NAME}", "--run", f"{EVIL}={b}", "-k", "2"),
        (0, "fuse", a, b, "-o", f"{new}.fused", "--missing", "zero"),
        (0, "folds", c, "-o", f"{new}.folds", "--split", "test", "--folds", "3"),
        (0, "evaluate", c, "--split", "test", "--run", a, "--run", b, "--folds", f"{new}.folds"),
        (0, "diagnose", "run"),
        # what goes wrong
        (2, "index", "twice.jsonl", "-o", "x", "--model", "none"),
        (2, "index", f"bad{NAME}.jsonl", "-o", "x", "--model", "none"),
        (2, "index", "key.jsonl", "-o", "x", "--model", "none"),
        (2, "index", "json.jsonl", "-o", "x", "--model", "none"),
        (2, "index", "number.jsonl", "-o", "x", "--model", "none"),
        (2, "index", f"missing{EVIL}", "-o", "x", "--model", "none"),
        (2, "index", c, "-o", f"i{NAME}", "--model", "none"),
        (2, "index", c, "-o", "x", "--model", f"none{EVIL}"),
        (2, "search", f"missing{EVIL}", "fox"),
        (2, "search", f"i{NAME}", "fox", "-w", "dense"),
        (2, "search", f"i{NAME}", "fox", "--weights", f"{EVIL}=1"),
        (2, "search", f"i{NAME}", "fox", f"--{EVIL}"),
        (2, "search", f"i{NAME}", "fox", "-k", EVIL),
        (2, "search", f"i{NAME}", "fox", "--workflow", EVIL),
        (2, "search", f"i{NAME}", "fox", EVIL),
        (2, EVIL),
        (2, "evaluate", c, "--split", f"no{EVIL}", "--index", f"i{NAME}"),
        (2, "evaluate", c, "--split", "test", "--run", a, "--measures", EVIL),
        (2, "evaluate", c, "--split", "test", "--run", f"missing{EVIL}"),
        (2, "evaluate", "grade.tsv", "--run", a),
        (2, "evaluate", c, "--split", "test", "--run", "score.trec"),
        (2, "evaluate", c, "--split", "test", "--run", "again.trec"),
        (2, "evaluate", c, "--split", "test", "--run", a, "--slice", EVIL),
        (2, "evaluate", c, "--split", "test", "--run", a, "--per-query", f"no{NAME}/x.csv"),
        (2, "compare", c, f"{EVIL}={a}", f"{EVIL}={a}", "--split", "test"),
        (2, "overlap", c, "--split", "test", "--run", f"{EVIL}={a}", "--run", f"{EVIL}={b}"),
        (2, "fuse", a, b, "-o", "x", "--weights", f"{EVIL}=1"),
        (2, "verify", f"missing{EVIL}"),
        (2, "diagnose", f"missing{EVIL}"),
        (2, "search", f"missing{EVIL}", "fox", "--debug"),
    ]  # fmt: skip


RECIPE = """
from counterpoint.learn import Contrastive, Train
from tests.recipe.small import declared

EVIL = {evil!r}
stage = Train(Contrastive(), declared().stages[0].scorer, name=EVIL, batch=2, steps=2)
recipe = declared({source!r}, name=EVIL, paper=EVIL, about=EVIL, stages=[stage])
"""
GRID = """
measures = ["nDCG@10"]
models = ["none", {{name = {name}, model = {model}}}]
workflows = ["lexical", "dense"]
[[collections]]
name = {name}
source = "c"
split = "test"
"""


@pytest.fixture
def modelled(place, tiny_bert_folder):
    """The same folder with models, recipes and a grid in it."""
    shutil.copytree(tiny_bert_folder, place / f"bert{NAME}")
    save_classifier(place / f"judge{NAME}")
    write(place / f"recipe{NAME}.py", RECIPE.format(evil=EVIL, source=f"bert{NAME}"))
    write(place / f"wrong{NAME}.py", RECIPE.format(evil=EVIL, source=f"no{EVIL}"))
    write(place / f"recipe{NAME}.toml", f"format = 1\n[recipe]\nname = {json.dumps(EVIL)}\n")
    model = json.dumps(f"bert{NAME}")
    write(place / f"grid{NAME}.toml", GRID.format(name=json.dumps(EVIL), model=model))
    return place


def with_models(place):
    """Commands that load torch."""
    a, c = place / f"a{WORD}.trec", place / "c"
    recipe = f"recipe{NAME}.py"
    return [
        (0, "index", c, "-o", f"m{NAME}", "--model", f"bert{NAME}"),
        (0, "info", f"m{NAME}"),
        (0, "search", f"m{NAME}", f"fox {EVIL}", "--explain", "--html", "m.html"),
        (0, "evaluate", c, "--split", "test", "--index", f"m{NAME}"),
        (
            2,
            "tune",
            f"m{NAME}",
            c,
            "--split",
            "test",
            "--grid",
            "0:1:0.5",
            "--dry-run",
        ),  # all weights are equal
        (0, "overlap", c, "--split", "test", "--index", f"m{NAME}", "-k", "2"),
        (0, "diagnose", f"bert{NAME}", c, "--split", WORD, "--sample", "10", "--layers", "--plots", "plots"),
        (0, "fit", "whitening", f"bert{NAME}", c, "-o", f"white{NAME}", "--rank", "2"),
        (0, "mine", c, "-o", f"lists{NAME}", "--split", "train", "--count", "1"),
        (0, "rerank", c, "--run", a, "--model", f"judge{NAME}", "-o", f"again{NAME}.trec"),
        (0, "recipe", "show", recipe),
        (0, "recipe", "check", recipe),
        (0, "train", recipe, "--data", "c", "-o", f"trained{NAME}", "--dev-split", "test"),
        (0, "recipe", "show", f"trained{NAME}"),
        (0, "diagnose", f"trained{NAME}"),
        (0, "sweep", f"grid{NAME}.toml", "-o", f"sweep{NAME}"),
        (0, "sweep", f"grid{NAME}.toml", "-o", f"sweep{NAME}", "--dry-run"),
        (2, "train", recipe, "--data", "c", "-o", f"trained{NAME}"),
        (2, "train", recipe, "--data", "c", "-o", "run2", "--set", f"{EVIL}=1"),
        (2, "train", recipe, "--data", f"no{EVIL}", "-o", "run2"),
        (2, "train", f"no{EVIL}", "--data", "c", "-o", "run2"),
        (2, "train", f"wrong{NAME}.py", "--data", "c", "-o", "run2"),
        (2, "recipe", "show", f"no{EVIL}"),
        (2, "recipe", "show", f"recipe{NAME}.toml"),
        (2, "rerank", c, "--run", a, "--model", f"no{EVIL}", "-o", "x.trec"),
        (2, "sweep", f"no{EVIL}", "-o", "sweep"),
        (2, "perturb", c, "-o", "perturbed", "--synonyms", f"no{EVIL}"),
        (2, "mine", c, "-o", "x", "--teacher", EVIL),
        (2, "index", c, "-o", f"m{NAME}", "--model", f"bert{NAME}"),
    ]


def check(wanted, place, term="dumb", style="\r|\n"):
    """Run them, and look at every character that came."""
    shown = on_a_terminal([words for _, *words in wanted], place, term=term)
    for (code, *words), found in zip(wanted, shown, strict=True):
        what = f"{words!r}: {found.text!r}"
        assert found.code == code, what
        assert code == 1 or "This is a bug" not in found.text, what
        foreign = UNSAFE.findall(re.sub(style, "", found.text))
        assert not foreign, f"{foreign} of {what}"
        if words[0] != "search" or term != "dumb":  # rich breaks lines of a dumb terminal after 80 characters
            assert not any(line.startswith("INJECTED!") for line in re.split("[\r\n]", found.text)), what
    return [found.text for found in shown]


def test_no_control_character_reaches_the_terminal(place):
    texts = check(commands(place), place)
    for sign in SIGNS:
        assert sum(sign in text for text in texts) > len(texts) / 2  # they were there to be shown


@pytest.mark.long
def test_no_control_character_reaches_the_terminal_with_models(modelled):
    check(with_models(modelled), modelled, style="\r|\n|\x1b\\[A")  # two bars: one is a line above the other


@pytest.mark.long
def test_only_our_own_colours_reach_a_terminal_that_has_some(place):
    wanted = [words for words in commands(place) if words[1] in ("search", "folds", "evaluate")]
    index = commands(place)[:2]
    texts = check([*index, *wanted], place, term="xterm-256color", style="\r|\n|\x1b\\[[0-9;]*m")
    assert any("\x1b[1m" in text for text in texts)  # titles are bold
    assert not any("\x1b[38;5;199m" in text for text in texts)
