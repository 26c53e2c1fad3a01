"""ColBERTer's workflows over exact and floored words, against loops over the model's own vectors."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import DOCUMENTS, UniModel

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Searcher, SearchSettings
from counterpoint.types import Document

RNG = np.random.default_rng(0)
VOCABULARY = [f"w{i}" for i in range(30)]
TEXTS = [" ".join(RNG.choice(VOCABULARY, size=RNG.integers(0, 9))) for _ in range(40)]
COLLECTION = [Document(f"d{i:02}", text) for i, text in enumerate(TEXTS)]
QUERIES = {f"q{i}": " ".join(RNG.choice(VOCABULARY, size=4)) for i in range(8)}
SETTINGS = SearchSettings({"cls": 0.4, "words": 0.6}, scale="none", exact=("words",), candidates=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Indexes by name, each searched as it says."""
    parent = tmp_path_factory.mktemp("matching")
    for name, search in (("exact", SETTINGS), ("floor", replace(SETTINGS, exact=(), floor=("words",)))):
        settings = IndexSettings(codec="float32", search=search.to_dict())
        build_index(COLLECTION, UniModel(dim=2), parent / name, settings)
    return parent


def searching(folder, name="exact", **changes):
    index = Index(folder / name)
    return Searcher(index, UniModel(dim=2), replace(SearchSettings.for_index(index), **changes))


def by_loops(query, document, exact):
    """Both parts of the score of a pair."""
    model = UniModel(dim=2)
    q, d = model.encode_query([query]), model.encode_document([document])
    words = 0.0
    for row, number in zip(q["words"][0], q["words"].ids_of(0), strict=True):
        rows = zip(d["words"][0], d["words"].ids_of(0), strict=True)
        matches = [float(row @ other) for other, theirs in rows if not exact or theirs == number]
        words += max([0.0, *matches])
    return float(q["cls"][0][0] @ d["cls"][0][0]), words


@pytest.mark.parametrize("name", ["exact", "floor"])
def test_every_workflow_ranks_by_what_the_loops_say(folder, name):
    searcher = searching(folder, name)
    for query, text in QUERIES.items():
        scores = {d.id: by_loops(text, d.text, name == "exact") for d in COLLECTION}
        for workflow, weights in (
            ("hybrid", (0.4, 0.6)), ("dense-words", (0.4, 0.6)), ("words-dense", (0.4, 0.6)),
            ("dense", (1, 0)), ("words", (0, 1)),
        ):  # fmt: skip
            found = dict(searcher.run({query: text}, 40, workflow=workflow)[query])
            wanted = {key: weights[0] * a + weights[1] * b for key, (a, b) in scores.items()}
            assert found == pytest.approx({key: wanted[key] for key in found}, abs=1e-5)
            if workflow in ("words", "words-dense") and name == "exact":
                assert found.keys() == {key for key, (_, words) in scores.items() if words > 0}
            else:
                assert len(found) == len(COLLECTION)


def test_a_refinement_finds_what_its_first_stage_finds(folder):
    for name in ("exact", "floor"):
        searcher = searching(folder, name)
        for first, refined in (("dense", "dense-words"), ("words", "words-dense")):
            before = searcher.run(QUERIES, 7, workflow=first)
            after = searcher.run(QUERIES, 7, workflow=refined)
            assert {q: set(dict(before[q])) for q in QUERIES} == {q: set(dict(after[q])) for q in QUERIES}
            assert any(list(before[q]) != list(after[q]) for q in QUERIES)


def test_both_refinements_agree_where_their_candidates_cover_everything(folder):
    searcher = searching(folder, "floor", candidates=len(COLLECTION))
    second, third = (searcher.run(QUERIES, 10, workflow=w) for w in ("dense-words", "words-dense"))
    for query in QUERIES:
        assert [name for name, _ in second[query]] == [name for name, _ in third[query]]
        assert dict(second[query]) == pytest.approx(dict(third[query]), rel=1e-5)
    exact = searching(folder, candidates=len(COLLECTION))
    words, dense = (exact.run(QUERIES, 40, workflow=w) for w in ("words-dense", "dense-words"))
    for query in QUERIES:  # a document without any of the words is in no inverted index
        found = dict(words[query])
        assert [name for name, _ in dense[query] if name in found] == [name for name, _ in words[query]]


def test_the_hybrid_misses_nothing_that_either_stage_proposes(folder):
    searcher = searching(folder)
    added = 0
    hybrid = searcher.run(QUERIES, 5)
    for workflow in ("dense-words", "words-dense"):
        other = searcher.run(QUERIES, 5, workflow=workflow)
        for query in QUERIES:
            kept, lowest = dict(hybrid[query]), min(score for _, score in hybrid[query])
            for name, score in other[query]:
                assert name in kept or score <= lowest + 1e-6
            added += bool(kept.keys() - dict(other[query]).keys())
    assert added  # it is none of the two under another name


def test_bm25_proposes_only_where_it_has_a_weight(folder):
    with_weight = searching(folder, weights={"lexical": 1.0, "words": 0.6, "cls": 0.4})
    assert set(with_weight.search("w1 w2", 3).hits[0].parts) == {"lexical", "words", "cls"}
    assert set(searching(folder).search("w1 w2", 3).hits[0].parts) == {"words", "cls"}


def test_idf_weights_exact_words(folder):
    searcher = searching(folder, idf={"words": 1.0})
    model = UniModel(dim=2)
    query = model.encode_query(["w1 w2 w3"])["words"]
    idf = searcher.index.idf("words", query.ids_of(0))
    assert len(set(idf.tolist())) > 1
    hits = searcher.search("w1 w2 w3", 5, workflow="words").hits
    assert hits
    for hit in hits:
        stored = model.encode_document([hit.document.text])["words"]
        wanted = 0.0
        for row, number, weight in zip(query[0], query.ids_of(0), idf, strict=True):
            same = stored[0][stored.ids_of(0) == number]
            wanted += max([0.0, *(weight * float(row @ other) for other in same)])
        assert hit.score == pytest.approx(wanted, rel=1e-4)


