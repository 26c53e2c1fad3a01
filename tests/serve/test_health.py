"""The health of an index: measured once per commit, with the numbers of `counterpoint.measure`."""

import numpy as np
import pytest
from tests.serve.test_app import problem

import counterpoint as cp
from counterpoint.measure import share_of
from counterpoint.measure.alignment import participation_ratio, spectrum
from counterpoint.measure.isotropy import isotropy
from counterpoint.search.recall import sampled_queries
from counterpoint.serve import health as health_module
from counterpoint.serve.health import health_of

ANIMALS = ("whale", "shark", "octopus", "eagle", "sparrow", "tiger", "horse", "salmon", "beetle", "crab")
PLACES = ("sea", "sky", "river", "forest")
DOCUMENTS = [
    {"id": f"{animal}-{place}", "title": f"{animal} {place}", "text": " ".join((animal, *PLACES[: at + 1]))}
    for animal in ANIMALS
    for at, place in enumerate(PLACES)
]
HEALTH = "/v1/indexes/notes/health"


@pytest.fixture(scope="module")
def vectors(tmp_path_factory, tiny_model):
    folder = tmp_path_factory.mktemp("health") / "vectors"
    cp.index(DOCUMENTS, folder, model=tiny_model).close()
    return folder


def test_numbers_are_those_of_the_measures(serve, vectors):
    found = serve({"notes": vectors}).get(HEALTH).json()
    with cp.open(vectors) as notes:
        searcher, index = notes.searcher(), notes.index
        for name in ("mean", "words"):
            rows = index.bound(searcher.model).take(name, index.positions).values
            expected, variances, shown = isotropy(rows), spectrum(rows), found["sets"][name]["isotropy"]
            assert shown["vectors"] == len(rows)  # fewer than the sample's bound, so all
            for key in ("cosine", "iso_score", "partition"):
                assert shown[key] == pytest.approx(getattr(expected, key), abs=1e-6)
            assert shown["outliers"] == len(expected.outliers)
            assert shown["rank"] == pytest.approx(participation_ratio(variances))
            shares = np.cumsum(variances) / variances.sum()
            assert shown["variance"] == pytest.approx(shares[np.array(shown["directions"]) - 1].tolist())
            assert found["sets"][name]["vectors_per_document"] == pytest.approx(len(rows) / len(DOCUMENTS))
        queries = sampled_queries(index, health_module.QUERIES)
        runs = searcher.rank_parts(queries, 10, ["lexical", "mean", "words"])
        shared = share_of(runs, {name: {name: 1} for name in queries}, 10)
        assert found["parts"]["documents"] == shared.found.to_dict()
        assert found["parts"]["known_items"] == shared.answered.to_dict()
        hybrid = searcher.run(queries, 10)
    assert found["parts"]["hybrid_finds"] == sum(name in dict(hybrid[name]) for name in queries)
    assert found["parts"]["queries"] == len(DOCUMENTS)


def test_lengths_are_a_histogram_of_vectors(serve, vectors):
    found = serve({"notes": vectors}).get(HEALTH).json()["sets"]
    assert found["mean"]["lengths"] is None  # each passage has one
    with cp.open(vectors) as notes:
        lengths = notes.index.sets["words"].lengths
    shown = found["words"]["lengths"]
    assert shown["median"] == np.median(lengths)
    counts, edges = np.histogram(lengths, len(shown["passages"]))
    assert shown["passages"] == counts.tolist() and shown["edges"] == edges.tolist()


def test_samples_are_bounded(vectors, monkeypatch):
    monkeypatch.setattr(health_module, "VECTORS", 12)
    monkeypatch.setattr(health_module, "QUERIES", 5)
    with cp.open(vectors) as notes:
        found = health_of(notes.searcher())
    assert [each["isotropy"]["vectors"] for each in found["sets"].values()] == [12, 12]
    assert found["parts"]["queries"] == 5


def test_truncated_passages_are_counted(serve, tmp_path, tiny_model):
    long = {"id": "long", "text": "whale sea " * 60}
    with pytest.warns(UserWarning, match="longer than the 64 word-pieces"):
        cp.index([*DOCUMENTS, long], tmp_path / "cut", model=tiny_model).close()
    found = serve({"notes": tmp_path / "cut"}).get(HEALTH).json()
    assert found["truncated"] == {"passages": 1, "model_reads": 64}


def test_passages_are_counted_as_their_documents(tmp_path, tiny_model):
    texts = [
        {"id": f"d{at}", "title": animal, "text": f"{animal} swims " * 20}
        for at, animal in enumerate(ANIMALS)
    ]
    cp.index(texts, tmp_path / "cut", model=tiny_model, passage_words=6).close()
    with cp.open(tmp_path / "cut") as notes:
        found = health_of(notes.searcher())
    assert found["passages"] > found["documents"] == len(ANIMALS)
    assert found["parts"]["known_items"]["sizes"]["lexical"] == found["parts"]["queries"]


def test_an_index_of_bm25_only(serve):
    found = serve().get(HEALTH).json()
    assert found["documents"] == 3 and found["sets"] == {}
    assert found["parts"] is None and found["truncated"] is None
    assert "no index 'other'" in problem(serve().get("/v1/indexes/other/health"), 404)


def test_it_is_measured_once_per_commit(serve, monkeypatch):
    from counterpoint.serve import served

    calls = []
    monkeypatch.setattr(served, "health_of", lambda searcher: calls.append(1) or health_of(searcher))
    client = serve()
    before = client.get(HEALTH).json()
    assert client.get(HEALTH).json() == before and len(calls) == 1
    added = {"documents": [{"id": "n", "text": "new", "year": 1}]}
    commit = client.post("/v1/indexes/notes/documents", json=added).json()["commit"]
    after = client.get(HEALTH).json()
    assert after["commit"] == commit and after["documents"] == 4 and len(calls) == 2
