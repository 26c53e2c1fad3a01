"""A model with three sets and two different sides; and no file left where mteb or we could leave one."""

import atexit
import os
import shutil
import tempfile

# mteb makes this folder when it is imported, in the home folder unless told otherwise.
os.environ["MTEB_CACHE"] = tempfile.mkdtemp(prefix="mteb-")

import onnxruntime  # noqa: F401  # when first imported, it writes into the home folder: now, not in a test's
import pytest
from tests.integrations.notes import DOCUMENTS

import counterpoint as cp
from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer, WholeWords
from counterpoint.model import Model

atexit.register(shutil.rmtree, os.environ["MTEB_CACHE"])


@pytest.fixture(scope="session")
def model(tiny_bert_folder):
    """Its sides have different texts; `mean` is not of unit length, `unit` is."""
    heads = {"mean": Mean(), "words": WholeWords(), "unit": Mean(normalise=True)}
    backbone = Transformer(str(tiny_bert_folder))
    encoder = Encoder(backbone, heads, TextInput(prompt="query: "), TextInput(max_length=20))
    search = {"weights": {"lexical": 1.0, "mean": 2.0, "words": 1.0}, "idf": {"words": 0.5}}
    return Model(DualEncoder(encoder), search=search, codec="float32").setup().eval()


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """A place for temporary folders and a home, both empty when a test ends."""
    for name in ("scratch", "home"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "scratch"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MTEB_CACHE")
    yield tmp_path / "scratch"
    assert os.listdir(tmp_path / "scratch") == [] == os.listdir(tmp_path / "home")


@pytest.fixture
def folder(tmp_path):
    """An index of `DOCUMENTS`, BM25 only, in passages of six words."""
    place = tmp_path / "secret-place" / "notes"
    cp.index(DOCUMENTS, place, model=None, metadata="year:int", passage_words=6).close()
    return place


@pytest.fixture
def notes(folder):
    with cp.open(folder) as opened:
        yield opened
