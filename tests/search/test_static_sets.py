"""Two sets of several vectors, one of them static (HIL's L and H), in every workflow, against loops."""

from functools import cache

import numpy as np
import pytest
from tests.fakes import StaticModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Searcher, SearchSettings
from counterpoint.search.settings import plan_for
from counterpoint.types import Document

RNG = np.random.default_rng(0)
VOCABULARY = [f"w{i}" for i in range(200)]
COLLECTION = [
    Document(f"d{i:02}", " ".join(RNG.choice(VOCABULARY, size=RNG.integers(0, 20)))) for i in range(40)
]
QUERIES = {f"q{i}": " ".join(RNG.choice(VOCABULARY, size=5)) for i in range(6)}
WEIGHTS = {"l": 0.7, "h": 0.3}
SETTINGS = SearchSettings(WEIGHTS, idf={"l": 1.0}, scale="none", candidates=1)
MODEL = StaticModel(size=997)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static") / "index"
    build_index(COLLECTION, MODEL, folder, IndexSettings(codec="float32", search=SETTINGS.to_dict()))
    with Index(folder) as opened:
        yield opened


@cache
def df_of(word):
    return sum(MODEL.id_of(word) in map(MODEL.id_of, d.text.split()) for d in COLLECTION)


def by_loops(query, document, *, exact=False, floor=False):
    """What each set contributes to a pair: weight · Σ idf · max."""
    q, d = MODEL.encode_query([query]), MODEL.encode_document([document.text])
    found = {}
    for name, weight in WEIGHTS.items():
        total = 0.0
        for word, row, number in zip(query.split(), q[name][0], q[name].ids_of(0), strict=True):
            pairs = list(zip(d[name][0], d[name].ids_of(0), strict=True))
            sims = [float(row @ other) if not exact or number == theirs else 0.0 for other, theirs in pairs]
            best = max(sims, default=0.0)
            df = df_of(word)
            idf = np.log(1 + (len(COLLECTION) - df + 0.5) / (df + 0.5)) if name == "l" else 1.0
            total += idf * (max(best, 0.0) if floor or exact else best)
        found[name] = weight * total
    return found


@pytest.mark.parametrize("workflow", ["hybrid", "words"])
def test_two_sets_are_added_over_the_union_of_what_they_propose(index, workflow):
    searcher = Searcher(index, MODEL)
    for query in QUERIES.values():
        wanted = {d.id: by_loops(query, d) for d in COLLECTION}
        hits = searcher.search(query, 5, workflow=workflow).hits
        for hit in hits:
            assert hit.parts == pytest.approx(wanted[hit.document.id], abs=1e-4)
            assert hit.score == pytest.approx(sum(wanted[hit.document.id].values()), abs=1e-4)
        proposed = set()
        for part in WEIGHTS:
            proposed |= set(sorted(wanted, key=lambda name: -wanted[name][part])[:5])
        ranked = sorted(proposed, key=lambda name: -sum(wanted[name].values()))
        assert [hit.document.id for hit in hits] == ranked[:5]


def test_each_set_finds_what_the_other_misses(index):
    apart = {part: Searcher(index, MODEL).rank_parts(QUERIES, 5, [part])[part] for part in WEIGHTS}
    assert any(set(dict(apart["l"][query])) != set(dict(apart["h"][query])) for query in QUERIES)
    for part, run in apart.items():
        for query, text in QUERIES.items():
            scores = {d.id: by_loops(text, d)[part] / WEIGHTS[part] for d in COLLECTION}
            best = sorted(scores, key=lambda name: -scores[name])[:5]
            assert [name for name, _ in run[query]] == best
            assert dict(run[query]) == pytest.approx({name: scores[name] for name in best}, abs=1e-4)


def test_parts_that_are_not_there(index):
    with pytest.raises(ConfigError, match="no part 'tokens'; it has lexical, l, h"):
        Searcher(index, MODEL).rank_parts(QUERIES, 5, ["l", "tokens"])
    lexical = Searcher(index).rank_parts(QUERIES, 5, ["lexical"])["lexical"]
    assert lexical == Searcher(index).run(QUERIES, 5, workflow="lexical")


def test_who_proposes_in_a_hybrid(index):
    assert plan_for("hybrid", index, SETTINGS).first == ("l", "h")  # BM25 has no weight
    everything = SearchSettings({"lexical": 1.0, **WEIGHTS})
    assert plan_for("hybrid", index, everything).first == ("lexical", "l", "h")
    assert plan_for("hybrid", index, SearchSettings({"l": 1.0})).first == ("l",)
    assert plan_for("words", index, everything).first == ("l", "h")


@pytest.mark.parametrize("matching", ["exact", "floor"])
def test_exact_and_floored_static_sets(index, matching):
    settings = SearchSettings({"l": 1.0}, idf={"l": 1.0}, scale="none", **{matching: ("l",)})
    searcher = Searcher(index, MODEL, settings)
    for query in QUERIES.values():
        found = searcher.search(query, 40, explain=True).hits
        for hit in found:
            wanted = by_loops(query, hit.document, **{matching: True})["l"] / 0.7
            assert hit.score == pytest.approx(wanted, abs=1e-4)
            assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-4)
            words = {MODEL.id_of(word) for word in hit.document.text.split()}
            assert len(hit.words["l"]) == len(words)  # each once, and none of them dropped
            assert all(word.importance is not None for word in hit.words["l"])
        sharing = {d.id for d in COLLECTION if by_loops(query, d, exact=True)["l"] > 0}
        if matching == "exact":
            assert {hit.document.id for hit in found} == sharing
    run = Searcher(index, MODEL, settings).run(QUERIES, 40)
    assert {query: dict(run[query]).keys() for query in run} == {
        name: {hit.document.id for hit in searcher.search(query, 40).hits} for name, query in QUERIES.items()
    }


def test_an_explanation_names_words_and_their_idf(index):
    matched = 0
    for query in QUERIES.values():
        for hit in Searcher(index, MODEL).search(query, 5, explain=True).hits:
            text = hit.document.text
            assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-4)
            parts = {part.label: part for part in hit.explanation.children}
            assert all(leaf.idf is None for leaf in parts["h"].leaves())
            for leaf in parts["l"].leaves():
                word, df = leaf.query.text, df_of(leaf.query.text)
                assert leaf.idf == pytest.approx(np.log(1 + (40 - df + 0.5) / (df + 0.5)), rel=1e-5)
                if leaf.document is None:
                    assert text == ""
                    continue
                assert text[leaf.document.start : leaf.document.end] == leaf.document.text
                pair = MODEL.table("l")[[MODEL.id_of(word), MODEL.id_of(leaf.document.text)]]
                assert leaf.score == pytest.approx(0.7 * leaf.idf * float(pair[0] @ pair[1]), abs=1e-4)
                words = [MODEL.id_of(w) for w in text.split()]
                first = words.index(MODEL.id_of(leaf.document.text))
                assert len(text[: leaf.document.start].split()) == first
                matched += 1
    assert matched > 50


def test_reranking_gives_the_scores_of_ranking(index):
    searcher = Searcher(index, MODEL)
    first = searcher.run(QUERIES, 10, workflow="words")
    again = searcher.run(QUERIES, 10, workflow="words", candidates=first)
    assert again == first
