import pytest
from tests.fakes import DOCUMENTS, HashModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.recall import recall_of, sampled_queries
from counterpoint.types import Document


def test_what_first_stages_miss_is_counted_by_brute_force(tmp_path):
    """The words' best documents are found only as far as BM25 and the pooled vectors propose them."""
    documents = [Document(f"d{i:03}", f"w{i % 7} w{i % 11} w{i % 13} w{i}") for i in range(120)]
    build_index(documents, HashModel(), tmp_path / "i")
    queries = {"a": "w3 w5 w100", "b": "w1 w2", "c": "unheard"}
    with Index(tmp_path / "i") as index:
        settings = SearchSettings(weights={"words": 1.0, "mean": 0.1, "lexical": 0.1}, candidates=5)
        narrow = Searcher(index, HashModel(), settings)
        found = recall_of(narrow, queries, (2, 5))
        assert found.queries == 3 and 0 < found.recall[5] < 1
        for depth in (2, 5):
            shares = []
            for query, text in queries.items():
                plain = [name for name, _ in narrow.run({query: text}, depth)[query]]
                every = Run({query: dict.fromkeys((d.id for d in documents), 0.0)})
                best = narrow.run({query: text}, depth, candidates=every)[query]
                shares.append(len({name for name, _ in best} & set(plain)) / depth)
            assert found.recall[depth] == pytest.approx(sum(shares) / 3)
        wide = narrow.with_settings(SearchSettings(weights=settings.weights, candidates=120))
        assert recall_of(wide, queries, (2, 5)).recall == {2: 1.0, 5: 1.0}
        with pytest.raises(ConfigError, match="no queries to search for"):
            recall_of(wide, {})


def test_sampled_queries_are_titles_or_first_words(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index:
        every = sampled_queries(index, 100)
        assert every["b"] == "Turtles" and every["a"] == DOCUMENTS[0].text and "c" not in every
        assert sampled_queries(index, 2) == sampled_queries(index, 2) and len(sampled_queries(index, 2)) <= 2
