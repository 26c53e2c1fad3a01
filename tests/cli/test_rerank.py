"""A cross-encoder as a user meets it: `train`, then `rerank`, and what goes wrong with it."""

import json
import os
from threading import Thread

import pytest
from tests.cli.commands import fails
from tests.encode.test_interactive import save_classifier
from tests.recipe.small import write_collection

from counterpoint.encode import load_interactive
from counterpoint.files import sha256_file
from counterpoint.search import Run

RECIPE = '''"""A cross-encoder."""

from counterpoint.encode import InteractiveEncoder, Linear, Transformer
from counterpoint.learn import BM25Negatives, NegativeLogLikelihood, Train
from counterpoint.recipe import DataSettings, Recipe

recipe = Recipe(
    name="judge",
    paper="nobody 2020",
    model=InteractiveEncoder(Transformer({source!r}), Linear(1), max_length=32),
    stages=[Train(NegativeLogLikelihood(), batch=4, lr=1e-3, negatives=(BM25Negatives(),))],
    data=DataSettings(held_out=0, depth=5),
)
'''


@pytest.fixture
def learnable(tmp_path):
    return write_collection(tmp_path / "learnable")


@pytest.fixture
def first(tmp_path):
    """A run of three training queries and one of the development split."""
    run = Run({f"q{i}": {f"d{(i + n) % 40}": 9.0 - n for n in range(4)} for i in (0, 1, 2, 16)})
    run.write(tmp_path / "first.trec")
    return tmp_path / "first.trec"


def scored(collection, judge, ranked):
    """Scores of single pairs, from the files alone."""
    texts = {}
    for name in ("corpus", "queries"):
        rows = (json.loads(line) for line in (collection / f"{name}.jsonl").read_text().splitlines())
        texts[name] = {row["_id"]: row["text"] for row in rows}
    return {
        query: {d: judge.scores([texts["queries"][query]], [texts["corpus"][d]]).item() for d in documents}
        for query, documents in ranked.items()
    }


def test_train_then_rerank(call, learnable, first, tiny_bert_folder, tmp_path):
    (tmp_path / "judge.py").write_text(RECIPE.format(source=str(tiny_bert_folder)))
    run, output = tmp_path / "run", tmp_path / "reranked.trec"
    code, out, err = call("train", tmp_path / "judge.py", "--data", learnable, "-o", run)
    assert code == 0, err
    assert "counterpoint rerank" in out and "counterpoint index" not in out and "best at step" in out
    code, out, err = call(
        "rerank", learnable, "--run", first, "--model", run, "-k", 3, "-o", output, "--json"
    )
    assert code == 0, err
    told = json.loads(out)
    assert (told["queries"], told["pairs"], told["k"]) == (4, 12, 3)
    found = Run.read(output)
    expected = scored(
        learnable,
        load_interactive(run),
        {f"q{i}": [f"d{(i + n) % 40}" for n in range(3)] for i in (0, 1, 2, 16)},
    )
    assert set(found) == set(expected)
    for query, scores in expected.items():
        assert found.scores(query) == pytest.approx(scores, abs=5e-2)  # where bf16 is faster it rounds
        assert [document for document, _ in found[query]] == sorted(
            found.scores(query), key=found.scores(query).__getitem__, reverse=True
        )
    about = json.loads((tmp_path / "reranked.trec.provenance.json").read_text())
    assert about["run_sha256"] == sha256_file(first) and about["k"] == 3
    assert about["fingerprint"] == load_interactive(run).fingerprint() and about["versions"]["torch"]
    # The folder of such a run is no model for an index, and the message says what it is for.
    assert fails(call("index", learnable, "-o", tmp_path / "i", "--model", run), "counterpoint rerank")
    # It goes on and ends at once: everything is done.
    again = ("train", run, "--data", learnable, "-o", run, "--resume")
    assert call(*again)[0] == 0


def test_a_split_chooses_queries(call, learnable, first, tmp_path):
    judge, output = save_classifier(tmp_path / "judge"), tmp_path / "reranked.trec.gz"
    line = ("rerank", learnable, "--run", first, "--model", judge, "-o", output)
    code, out, err = call(*line, "--split", "dev")
    assert code == 0, err
    assert "1 queries, 4 pairs" in out and "3 queries of the run are not in the split dev" in err
    assert list(Run.read(output)) == ["q16"] and len(Run.read(output)["q16"]) == 4


def test_pairs_that_the_model_cannot_read_whole_are_told(call, learnable, first, tmp_path):
    judge, output = save_classifier(tmp_path / "judge"), tmp_path / "reranked.trec"
    line = ("rerank", learnable, "--run", first, "--model", judge, "-o", output, "--json")
    code, out, err = call(*line)
    assert code == 0 and json.loads(out)["truncated"] == 0 and "longer than" not in err
    corpus = learnable / "corpus.jsonl"
    rows = [json.loads(line) for line in corpus.read_text().splitlines()]
    long = [row | {"text": row["text"] + " cat" * 100} if row["_id"] == "d2" else row for row in rows]
    corpus.write_text("".join(json.dumps(row) + "\n" for row in long))
    code, out, err = call(*line)
    assert code == 0 and json.loads(out)["truncated"] == 3  # of q0, q1 and q2
    assert "3 of 16 pairs are longer than the 64 word-pieces that the model reads" in " ".join(err.split())


def test_a_run_from_a_pipe_has_no_checksum(call, learnable, first, tmp_path):
    judge, output, pipe = save_classifier(tmp_path / "judge"), tmp_path / "out.trec", tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_bytes, args=(first.read_bytes(),))
    writer.start()
    assert call("rerank", learnable, "--run", pipe, "--model", judge, "-o", output)[0] == 0
    writer.join()
    assert json.loads((tmp_path / "out.trec.provenance.json").read_text())["run_sha256"] is None


def test_mistakes(call, learnable, first, tiny_bert_folder, tmp_path):
    judge, output = save_classifier(tmp_path / "judge"), tmp_path / "reranked.trec"
    output.write_text("as it was")

    def rerank(run=first, model=judge, to=output, *more):
        return call("rerank", learnable, "--run", run, "--model", model, "-o", to, *more)

    assert fails(rerank(to=tmp_path / "no" / "x"), "does not exist")
    before = first.read_bytes()
    assert fails(rerank(to=first), "is an input") and first.read_bytes() == before
    assert fails(rerank(run=tmp_path / "nowhere"), "nowhere")
    assert fails(rerank(model=tiny_bert_folder), "not used")
    assert fails(rerank(model=tmp_path / "nobody" / "x"), "no such folder")
    assert fails(rerank(first, judge, output, "--split", "test"), "'test'", "dev, train")
    assert fails(rerank(first, judge, output, "-k", "0"), "-k")
    Run({"q0": {"d1": 1.0, "dx": 0.5}}).write(tmp_path / "other.trec")
    assert fails(rerank(run=tmp_path / "other.trec"), "no text is known for document 'dx'")
    Run({"qx": {"d1": 1.0}}).write(tmp_path / "other.trec")
    assert fails(rerank(run=tmp_path / "other.trec"), "no text is known for query 'qx'")
    assert fails(rerank(tmp_path / "other.trec", judge, output, "--split", "dev"), "has no results")
    assert output.read_text() == "as it was" and not list(tmp_path.glob("*.provenance.json"))
