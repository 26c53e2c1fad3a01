"""Token pooling: the clusters are Ward's, and an index of fewer vectors says which it has."""

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fakes import DOCUMENTS, HashModel
from tests.index.test_damage import TokenModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, SetLayout, build_index, token_pooling
from counterpoint.index.changing import changing
from counterpoint.index.token_pooling import token_pooled
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document, Ragged

WORDS = SearchSettings(weights={"words": 1.0})


def ward(rows, count):
    """Clusters by loops: merge the two whose union adds the least to the squares within clusters."""
    clusters = [[at] for at in range(len(rows))]

    def squares(members):
        return ((rows[members] - rows[members].mean(axis=0)) ** 2).sum()

    while len(clusters) > count:
        pairs = [(a, b) for b in range(len(clusters)) for a in range(b)]
        costs = [
            squares(clusters[a] + clusters[b]) - squares(clusters[a]) - squares(clusters[b]) for a, b in pairs
        ]
        a, b = pairs[int(np.argmin(costs))]
        clusters[a] += clusters.pop(b)
    return clusters


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 12), max_size=4), st.floats(1, 6), st.booleans())
def test_clusters_are_those_of_loops(seed, lengths, factor, unit):
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(length, 5)) for length in lengths]
    rows = [each / np.linalg.norm(each, axis=1, keepdims=True) if unit else each for each in rows]
    documents = Ragged.from_list(
        [each.astype(np.float32) for each in rows], [np.arange(n) for n in lengths], dim=5
    )
    found = token_pooled(documents, factor)
    assert len(found) == len(documents)
    for at in range(len(documents)):
        mine = documents[at].astype(float)
        lengths_of = np.linalg.norm(mine, axis=1)
        wanted = {}
        for members in ward(mine / lengths_of[:, None], int(np.ceil(len(mine) / factor))):
            mean = mine[members].mean(axis=0)
            mean *= lengths_of[members].mean() / np.linalg.norm(mean)
            wanted[members[int(np.argmax((mine / lengths_of[:, None])[members] @ mean))]] = mean
        assert found.ids_of(at).tolist() == sorted(wanted)
        for row, place in zip(found[at], sorted(wanted), strict=True):
            np.testing.assert_allclose(row, wanted[place], atol=1e-5)


def test_a_factor_of_one_changes_no_bit_and_a_vector_alone_stays_as_it_is():
    rng = np.random.default_rng(1)
    documents = Ragged.from_list([rng.normal(size=(9, 4)).astype(np.float32)], dim=4)
    assert token_pooled(documents, 1) is documents
    found = token_pooled(documents, 9 / 8)
    assert found.lengths.tolist() == [8] and found.ids is None
    same = [row.tobytes() in {each.tobytes() for each in documents[0]} for row in found[0]]
    assert same.count(False) == 1


def test_rows_of_zeros_and_equal_rows_are_pooled_first():
    rows = np.array([[1, 0], [0, 0], [1, 0], [0, 1], [0, 0], [1, 0]], np.float32)
    found = token_pooled(Ragged.from_list([rows], [np.arange(6)], dim=2), 2)
    assert found[0].tolist() == [[1, 0], [0, 0], [0, 1]] and found.ids_of(0).tolist() == [0, 1, 3]


def test_a_long_document_is_pooled_in_pieces(monkeypatch):
    monkeypatch.setattr(token_pooling, "LONGEST", 10)
    rows = np.random.default_rng(2).normal(size=(25, 3)).astype(np.float32)
    found = token_pooled(Ragged.from_list([rows], [np.arange(25)], dim=3), 2)
    pieces = [rows[:8], rows[8:16], rows[16:]]
    wanted = [token_pooled(Ragged.from_list([piece], dim=3), 2)[0] for piece in pieces]
    assert found[0].tobytes() == np.concatenate(wanted).tobytes()