def test_a_word_without_a_match_is_a_leaf_without_a_place(folder):
    searcher, unmatched = searching(folder), 0
    for text in QUERIES.values():
        for hit in searcher.search(f"{text} unheard", 5, explain=True).hits:
            leaves = list(hit.explanation.leaves())
            assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-5)
            for leaf in leaves:
                if leaf.query is not None and leaf.document is None:
                    assert leaf.score == 0
                    unmatched += 1
                elif leaf.query is not None:
                    assert leaf.score > 0 and leaf.query.text == leaf.document.text
    assert unmatched > len(QUERIES)


STOP = ("the", "a", "in")


@pytest.fixture(scope="module", params=[1, 2])
def gated(request, tmp_path_factory):
    """An index without the words that a gate has dropped."""
    model = UniModel(dim=request.param, dropped=STOP)
    folder = tmp_path_factory.mktemp("gated") / "i"
    settings = IndexSettings(codec="float32", search=SETTINGS.to_dict())
    build_index([*DOCUMENTS, Document("all", "the in a the")], model, folder, settings)
    with Index(folder) as index:
        yield Searcher(index, model)


@pytest.mark.parametrize("way", [{"exact": ("words",)}, {"exact": (), "floor": ("words",)}])
def test_stored_rows_are_found_again_in_the_text(gated, way):
    searcher = Searcher(gated.index, gated.model, replace(gated.settings, **way))
    hits = searcher.search("the quick Fox in a box", 9, explain=True).hits
    assert {hit.document.id for hit in hits} >= {"a", "all", "e#0"}
    matched = 0
    for hit in hits:
        stored = gated.model.encode_document([hit.document.full_text])["words"]
        leaves = [leaf for part in hit.explanation.children for leaf in part.leaves()]
        assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-5)
        places = {leaf.document for leaf in leaves if leaf.document is not None}
        matched += len(places)
        text = hit.document.full_text
        assert all(text[place.start : place.end] == place.text for place in places)
        assert not any(place.text.lower() in STOP for place in places)
        words = [word for word in hit.words["words"] if word.importance is not None]
        dropped = [word.span.text.lower() for word in hit.words["words"] if word.importance is None]
        assert [word.span.text.lower() for word in hit.words["words"]][len(words) :] == dropped
        assert dropped == [word for word in gated.model.words(text) if word in STOP]
        kept = [word for word in gated.model.words(text) if word not in STOP]
        for word in words:
            row = stored[0][kept.index(word.span.text.lower())]
            wanted = float(row[0]) if len(row) == 1 else math.hypot(*row)
            assert word.importance == pytest.approx(wanted, rel=1e-5)
        assert [w.importance for w in words] == sorted((w.importance for w in words), reverse=True)
        assert len(words) == len(kept)
        for word, given in zip(words, hit.to_dict()["words"]["words"], strict=False):
            assert (given["text"], given["importance"]) == (word.span.text, word.importance)
            exported = hit.to_dict()[given["field"]]
            assert exported[given["start"] : given["end"]] == word.span.text
    assert matched >= 3


def test_a_document_whose_words_are_all_dropped_matches_nothing(gated):
    (hit,) = [h for h in gated.search("the quick fox", 9, explain=True).hits if h.document.id == "all"]
    words = next(part for part in hit.explanation.children if part.label == "words")
    assert [(leaf.query.text, leaf.score, leaf.document) for leaf in words.leaves()] == [
        ("the", 0, None), ("quick", 0, None), ("fox", 0, None),
    ]  # fmt: skip
    assert hit.parts["words"] == 0 and all(word.importance is None for word in hit.words["words"])


def test_rows_that_are_not_the_texts_are_refused(gated):
    gated.model.row_ids = lambda texts, name, side: [
        np.zeros(len(r), int) for r in gated.model.spans(texts, name, side)
    ]
    try:
        with pytest.raises(ArtifactError, match="vectors stored for '.*' do not belong to its text"):
            gated.search("quick", 9, explain=True)
    finally:
        del gated.model.row_ids


def test_unit_vectors_claim_no_importance(folder):
    """Without `exact` and `floor` a length says nothing, and no words are listed."""
    searcher = searching(folder, exact=())
    assert all(not hit.words for hit in searcher.search("w1", 3, explain=True).hits)


def test_names_are_checked(folder):
    for changes, message in (
        ({"exact": ("nothing",)}, "search.exact: no vector set 'nothing'; there are cls, words"),
        ({"floor": ("cls",)}, "search.floor: 'cls' is pooled"),
    ):
        with pytest.raises(ConfigError, match=message):
            searching(folder, **changes)
    with pytest.raises(ConfigError, match="search.exact: expected a list of: a text, found 'words'"):
        SearchSettings(exact="words")


def test_workflows_that_need_both_kinds_of_vectors(tmp_path):
    settings = IndexSettings(sets=("words",), search={"weights": {"words": 1.0}, "exact": ["words"]})
    build_index(DOCUMENTS, UniModel(), tmp_path / "i", settings)
    with Index(tmp_path / "i") as index:
        for workflow in ("words-dense", "dense-words"):
            with pytest.raises(ConfigError, match="no such part; it has lexical, words"):
                Searcher(index, UniModel()).search("fox", workflow=workflow)
        assert Searcher(index, UniModel()).search("fox").hits
