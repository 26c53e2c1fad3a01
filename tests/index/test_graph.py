"""The approximate first stage against the exhaustive one, which is its oracle."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import DOCUMENTS, HashModel, UniModel

from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.index import Index, IndexSettings, VectorSet, build_index
from counterpoint.index.checked import CheckedFile
from counterpoint.index.dense import DenseStore
from counterpoint.index.graph import Graph
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document, Ragged

ANN = IndexSettings(lexical=None, ann="hnsw")


class Clustered:
    """Pooled vectors around random centres, by the number that a text is; queries lie between them."""

    sets = {"cls": VectorSet(24, True, False)}

    def __init__(self, documents=3000, queries=30):
        rng = np.random.default_rng(0)
        centres = rng.normal(size=(40, 24))
        self.documents = centres[rng.integers(0, 40, documents)] + 0.4 * rng.normal(size=(documents, 24))
        self.queries = centres[rng.integers(0, 40, queries)] + 0.6 * rng.normal(size=(queries, 24))

    def fingerprint(self):
        return "clustered"

    def encode_query(self, texts):
        return self._encode(self.queries, texts)

    def encode_document(self, texts):
        return self._encode(self.documents, texts)

    def _encode(self, rows, texts):
        return {"cls": Ragged.from_list([rows[int(text)][None].astype(np.float32) for text in texts], dim=24)}


@pytest.fixture(scope="module")
def clustered(tmp_path_factory):
    pytest.importorskip("faiss")
    folder, model = tmp_path_factory.mktemp("graph") / "i", Clustered()
    documents = (Document(str(i), str(i)) for i in range(len(model.documents)))
    build_index(documents, model, folder, ANN)
    with Index(folder) as index:
        yield Searcher(index, model)


def test_the_graph_finds_nearly_what_a_look_at_every_vector_finds(clustered):
    queries = {str(i): str(i) for i in range(len(clustered.model.queries))}
    everything = Searcher(clustered.index, clustered.model, replace(clustered.settings, exhaustive=True))
    found = clustered.run(queries, 100, workflow="dense")
    wanted = everything.run(queries, 100, workflow="dense")
    recall = [len(dict(found[q]).keys() & dict(wanted[q]).keys()) / 100 for q in queries]
    assert np.mean(recall) >= 0.95
    for query in queries:  # and scores are exact: those of the stored vectors
        exact = dict(wanted[query])
        assert {name: s for name, s in found[query] if name in exact} == pytest.approx(
            {name: exact[name] for name in dict(found[query]) if name in exact}, rel=1e-5
        )


def test_the_graph_is_what_is_searched_unless_all_is_asked_for(clustered, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("looked at every vector")

    monkeypatch.setattr(DenseStore, "all_scores", refuse)
    assert len(clustered.search("3", 10, workflow="dense").hits) == 10
    exhaustive = Searcher(clustered.index, clustered.model, replace(clustered.settings, exhaustive=True))
    with pytest.raises(AssertionError, match="every vector"):
        exhaustive.search("3", 10, workflow="dense")


def test_workflows_over_a_graph_score_as_without(tmp_path):
    """With so few documents the graph reaches all of them."""
    pytest.importorskip("faiss")
    search = {"weights": {"cls": 1.0, "words": 1.0}, "exact": ["words"]}
    settings = IndexSettings(search=search)
    build_index(DOCUMENTS, UniModel(), tmp_path / "plain", settings)
    build_index(DOCUMENTS, UniModel(), tmp_path / "ann", replace(settings, ann="hnsw"))
    with Index(tmp_path / "plain") as plain, Index(tmp_path / "ann") as ann:
        for workflow in ("hybrid", "dense", "dense-words", "words-dense"):
            runs = [
                Searcher(index, UniModel()).run({"q": "brown fox"}, 6, workflow=workflow)
                for index in (plain, ann)
            ]
            assert dict(runs[0]["q"]) == pytest.approx(dict(runs[1]["q"]), rel=1e-5)
        hits = Searcher(ann, UniModel()).search("brown fox", 3, explain=True).hits
        for hit in hits:
            assert sum(x.score for x in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)
        assert ann.info()["bytes_by_purpose"]["graph: cls"] > 0
        assert ann.manifest.faults(ann.folder) == []
        assert any(name.endswith("cls.hnsw") for name in ann.manifest.files)


def test_without_faiss_nothing_falls_back_by_itself(tmp_path, monkeypatch):
    pytest.importorskip("faiss")
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", ANN)
    monkeypatch.setitem(sys.modules, "faiss", None)  # an import now fails
    message = r"needs the package 'faiss-cpu'.*pip install .*\[faiss\]'"
    with pytest.raises(MissingExtraError, match=message):
        build_index(DOCUMENTS, HashModel(), tmp_path / "other", ANN)
    assert not (tmp_path / "other").exists()
    with Index(tmp_path / "i") as index:
        with pytest.raises(MissingExtraError, match=message):
            Searcher(index, HashModel()).search("fox", workflow="dense")
        settings = SearchSettings(weights={"mean": 1.0}, exhaustive=True)
        assert Searcher(index, HashModel(), settings).search("fox", workflow="dense").hits
        assert Searcher(index, HashModel()).search("fox", workflow="words").hits  # no graph needed


def test_a_damaged_graph_is_refused(tmp_path):
    pytest.importorskip("faiss")
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", ANN)
    (path,) = (tmp_path / "i").rglob("mean.hnsw")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ArtifactError, match=r"mean.hnsw: does not match its checksum"):
        Searcher(Index(tmp_path / "i"), HashModel()).search("fox", workflow="dense")


def test_a_graph_that_faiss_cannot_read_is_refused(tmp_path):
    pytest.importorskip("faiss")
    (tmp_path / "mean.hnsw").write_bytes(bytes(100))
    with pytest.raises(ArtifactError, match=r"mean.hnsw: faiss .* cannot read this graph"):
        Graph(CheckedFile(tmp_path / "mean.hnsw"), 6).nearest(np.zeros((1, 16), np.float32), 3)


def test_a_graph_needs_pooled_vectors(tmp_path):
    for model, sets in ((HashModel(), ("words",)), (None, None)):
        settings = replace(ANN, sets=sets, search=None, lexical=IndexSettings().lexical)
        with pytest.raises(ConfigError, match="no pooled set to search approximately"):
            build_index(DOCUMENTS, model, tmp_path / "i", settings)
