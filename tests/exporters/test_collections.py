"""A real collection with the default model: an engine that holds a part ranks as well as the index does."""

from statistics import fmean

import pytest
from tests.exporters.sending import ask_lancedb, ask_milvus, ask_qdrant

import counterpoint as cp
from counterpoint.data import open_collection
from counterpoint.exporters import query_for
from counterpoint.measure import evaluate
from counterpoint.search import Run

pytestmark = [pytest.mark.shared, pytest.mark.minilm, pytest.mark.long]

MEASURE = "nDCG@10"
FIXED = {"adapt": False, "feedback": 0}  # what no engine holds
SAME = {  # what an engine computes as the index does
    "qdrant": ("lexical", "dense", "words", "hybrid"),
    "lancedb": ("dense", "words"),
    "milvus": ("lexical", "dense"),
}
OTHERWISE = {"qdrant": (), "lancedb": ("lexical", "hybrid"), "milvus": ("hybrid",)}


@pytest.fixture(scope="module")
def collection(shared):
    return open_collection(shared / "data" / "med")


@pytest.fixture(scope="module")
def med(collection, tmp_path_factory):
    place = tmp_path_factory.mktemp("med") / "med.index"
    cp.index(collection, place).close()
    with cp.open(place) as opened:
        yield opened


@pytest.fixture(params=list(SAME))
def engine(request, med, tmp_path):
    """The name of an engine that has everything, and what sends a request to it."""
    name = request.param
    assert med.export_to(name, folder=tmp_path / name)["written"] == len(med)
    if name == "lancedb":
        lancedb = pytest.importorskip("lancedb")
        table = lancedb.connect(tmp_path / name).open_table("med")
        yield name, lambda asked: ask_lancedb(table, asked)
        return
    if name == "qdrant":
        client = pytest.importorskip("qdrant_client").QdrantClient(path=str(tmp_path / name))
        yield name, lambda asked: ask_qdrant(client, asked)
    else:
        client = pytest.importorskip("pymilvus").MilvusClient(str(tmp_path / name / "milvus.db"))
        yield name, lambda asked: ask_milvus(client, asked)
    client.close()


@pytest.mark.filterwarnings("ignore:.*word-pieces that minilm reads")
def test_an_engine_ranks_as_well_as_the_index(engine, med, collection, say):
    name, ask = engine
    queries, qrels = collection.queries("test"), collection.qrels("test")

    def measured(run):
        return evaluate(run, qrels, MEASURE).measures[MEASURE]

    for workflow in (*SAME[name], *OTHERWISE[name]):
        options = FIXED if workflow == "hybrid" else {}
        run = med.run(queries, 10, workflow=workflow, **options)
        ours = measured(run)
        found = {
            number: dict(ask(query_for(med, name, text, workflow=workflow)))
            for number, text in queries.items()
        }
        theirs = measured(Run(found))
        shared = fmean(len(found[number].keys() & dict(run[number]).keys()) / 10 for number in queries)
        say(f"{name} {workflow}: nDCG@10 {theirs:.4f}, index {ours:.4f}, the same documents {shared:.3f}")
        if workflow in SAME[name]:
            # The index rounds a query's pooled vector to 8 bits: neighbours of nearly equal score may swap.
            assert shared > 0.99 and abs(theirs - ours) < 0.005
        else:
            assert abs(theirs - ours) < 0.05
    if name == "qdrant":
        say(f"index, adaptive and with feedback: nDCG@10 {measured(med.run(queries, 10)):.4f}")
