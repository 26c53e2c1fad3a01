"""Which of the candidates every part scores, by a sort of the proposing parts' own scores."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import HashModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.settings import REFINED
from counterpoint.types import Document

WORDS = "red green blue fox dog cat box bridge river stone apple pear".split()
EVERY = SearchSettings(
    weights={"lexical": 0.5, "mean": 1.5, "words": 2.0},
    idf={"words": 0.5},
    adapt={"lexical": 2.0, "words": 6.0},
    feedback=0.1,
    candidates=60,
    refined=10**6,
)
QUERIES = {"q": "red fox", "r": "green box under a bridge", "s": "stone apple", "t": "unknown"}


def documents():
    """Some with the same text, of which the first comes first."""
    rng = np.random.default_rng(3)
    texts = [" ".join(rng.choice(WORDS, rng.integers(2, 9))) for _ in range(80)]
    return [Document(f"d{i:03d}", text) for i, text in enumerate([*texts, *texts[:40]])]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first") / "index"
    build_index(documents(), HashModel(), folder, IndexSettings(codec="int8", search=EVERY.to_dict()))
    with Index(folder) as opened:
        yield opened


def searching(index, **changed):
    return Searcher(index, HashModel(), replace(EVERY, **changed))


@pytest.mark.parametrize("refined", [1, 7, 30, 75])
@pytest.mark.parametrize("k", [1, 10, 20])
def test_the_best_by_the_proposing_parts_are_scored(index, refined, k):
    """Lexical and mean propose; their scores of all candidates are the first columns of the table."""
    every = dict(searching(index).candidates(QUERIES, k))
    fewer = 0
    for name, found in searching(index, refined=refined).candidates(QUERIES, k):
        whole, limit = every[name], max(refined, 2 * k)
        order = sorted(range(len(whole.positions)), key=lambda row: -whole.table[row, :2].sum())
        kept = sorted(order[:limit])
        assert found.positions.tolist() == whole.positions[kept].tolist()
        np.testing.assert_array_equal(found.table, whole.table[kept])
        alike = len(set(found.table[:, 2].tolist())) == 1  # then words cannot tell one from another
        assert found.evidence == {**whole.evidence, **({"words": 0.0} if alike else {})}
        fewer += len(kept) < len(whole.positions)
    assert fewer >= (3 if max(refined, 2 * k) <= 40 else 0)


@pytest.mark.parametrize(
    ("workflow", "changed"),
    [
        ("dense-words", {}),  # one part proposes
        ("words-dense", {}),
        ("lexical", {}),
        ("hybrid", {"exhaustive": True}),
        ("hybrid", {"scale": "none"}),  # parts that cannot be added before they are weighted
        ("hybrid", {"normalise": "z-score", "scale": "none"}),
        ("hybrid", {"method": "rrf", "scale": "none"}),
    ],
)
def test_where_all_candidates_are_scored(index, workflow, changed):
    few, every = (
        dict(searching(index, refined=n, **changed).candidates(QUERIES, 3, workflow=workflow))
        for n in (1, 10**6)
    )
    for name, found in few.items():
        np.testing.assert_array_equal(found.positions, every[name].positions)
        np.testing.assert_array_equal(found.table, every[name].table)


def test_given_documents_are_all_scored(index):
    names = index.names_of(index.positions)
    given = Run({name: dict.fromkeys(names, 1.0) for name in QUERIES})
    ranked = searching(index, refined=30).run(QUERIES, 200, candidates=given)
    assert all(len(ranked[name]) == len(names) for name in QUERIES)
    assert ranked == searching(index).run(QUERIES, 200, candidates=given)


def test_one_search_or_several_find_the_same(index):
    searcher = searching(index, refined=5)
    run = searcher.run(QUERIES, 4)
    for name, text in QUERIES.items():
        assert run.scores(name) == pytest.approx({hit.id: hit.score for hit in searcher.search(text, 4)})
    settings = [
        replace(searcher.settings, weights=w)
        for w in (EVERY.weights, {"lexical": 3.0, "mean": 1.0, "words": 1.0})
    ]
    together = list(searcher.run_each(QUERIES, 4, settings))
    assert together == [Searcher(index, HashModel(), each).run(QUERIES, 4) for each in settings]


def test_shards_and_segments_do_not_matter(index, tmp_path):
    """Every part of them scores its own documents; the choice is of all."""
    settings = IndexSettings(codec="int8", search=EVERY.to_dict(), shards=3)
    build_index(documents(), HashModel(), tmp_path / "many", settings)
    wanted = searching(index, refined=9).run(QUERIES, 4)
    with Index(tmp_path / "many") as many:
        assert searching(many, refined=9).run(QUERIES, 4) == wanted


@pytest.mark.parametrize("wrong", [0, -3, 1.5, True, "100"])
def test_a_number_that_is_none_is_refused(wrong):
    with pytest.raises(ConfigError, match="search.refined: expected"):
        SearchSettings(refined=wrong)


def test_the_default_is_not_written_for_earlier_versions():
    assert "refined" not in SearchSettings().to_dict() and SearchSettings().refined == REFINED
    other = SearchSettings(refined=REFINED + 1)
    assert other.to_dict()["refined"] == REFINED + 1 and SearchSettings.from_dict(other.to_dict()) == other