@pytest.mark.parametrize("factor", [0.5, 0, -1, float("nan"), float("inf"), "2"])
def test_other_factors_are_refused(factor):
    with pytest.raises(ConfigError, match="pool_factor must be a finite number from 1 up"):
        IndexSettings(pool_factor=factor).layouts(HashModel())


def test_sets_whose_ids_are_matched_keep_all_rows():
    with pytest.raises(ConfigError, match="pool_factor=2: no set has vectors that can be pooled"):
        IndexSettings(pool_factor=2, search={"exact": ["words"]}).layouts(HashModel())
    assert IndexSettings(pool_factor=2).layouts(HashModel())["words"].pool == 2
    assert IndexSettings(pool_factor=2).layouts(HashModel())["mean"].pool == 1


def test_layouts_of_indexes_without_pooling_are_as_before():
    layout = SetLayout(4, "several", "int8", True)
    assert "pool" not in layout.to_dict() and SetLayout.from_dict(layout.to_dict()) == layout
    pooled = replace(layout, pool=1.5)
    assert SetLayout.from_dict(json.loads(json.dumps(pooled.to_dict()))) == pooled


@pytest.fixture(params=["float32", "int8", "2-bit"])
def pooled(request, tmp_path):
    settings = IndexSettings(codec=request.param, pool_factor=1.5)
    build_index(DOCUMENTS, HashModel(), tmp_path / "index", settings)
    return tmp_path / "index"


def fewer_of(documents):
    return token_pooled(HashModel().encode_document([each.full_text for each in documents])["words"], 1.5)


def test_an_index_stores_the_pooled_vectors(pooled):
    with Index(pooled) as index:
        wanted, store = fewer_of(DOCUMENTS), index.sets["words"]
        assert store.lengths.tolist() == wanted.lengths.tolist()
        assert (
            store.lengths.sum()
            < HashModel().encode_document([d.full_text for d in DOCUMENTS])["words"].offsets[-1]
        )
        assert np.concatenate(store.ids_of(np.arange(len(wanted)))).tolist() == wanted.ids.tolist()
        if index.layouts["words"].codec == "float32":
            assert store.take(np.arange(len(wanted))).values.tobytes() == wanted.values.tobytes()


def test_added_documents_are_pooled_too_and_texts_score_as_documents(pooled):
    more = [Document("new", "a red cat and a red dog and a red house where the cat and the dog sleep")]
    with Index(pooled) as index, changing(index, HashModel()) as change:
        change.add(more)
    with Index(pooled) as index:
        (position,) = [index.position_of("new")]
        assert index.sets["words"].lengths[position] == len(fewer_of(more)[0])
        searcher = Searcher(index, HashModel(), WORDS)
        scores = {
            hit.document.id: hit.score for hit in searcher.search("red dog", 100, workflow="words").hits
        }
        found = searcher.score_texts("red dog", [more[0].full_text], workflow="words")
        assert found[0] == pytest.approx(scores["new"], abs=0.02)


def test_explanations_sum_and_name_words_of_the_text(pooled):
    with Index(pooled) as index:
        answer = Searcher(index, HashModel(), WORDS).search("the red cat", 3, workflow="words", explain=True)
        for hit in answer.hits:
            leaves = hit.explanation.leaves()
            assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-5)
            for leaf in leaves:
                if leaf.document is not None:
                    text = hit.document.full_text
                    assert text[leaf.document.start : leaf.document.end] == leaf.document.text


def test_without_ids_no_word_is_named_for_a_pooled_row(tmp_path):
    build_index(DOCUMENTS, TokenModel(), tmp_path / "index", IndexSettings(pool_factor=1.5))
    with Index(tmp_path / "index") as index:
        answer = Searcher(index, TokenModel(), WORDS).search("the red cat", 3, workflow="words", explain=True)
        for hit in answer.hits:
            leaves = list(hit.explanation.leaves())
            assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-5)
            assert all(leaf.document is None and leaf.rows is not None for leaf in leaves)
