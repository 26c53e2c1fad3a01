"""A build whose batches a Ray cluster encodes: the same bytes, whatever dies on the way."""

import json
import os
import signal
from functools import partial

import pytest
from tests.fakes import HashModel
from tests.index.test_resume import DOCUMENTS, files

import counterpoint as cp
from counterpoint.cli.main import main
from counterpoint.cluster.encoding import ray_encoders
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.errors import ConfigError, DataError
from counterpoint.index import IndexSettings, build_index, kept_text, progress, stream
from counterpoint.model import Model
from counterpoint.types import Document

pytestmark = pytest.mark.filterwarnings("ignore::Warning")  # of Ray about itself
LOCALLY = partial(ray_encoders, address="local", processes=2)


class Elsewhere(HashModel):
    """A model that other processes load. The first process that meets "fatal" dies; it leaves a file."""

    def __init__(self, mark=None):
        super().__init__()
        self.mark = mark

    def loader(self, scratch, processes):
        (scratch / "carried").mkdir()
        (scratch / "carried" / "file.txt").write_text("of the model")
        return partial(loaded, scratch / "carried" / "file.txt", self.mark)

    def encode_document(self, texts):
        for text in texts if self.mark is not None else ():
            if "impossible" in text:
                raise ValueError("no vector for that")
            if "always fatal" in text or ("fatal" in text and not self.mark.exists()):
                self.mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_document(texts)


def loaded(path, mark):
    assert path.read_text() == "of the model"
    return Elsewhere(mark)


@pytest.fixture(autouse=True)
def small_batches(ray, monkeypatch):
    monkeypatch.setattr(stream, "BATCH", 7)


def test_a_cluster_makes_the_same_bytes_even_if_a_process_dies(tmp_path):
    documents = [*DOCUMENTS[:20], Document("f", "a fatal text"), *DOCUMENTS[20:]]
    settings, done = IndexSettings(codec="1-bit", shards=3), []
    build_index(documents, Elsewhere(), tmp_path / "one", settings)
    build_index(
        documents, Elsewhere(tmp_path / "mark"), tmp_path / "many", settings,
        elsewhere=LOCALLY, on_progress=done.append,
    )  # fmt: skip
    assert (tmp_path / "mark").exists()
    assert files(tmp_path / "one") == files(tmp_path / "many")
    assert done == sorted(done) and done[-1] == len(documents)


def test_a_real_model_without_a_source_travels(tmp_path, tiny_bert_folder):
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().eval()
    build_index(DOCUMENTS, model, tmp_path / "one", keep_model=False)
    build_index(DOCUMENTS, model, tmp_path / "many", keep_model=False, elsewhere=LOCALLY)
    assert files(tmp_path / "one") == files(tmp_path / "many")


@pytest.mark.long
def test_what_cannot_be_encoded_is_named_and_what_was_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    mark = tmp_path / "mark"
    with pytest.raises(ConfigError, match="3 processes of the cluster died that encoded documents"):
        wrong = [*DOCUMENTS[:14], Document("f", "always fatal"), *DOCUMENTS[14:]]
        build_index(wrong, Elsewhere(mark), tmp_path / "i", elsewhere=LOCALLY)
    with pytest.raises(
        DataError, match=r"document 'x': cannot be encoded \(ValueError: no vector for that\)"
    ):
        wrong = [*DOCUMENTS[:14], Document("x", "impossible"), *DOCUMENTS[14:]]
        build_index(wrong, Elsewhere(mark), tmp_path / "i", elsewhere=LOCALLY, resume=True)
    assert "the first 14 documents of an unfinished build are encoded and kept" in kept_text(tmp_path / "i")
    build_index(DOCUMENTS, Elsewhere(), tmp_path / "i", elsewhere=LOCALLY, resume=True)
    build_index(DOCUMENTS, Elsewhere(), tmp_path / "one")
    assert files(tmp_path / "one") == files(tmp_path / "i")


def test_a_model_that_stays_here_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--ray: this model cannot be loaded in another process"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i", elsewhere=LOCALLY)


@pytest.mark.long
def test_the_library_and_the_command_line_take_a_cluster(tmp_path, tiny_bert_folder, capsys):
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().save(tmp_path / "model")
    rows = [{"id": f"d{i}", "text": f"whale number {i} of the sea"} for i in range(20)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source, model = str(tmp_path / "rows.jsonl"), str(tmp_path / "model")
    cp.index(source, tmp_path / "one", model=model, shards=2).close()
    cp.index(source, tmp_path / "many", model=model, shards=2, ray="local", processes=2).close()
    told = [
        "index",
        source,
        "-o",
        str(tmp_path / "told"),
        "--model",
        model,
        "--shards",
        "2",
        "--ray",
        "local",
    ]
    assert main([*told, "--processes", "2", "--json"]) == 0
    assert files(tmp_path / "one") == files(tmp_path / "many") == files(tmp_path / "told")
    assert json.loads(capsys.readouterr().out)["documents"] == 20
