"""An index of the server encodes queries one by one or together, whichever its model does faster."""

import sys

import pytest
from tests.fakes import DOCUMENTS

pytest.importorskip("fastapi")
import counterpoint as cp  # noqa: E402
from counterpoint.encode import DualEncoder, Encoder, Mean, Transformer, WholeWords  # noqa: E402
from counterpoint.library.options import SearchOptions  # noqa: E402
from counterpoint.library.remembered import Remembered  # noqa: E402
from counterpoint.model import Model  # noqa: E402
from counterpoint.serve.served import Served  # noqa: E402


@pytest.fixture
def saved(tiny_bert_folder, tmp_path):
    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().save(tmp_path / "model")
    cp.index(DOCUMENTS, tmp_path / "notes", model=tmp_path / "model").close()
    return tmp_path / "notes"


def test_an_export_encodes_in_the_thread_of_the_search(saved, serve):
    client = serve({"notes": saved})
    body = {"query": ["the quick fox", "lazy dog"]}
    assert len(client.post("/v1/indexes/notes/search", json=body).json()["answers"]) == 2
    assert "counterpoint_encoded_together_count 0.0" in client.get("/metrics").text


def test_torch_encodes_together(saved, serve):
    client = serve({"notes": saved}, backend="torch")
    body = {"query": ["the quick fox", "lazy dog"]}
    assert len(client.post("/v1/indexes/notes/search", json=body).json()["answers"]) == 2
    assert "counterpoint_encoded_together_sum 2.0" in client.get("/metrics").text
    lexical = {"query": "fox", "workflow": "lexical"}
    assert client.post("/v1/indexes/notes/search", json=lexical).status_code == 200
    assert "counterpoint_encoded_together_sum 2.0" in client.get("/metrics").text


def test_what_first_searches_load_is_loaded_before(saved):
    pytest.importorskip("numba")
    served = Served("notes", saved)
    assert not served.batches(SearchOptions())
    served.warm()
    assert isinstance(served.searcher(SearchOptions()).model, Remembered)
    assert "counterpoint.index.compiled.maxsim" in sys.modules
    served.close()
