"""Valid files with random damage, through the commands that read them."""

import json
import shutil

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.cli.hostile import survives
from tests.cli.test_hostile_models import corpus, saved, unsigned  # noqa: F401  (two of them are fixtures)
from tests.recipe.small import declared

PIECES = (
    b"\0", b"\xff", b"\n", b"\r", b"\t", b" ", b'"', b"'", b"\\", b"\\ud800", b"[", b"]", b"{", b"}", b",",
    b":", b"=", b"-", b".", b"_", b"0", b"-1", b"1e999", b"nan", b"NaN", b"inf", b"null", b"true", b"none",
    b"9" * 20, b"9" * 5000, b"1e12", b"1000000000000", b"[" * 2000, b'{"a":' * 2000, b"\xef\xbb\xbf",
    b"\xd9\xa3", b"x" * 5000,
)  # fmt: skip
STEP = st.tuples(
    st.sampled_from(["insert", "replace", "delete", "repeat", "swap"]),
    st.floats(0, 1, exclude_max=True),
    st.integers(1, 40),
    st.sampled_from(PIECES) | st.binary(min_size=1, max_size=4),
)


def damaged(content, steps):
    for step, place, length, piece in steps:
        at = int(place * len(content))
        before, inside, after = content[:at], content[at : at + length], content[at + length :]
        content = {
            "insert": before + piece + inside + after,
            "replace": before + piece + after,
            "delete": before + after,
            "repeat": before + inside * 2 + after,
            "swap": before + inside[::-1] + after,
        }[step]
    return content


@pytest.fixture(scope="module")
def place(tmp_path_factory, corpus, saved, tiny_bert_folder):  # noqa: F811
    """Everything that a command of `DOORS` reads."""
    folder = tmp_path_factory.mktemp("hostile-fuzz")
    shutil.copytree(corpus, folder / "c")
    shutil.copy(folder / "c" / "corpus.jsonl", folder / "c.jsonl")
    (folder / "c.csv").write_text('id,title\n1,"a fox"\n2,b\n')
    (folder / "c.html").write_text("<html><title>a</title><p>b <b>c</b><table><tr><td>d</table></html>")
    (folder / "c.md").write_text("# a\n\n* b *c* [d](e)\n\n```\nf\n```\n")
    (folder / "grid.toml").write_text(
        'models = ["none"]\nworkflows = ["lexical"]\nk = 10\n[[collections]]\nname = "a"\nsource = "c"\n'
        '[search]\nweights = ["lexical=1"]\n'
    )
    (folder / "recipe.toml").write_text(declared(tiny_bert_folder).to_toml())
    shutil.copytree(saved, folder / "saved")
    unsigned(folder / "saved")
    shutil.copytree(tiny_bert_folder, folder / "foreign")
    (folder / "folds.json").write_text(
        json.dumps({"format": 1, "seed": 0, "folds": [{"train": ["q"], "validation": ["q"], "test": ["q"]}]})
    )
    return folder


ASSETS = "saved/assets/encoder.query.backbone"
DOORS = {
    "c/corpus.jsonl": ("index", "c", "-o", "out", "--model", "none"),
    "c.jsonl": ("index", "c.jsonl", "-o", "out", "--model", "none", "--lenient"),
    "c.csv": ("index", "c.csv", "-o", "out", "--model", "none"),
    "c.html": ("index", "c.html", "-o", "out", "--model", "none"),
    "c.md": ("index", "c.md", "-o", "out", "--model", "none"),
    "c/queries.jsonl": ("evaluate", "c", "--run", "c/run.trec", "--slice", "words"),
    "c/qrels/test.tsv": ("evaluate", "c", "--run", "c/run.trec"),
    "c/run.trec": ("evaluate", "c", "--run", "c/run.trec"),
    "folds.json": ("evaluate", "c", "--run", "c/run.trec", "--run", "c/run.trec", "--folds", "folds.json"),
    "grid.toml": ("sweep", "grid.toml", "-o", "out", "--dry-run"),
    "recipe.toml": ("recipe", "check", "recipe.toml"),
    "saved/part.toml": ("index", "c", "-o", "out", "--model", "saved"),
    f"{ASSETS}/config.json": ("index", "c", "-o", "out", "--model", "saved"),
    f"{ASSETS}/tokenizer.json": ("index", "c", "-o", "out", "--model", "saved"),
    "foreign/config.json": ("index", "c", "-o", "out", "--model", "foreign"),
    "foreign/tokenizer.json": ("index", "c", "-o", "out", "--model", "foreign"),
    "foreign/tokenizer_config.json": ("index", "c", "-o", "out", "--model", "foreign"),
    "foreign/model.safetensors": ("index", "c", "-o", "out", "--model", "foreign"),
}


def fuzz(name, steps, place, capsys, monkeypatch):
    monkeypatch.chdir(place)
    path = place / name
    content = path.read_bytes()
    try:
        path.write_bytes(damaged(content, steps))
        survives(capsys, *DOORS[name])
    finally:
        path.write_bytes(content)
        shutil.rmtree(place / "out", ignore_errors=True)


EVERY = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@pytest.mark.parametrize("name", DOORS)
@given(steps=st.lists(STEP, min_size=1, max_size=3))
@settings(EVERY, max_examples=4)
def test_a_sample(name, steps, place, capsys, monkeypatch):
    fuzz(name, steps, place, capsys, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("name", DOORS)
@given(steps=st.lists(STEP, min_size=1, max_size=4))
@settings(EVERY, max_examples=300)
def test_many(name, steps, place, capsys, monkeypatch):
    fuzz(name, steps, place, capsys, monkeypatch)
