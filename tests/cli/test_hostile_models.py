"""Models that are broken or made to break something: refused, naming the file, before memory is taken."""

import shutil
import tomllib

import pytest
import tomli_w
from tests.cli.hostile import survives

from counterpoint.encode import (
    DualEncoder,
    Encoder,
    Gate,
    InteractiveEncoder,
    Linear,
    Mean,
    Routed,
    Router,
    Stack,
    TokenVectors,
    Transformer,
)
from counterpoint.model import Model
from counterpoint.transform import Glow, Nice, Normalise, Whitening

HUGE = 10**12


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile-corpus")
    (folder / "corpus.jsonl").write_text('{"_id": "a", "title": "", "text": "the cat sat"}\n')
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "cat"}\n')
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\ta\t1\n")
    (folder / "run.trec").write_text("q Q0 a 1 1.0 t\n")
    return folder


@pytest.fixture(scope="module")
def saved(tmp_path_factory, tiny_bert_folder):
    """A saved model with every kind of argument."""
    folder = tmp_path_factory.mktemp("hostile-model") / "model"
    heads = {
        "mean": Mean(projection=Stack([Linear(8, activation="tanh"), Linear(6)]), normalise=True),
        "tokens": TokenVectors(skip=(",", "."), projection=Linear(4)),
        "routed": Routed(Router("softmax", "new"), projection=Linear(4)),
    }
    encoder = DualEncoder(
        Encoder(Transformer(str(tiny_bert_folder), layers=1), heads), gates={"tokens": Gate()}
    )
    maps = [
        Normalise(),
        Whitening(6, rank=6),
        Nice(6, couplings=1, layers=1, width=4),
        Glow(6, levels=[1], width=4),
    ]
    declared = Model(encoder, {"mean": maps}, search={"weights": {"mean": 1.0, "tokens": 0.5}})
    declared.setup()
    for step in maps[1:]:
        step.count_.fill_(1)
    declared.save(folder)
    return folder


@pytest.fixture(scope="module")
def judge(tmp_path_factory, tiny_bert_folder):
    folder = tmp_path_factory.mktemp("hostile-judge") / "judge"
    InteractiveEncoder(Transformer(str(tiny_bert_folder)), Linear(1)).save(folder)
    return folder


def test_they_are_sound_before(saved, judge, corpus, tiny_bert_folder, tmp_path, capsys):
    for number, model in enumerate((saved, tiny_bert_folder)):
        index = tmp_path / str(number)
        assert survives(capsys, "index", corpus, "-o", index, "--model", model)[0] == 0
    rerank = ("rerank", corpus, "--run", corpus / "run.trec", "-o", tmp_path / "r", "--model", judge)
    assert survives(capsys, *rerank)[0] == 0


def refused(capsys, corpus, folder, output, *names):
    """Nothing is built of the model, and the message names it."""
    code, _, err = survives(
        capsys, "index", corpus, "-o", output, "--model", folder, outputs=[output], names=[folder, *names]
    )
    assert code == 2, err


def places(data, path=()):
    """Every place of plain data, containers included."""
    yield path
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        yield from places(value, (*path, key))


def replaced(data, path, value):
    """A copy of plain data with another value at a place."""
    if not path:
        return value
    copied = dict(data) if isinstance(data, dict) else list(data)
    copied[path[0]] = replaced(data[path[0]], path[1:], value)
    return copied


ODD = {
    "text": "8",
    "true": True,
    "0": 0,
    "-1": -1,
    "1e12": 1e12,
    "10 to the 12": HUGE,
    "2 to the 63 - 1": 2**63 - 1,
    "inf": float("inf"),
    "nan": float("nan"),
    "list": [1],
    "table": {"a": 1},
    "nothing": {"none": True},
    "another part": {"part": "counterpoint.encode:Unit"},
    "no part": {"part": "os:system"},
}


@pytest.mark.parametrize("name", ODD)
def test_a_value_in_part_toml(name, saved, corpus, tmp_path, capsys):
    """Each odd value at every place of the declaration in turn."""
    document = tomllib.loads((saved / "part.toml").read_text())
    copy = shutil.copytree(saved, tmp_path / "model")
    for number, path in enumerate(places(document["part"])):
        changed = {**document, "part": replaced(document["part"], path, ODD[name])}
        (copy / "part.toml").write_text(tomli_w.dumps(changed))
        survives(capsys, "info", copy)
        index = tmp_path / f"index{number}"
        code, _, err = survives(capsys, "index", corpus, "-o", index, "--model", copy, outputs=[index])
        print(path, code, err[:300])
