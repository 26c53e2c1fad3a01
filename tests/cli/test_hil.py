"""HIL's rows by their documented commands, to the end, on tiny random backbones."""

import json

import pytest
from tests.encode.formats import save_stanford
from tests.encode.tiny import save_tiny_bert
from tests.recipe.small import write_collection

from counterpoint.encode import load_encoder
from counterpoint.index import Index
from counterpoint.loading import load_model
from counterpoint.search import Searcher


@pytest.fixture
def learnable(tmp_path):
    return write_collection(tmp_path / "learnable")


@pytest.fixture
def triples(learnable, tmp_path):
    """Query, relevant document and another one, by id."""
    rows = [f"q{at}\td{at}\td{at + 20}\n" for at in range(16)]
    (tmp_path / "triples.tsv").write_text("".join(rows))
    return "--data", tmp_path / "triples.tsv", "--documents", learnable


def changes(**settings):
    return [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]


def succeeds(found):
    assert found[0] == 0, found[2]
    return found[1]


def maxsim(query, document):
    """Σ over the query's rows of the best inner product, by loops."""
    return sum(max(float(a @ b) for b in document) for a in query)


def test_the_sum_of_two_modules_ranks_every_document(call, learnable, tmp_path):
    """ColBERT-λ: one index has both sets, and no document lacks a score of either (docs/hil.md)."""
    one, run, index = save_tiny_bert(tmp_path / "one", positions=192), tmp_path / "run", tmp_path / "index"
    settings = {
        "model.encoder.query.backbone.source": one,
        "model.encoder.query.own.aniso.source": one,
        "model.encoder.query.heads.iso.projection.dim": 8,
        "model.encoder.query.heads.aniso.projection.dim": 8,
        "stages.train.steps": 2,
        "stages.train.batch": 4,
        "stages.train.lr": 1e-3,
    }
    succeeds(call("train", "colbert-lambda", "--data", learnable, "-o", run, *changes(**settings)))
    succeeds(call("index", learnable, "-o", index, "--model", run, "--codec", "float32"))
    found = json.loads(
        succeeds(call("evaluate", learnable, "--index", index, "-w", "words", "--split", "dev", "--json"))
    )
    assert found["queries"] == 4
    model = load_model(run)
    assert list(model.sets) == ["iso", "aniso"]
    queries = {f"q{at}": f"where is the red {at}" for at in range(3)}
    lines = (learnable / "corpus.jsonl").read_text().splitlines()
    documents = {row["_id"]: row["text"] for row in map(json.loads, lines)}
    q, d = (
        model.encode_query(list(queries.values())),
        model.encode_document(list(documents.values())),
    )
    with Index(index) as opened:
        ranked = Searcher(opened, model).run(queries, 40, workflow="words")
    for at, query in enumerate(queries):
        scores = ranked.scores(query)
        assert scores.keys() == documents.keys()
        for place, document in enumerate(documents):
            wanted = sum(maxsim(q[on][at], d[on][place]) for on in ("iso", "aniso"))
            assert scores[document] == pytest.approx(wanted, rel=1e-5)


def test_colbertv2_hil_from_its_checkpoint_to_a_search(call, learnable, triples, tmp_path):
    """A checkpoint in ColBERTv2's layout, saved as a model, trained on as HIL, indexed and searched."""
    save_stanford(tmp_path / "published", query_maxlen=32, doc_maxlen=60)
    load_encoder(tmp_path / "published").save(tmp_path / "colbertv2")
    run, index = tmp_path / "v2", tmp_path / "index"
    settings = {
        "start": tmp_path / "colbertv2",
        "model.encoder.query.backbone.source": tmp_path / "colbertv2",
        "model.encoder.query.document.max_length": 60,  # as the tiny one has positions
        "model.encoder.query.heads.l.projection.dim": 8,  # the published ones have 128, as HIL has
        "model.encoder.query.heads.h.projection.dim": 8,
        "data.held_out": 4,
    }
    arguments = ("train", "hil-paper:from-colbertv2", *triples, "-o", run, *changes(**settings))
    few = {"stages.train.steps": 2, "stages.train.batch": 4, "stages.train.keep": "last"}
    succeeds(call(*arguments, *changes(**few)))
    start = json.loads((run / "start.json").read_text())
    assert start["new"] == ["encoder.query.heads.l.projection.linear_.weight"] and not start["unused"]
    assert not start["other_shapes"]
    succeeds(call("index", learnable, "-o", index, "--model", run))
    hits = json.loads(succeeds(call("search", index, "where is the red cat", "--json")))["hits"]
    assert len(hits) == 10 and all(abs(hit["score"]) < 1e3 for hit in hits)
    measured = json.loads(
        succeeds(call("evaluate", learnable, "--index", index, "-w", "words", "--split", "dev", "--json"))
    )
    assert measured["queries"] == 4
    search = load_model(run).search
    assert search["idf"] == {"l": 1.0} and 1.0 not in search["weights"].values()  # 1/σ, as it was learnt
