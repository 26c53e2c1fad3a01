"""Several processes encode: the same bytes, bounded memory, and an end to all of them whatever happens."""

import math
import multiprocessing
import os
import signal
from functools import partial

import pytest
from tests.fakes import HashModel, StaticModel
from tests.index.test_resume import DOCUMENTS, Stop, files, interrupted, until

from counterpoint.cli.main import main
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.errors import ConfigError, DataError
from counterpoint.index import IndexSettings, build_index, parallel, progress, stream
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.types import Document

LONG = pytest.mark.long  # starting a process takes seconds


class Elsewhere(HashModel):
    """A model that other processes load; some words do harm there."""

    def loader(self, scratch, processes):
        assert not list(scratch.iterdir())
        return partial(Elsewhere, self.dim, self.seed)

    def encode_document(self, texts):
        here = multiprocessing.parent_process() is None
        for text in texts if not here else ():
            if "impossible" in text:
                raise ValueError("no vector for that")
            if "fatal" in text:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_document(texts)


class Changed(Elsewhere):
    """Becomes another model on the way."""

    def loader(self, scratch, processes):
        return partial(Elsewhere, self.dim, self.seed + 1)


class Lost(Elsewhere):
    """Cannot be loaded."""

    def loader(self, scratch, processes):
        return partial(load_model, str(scratch / "nothing"))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(stream, "BATCH", 7)
    yield
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("processes", [2, pytest.param(3, marks=LONG)])
def test_bytes_do_not_depend_on_the_number_of_processes(tmp_path, processes):
    settings = IndexSettings(codec="1-bit")
    one = build_index(DOCUMENTS, Elsewhere(), tmp_path / "one", settings)
    done = []
    many = build_index(
        DOCUMENTS, Elsewhere(), tmp_path / "many", settings, processes=processes, on_progress=done.append
    )
    assert files(tmp_path / "one") == files(tmp_path / "many")
    assert one.report == many.report and one.segments[0].vectors == many.segments[0].vectors
    assert done == sorted(done) and done[-1] == len(DOCUMENTS)


def test_a_real_model_without_a_source_makes_the_same_bytes(tmp_path, tiny_bert_folder):
    heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
    model = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder)), heads))).setup().eval()
    for count in (1, 2):
        build_index(DOCUMENTS, model, tmp_path / str(count), keep_model=False, processes=count)
    assert files(tmp_path / "1") == files(tmp_path / "2")


def test_one_batch_at_a_time_for_each_process(tmp_path):
    read, ahead = [0], []

    def source():
        for document in DOCUMENTS:
            read[0] += 1
            yield document

    with parallel.encoders_of(Elsewhere(), 2) as encoders:
        written = 0
        documents = stream.DocumentStream(source(), Elsewhere(), encoders=encoders)
        for batch, _ in documents.batches():
            written += len(batch)
            ahead.append(read[0] - written)
    assert written == len(DOCUMENTS) and max(ahead) == 2 * stream.BATCH


def test_a_build_goes_on_with_another_number_of_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    build_index(DOCUMENTS, Elsewhere(), tmp_path / "whole")
    interrupted(tmp_path / "i", 40, Elsewhere(), processes=2)
    build_index(DOCUMENTS, Elsewhere(), tmp_path / "i", resume=True, processes=3)
    assert files(tmp_path / "i") == files(tmp_path / "whole")


@pytest.mark.parametrize("at", [pytest.param(0, marks=LONG), 20, pytest.param(59, marks=LONG)])
def test_a_document_that_cannot_be_encoded_is_named(tmp_path, monkeypatch, at):
    monkeypatch.setattr(progress, "EVERY", math.inf)  # a slow machine would keep what was done, to resume
    documents = [*DOCUMENTS[:at], Document("bad", "an impossible text"), *DOCUMENTS[at:]]
    with pytest.raises(DataError, match=r"document 'bad': cannot be encoded \(ValueError: no vector"):
        build_index(documents, Elsewhere(), tmp_path / "i", processes=2)
    assert not (tmp_path / "i").exists()


def test_a_process_that_dies_is_told(tmp_path):
    documents = [*DOCUMENTS[:20], Document("bad", "a fatal text"), *DOCUMENTS[20:]]
    with pytest.raises(ConfigError, match="that encoded documents 'd14' to 'bad' died, perhaps out of mem"):
        build_index(documents, Elsewhere(), tmp_path / "i", processes=2)


@pytest.mark.parametrize(
    "model, message",
    [
        (Changed(), "another model was loaded than the build's"),
        (Lost(), "'d0' to 'd6': cannot be .*Art"),
    ],
)
def test_a_model_that_is_not_the_same_elsewhere_is_refused(tmp_path, model, message):
    with pytest.raises(DataError, match=message):
        build_index(DOCUMENTS, model, tmp_path / "i", processes=2)


@pytest.mark.parametrize("error", [KeyboardInterrupt, pytest.param(Stop, marks=LONG)])
def test_an_interrupt_ends_all(tmp_path, error):
    def source():
        try:
            yield from until(30)
        except Stop:
            raise error from None

    with pytest.raises(error):
        build_index(source(), Elsewhere(), tmp_path / "i", processes=2)


def test_what_cannot_be_is_refused(tmp_path, capsys):
    with pytest.raises(ConfigError, match="at least 1, found 0"):
        build_index(DOCUMENTS, Elsewhere(), tmp_path / "i", processes=0)
    with pytest.raises(ConfigError, match="processes=2: this model cannot be loaded in another process"):
        build_index(DOCUMENTS, StaticModel(), tmp_path / "i", processes=2)
    build_index(DOCUMENTS, None, tmp_path / "i", processes=2)  # nothing to encode
    assert main(["index", str(tmp_path), "-o", str(tmp_path / "j"), "--processes", "0"]) == 2
    assert "--processes" in capsys.readouterr().err
