import pytest

import counterpoint as cp

DOCUMENTS = [
    {"id": "whales", "title": "Whales", "text": "Whales are mammals of the sea.", "year": 2019},
    {"id": "sharks", "text": "Sharks are fish of the sea.", "year": 2021},
    {"id": "a/b ü", "text": "Trains leave from platform nine.", "year": 2024},
]


@pytest.fixture
def folder(tmp_path):
    cp.index(DOCUMENTS, tmp_path / "secret-place" / "notes", model=None, metadata="year:int").close()
    return tmp_path / "secret-place" / "notes"


@pytest.fixture(scope="session")
def tiny_model(tiny_bert_folder, tmp_path_factory):
    """A folder of a random model with a pooled set `mean` and a set `words`."""
    from counterpoint.encode import DualEncoder, Encoder, Mean, Transformer, WholeWords
    from counterpoint.model import Model

    heads = {"mean": Mean(normalise=True), "words": WholeWords()}
    made = tmp_path_factory.mktemp("tiny-model") / "model"
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().save(made)
    return made


@pytest.fixture
def serve(folder):
    """Makes a client of a server with some settings."""
    pytest.importorskip("fastapi")
    from starlette.testclient import TestClient

    from counterpoint.serve.app import application
    from counterpoint.serve.settings import ServeSettings

    opened = []

    def made(indexes=None, base="http://127.0.0.1", **settings):
        app = application(indexes or {"notes": folder}, ServeSettings(**settings))
        client = TestClient(app, base_url=base, raise_server_exceptions=False)
        opened.append(client.__enter__())
        return client

    yield made
    for client in opened:
        client.__exit__(None, None, None)
