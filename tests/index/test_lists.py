"""Token sets with lists of centroids: the whole way to candidates, against a look at everything."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from tests.index.test_bits import by_loops

from counterpoint.errors import ArtifactError
from counterpoint.index import Asked, Index, IndexSettings, Manifest, SetLayout, build_index
from counterpoint.index import centroids as centroids_module
from counterpoint.index.centroids import count_for
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kinds import KINDS
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.settings import VectorSet
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document, Ragged

DIM, DOCUMENTS = 32, 400


@pytest.fixture(autouse=True)
def lists_of_few(monkeypatch):
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)
    monkeypatch.setattr(centroids_module, "ROWS", 5)


def texts(rng, count=DOCUMENTS, dim=DIM, topics=25):
    """Documents of tokens of a few topics each, and some without any."""
    means, rows = rng.normal(size=(topics, 12, dim)), []
    for _ in range(count):
        topic, size = rng.integers(topics), rng.integers(0, 30)
        chosen = means[
            np.where(rng.random(size) < 0.7, topic, rng.integers(topics, size=size)),
            rng.integers(0, 12, size),
        ]
        found = chosen + 0.5 * rng.normal(size=(size, dim))
        rows.append((found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32))
    return Ragged.from_list(rows, dim=dim)


def opened(folder, vectors, codec, cuts=(), kind="lists"):
    layout, segments = SetLayout(vectors.dim, kind, codec, ids=vectors.ids is not None), []
    for i, piece in enumerate(np.split(np.arange(len(vectors)), cuts)):
        with SegmentWriter(folder / str(i), {"w": layout}) as writer:
            writer.append([Document(str(p), "") for p in piece], {"w": vectors.take(piece)})
        segments.append(Piece(CheckedFolder(folder / str(i)), len(piece), layout))
    return KINDS[kind].open("w", layout, segments)


def queries(rng, vectors, count=20, size=18):
    """Tokens of one document each, a little changed."""
    found = []
    for i in rng.permutation(np.flatnonzero(vectors.lengths > 5))[:count]:
        rows = vectors.take(np.array([i])).values
        some = rows[rng.integers(0, len(rows), size)]
        found.append(Asked((some + 0.1 * rng.normal(size=some.shape)).astype(np.float32)))
    return found


def ways():
    return [Meter.kernels, lambda self, products: None]


@pytest.mark.parametrize("codec", ["1-bit", "2-bit", "4-bit"])
@pytest.mark.parametrize("cuts", [(), (150,)])
def test_lists_find_what_looking_at_everything_finds(tmp_path, codec, cuts):
    rng = np.random.default_rng(0)
    vectors = texts(rng)
    store = opened(tmp_path, vectors, codec, cuts)
    asked = queries(rng, vectors)
    near, everything = store.look(asked, probes=8), store.look(asked, exhaustive=True)
    found = [len(set(near.best(i, 40)) & set(everything.best(i, 10))) for i in range(len(asked))]
    assert np.mean(found) > 9.5
    assert all(len(set(near.best(i, 40).tolist())) == 40 for i in range(len(asked)))
    assert near.known(0, np.arange(3)) is None and everything.known(0, np.arange(3)) is not None


@pytest.mark.parametrize("codec", ["1-bit", "2-bit", "4-bit"])
def test_numpy_and_the_kernels_propose_the_same_whatever_is_asked_with_it(tmp_path, codec, monkeypatch):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    monkeypatch.setattr("counterpoint.index.lists.SHORTLIST", 3)
    rng = np.random.default_rng(1)
    vectors = texts(rng)
    store = opened(tmp_path, vectors, codec, (100,))
    for size in (1, 16, 17, 33):
        asked = queries(rng, vectors, 5, size)
        asked.append(Asked(np.zeros((size, DIM), np.float32)))
        found = []
        for way in ways():
            with patch.object(Meter, "kernels", way):
                together = [store.look(asked, probes=3).best(i, 7).tolist() for i in range(6)]
                alone = [store.look([query], probes=3).best(0, 7).tolist() for query in asked]
                assert together == alone
                found.append(together)
        assert found[0] == found[1]


@pytest.mark.parametrize("way", ways())
def test_a_query_without_rows_scores_nothing(tmp_path, way, monkeypatch):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    store, asked = (
        opened(tmp_path, texts(np.random.default_rng(5)), "1-bit"),
        Asked(np.zeros((0, DIM), np.float32)),
    )
    with patch.object(Meter, "kernels", way), np.errstate(all="raise"):
        assert sorted(store.look([asked]).best(0, 5)) == sorted(
            store.look([asked], exhaustive=True).best(0, 5)
        )


@pytest.mark.parametrize("codec", ["1-bit", "2-bit", "4-bit"])
def test_scores_are_those_of_loops(tmp_path, codec, monkeypatch):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    rng = np.random.default_rng(2)
    vectors = texts(rng, 30)
    store = opened(tmp_path, vectors, codec)
    assert store.parts[0].centroids is not None
    query = Asked(rng.normal(size=(5, DIM)).astype(np.float32))
    wanted = []
    for i in range(30):
        part = store.parts[0]
        with patch.object(type(part), "_means", part.centroids):
            wanted.append(by_loops(store, query, i))
    for way in ways():
        with patch.object(Meter, "kernels", way):
            assert store.all_scores([query])[0].tolist() == wanted
            assert store.scores(query, np.array([7, 2, 29])).tolist() == [wanted[i] for i in (7, 2, 29)]


def test_more_probes_and_more_candidates_find_no_less_on_average(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.index.lists.SHORTLIST", 2)
    rng = np.random.default_rng(3)
    vectors = texts(rng)
    store = opened(tmp_path, vectors, "2-bit")
    asked = queries(rng, vectors, 40)
    best = store.look(asked, exhaustive=True)

    def share(probes, k):
        look = store.look(asked, probes=probes)
        return np.mean([len(set(look.best(i, k)) & set(best.best(i, 10))) for i in range(40)])

    assert share(1, 20) <= share(4, 20) <= share(16, 20) and share(4, 20) <= share(4, 60)


def test_differences_from_centroids_lose_less(tmp_path, monkeypatch):
    vectors = texts(np.random.default_rng(4))

    def error(folder):
        taken = opened(folder, vectors, "1-bit").take(np.arange(DOCUMENTS))
        return ((taken.values - vectors.values) ** 2).sum()

    near = error(tmp_path / "near")
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 10**9)
    assert near < 0.75 * error(tmp_path / "far")


def test_few_vectors_are_all_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 10**9)
    store = opened(tmp_path, texts(np.random.default_rng(5), 30), "2-bit")
    assert store.parts[0].centroids is None
    query = Asked(np.ones((2, DIM), np.float32))
    assert store.look([query]).known(0, np.arange(30)) is not None


def test_no_documents_with_vectors(tmp_path):
    empty = Ragged(np.zeros((0, DIM), np.float32), np.zeros(6, np.int64))
    store = opened(tmp_path, empty, "2-bit")
    assert store.scores(Asked(np.ones((2, DIM), np.float32)), np.arange(5)).tolist() == [0] * 5


@pytest.mark.parametrize(
    "rows, wanted", [(0, 0), (2**16 - 1, 0), (2**16, 1024), (10**6, 8192), (3_300_000, 32768), (10**9, 65536)]
)
def test_how_many_centroids(rows, wanted, monkeypatch):
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 2**16)
    monkeypatch.setattr(centroids_module, "ROWS", 64)
    assert count_for(rows) == wanted


class Tokens:
    """A model with a set of token vectors, one for each word of a text, by a table."""

    source, longest = None, 64

    def __init__(self):
        self._table = np.random.default_rng(9).normal(size=(200, DIM)).astype(np.float32)
        self.sets = {"tokens": VectorSet(DIM, pooled=False, ids=False)}

    def fingerprint(self):
        return "tokens"

    def encode_document(self, texts):
        return {
            "tokens": Ragged.from_list(
                [self._table[[int(w) for w in text.split()]] for text in texts], dim=DIM
            )
        }

    encode_query = encode_document


@pytest.mark.parametrize(
    ("newer", "said"),
    [({"kind": "tree"}, "is a store of kind 'tree'"), ({"codec": "3-bit"}, "has the codec '3-bit'")],
)
def test_a_kind_or_codec_that_is_not_known_is_told(tmp_path, newer, said):
    build_index([Document("a", "1 2")], Tokens(), tmp_path / "i", IndexSettings(codec="2-bit", lexical=None))
    manifest = Manifest.read(tmp_path / "i")
    layouts = {"tokens": {**manifest.settings["layouts"]["tokens"], **newer}}
    replace(manifest, settings={**manifest.settings, "layouts": layouts}).write(tmp_path / "i")
    with pytest.raises(ArtifactError, match=f"vector set 'tokens' {said}, which this version"):
        Index(tmp_path / "i")


def test_a_segments_codec_that_is_not_known_is_told(tmp_path):
    build_index([Document("a", "1 2")], Tokens(), tmp_path / "i", IndexSettings(codec="2-bit", lexical=None))
    manifest = Manifest.read(tmp_path / "i")
    newer = replace(manifest.segments[0], codecs={"tokens": "3-bit"})
    replace(manifest, segments=(newer,)).write(tmp_path / "i")
    with pytest.raises(ArtifactError, match="has the codec '3-bit', which this version"):
        Index(tmp_path / "i")


def test_an_index_of_token_vectors_has_lists_and_searches_by_them(tmp_path):
    rng = np.random.default_rng(6)
    documents = [Document(str(i), " ".join(map(str, rng.integers(0, 200, 12)))) for i in range(300)]
    settings = IndexSettings(codec="2-bit", lexical=None)
    build_index(documents, Tokens(), tmp_path / "i", settings)
    with Index(tmp_path / "i") as index:
        assert index.layouts["tokens"].kind == "lists"
        assert {"lists: tokens", "centroids: tokens", "clusters: tokens"} <= set(
            index.info()["bytes_by_purpose"]
        )
        wide = Searcher(index, Tokens(), SearchSettings(weights={"tokens": 1.0}, exhaustive=True))
        for document in documents[:20]:
            for probes in (1, 64):
                searcher = Searcher(
                    index, Tokens(), SearchSettings(weights={"tokens": 1.0}, probes=probes, candidates=20)
                )
                answer = searcher.search(document.text, 3)
                assert answer.hits[0].document.id == document.id
                every = wide.search(document.text, 3)
                assert answer.hits[0].score == every.hits[0].score
