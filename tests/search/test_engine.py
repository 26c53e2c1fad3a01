"""The engine against loops over the model's own vectors: nothing here knows how an index works."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import DOCUMENTS, HashModel

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Pipeline, Run, Searcher, SearchSettings
from counterpoint.search.settings import FUSIONS
from counterpoint.types import Document

QUERIES = ["brown fox", "green box under a bridge", "dog", "nothing of this is there", "?"]
SETTINGS = SearchSettings(
    weights={"lexical": 0.5, "mean": 1.5, "words": 2.0}, idf={"words": 0.5}, candidates=100
)


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine") / "index"
    build_index(DOCUMENTS, HashModel(), folder, IndexSettings(codec="float32", search=SETTINGS.to_dict()))
    with Index(folder) as opened:
        yield opened


@pytest.fixture
def searcher(index):
    return Searcher(index, HashModel())


def word_idf(word):
    df = sum(word in d.full_text.lower().split() for d in DOCUMENTS)
    return math.log(1 + (len(DOCUMENTS) - df + 0.5) / (df + 0.5))


def parts_by_loops(index, query, document):
    """The three parts of a hybrid score, each over its ceiling, from the definition."""
    model = HashModel()
    q, d = model.encode_query([query]), model.encode_document([document.full_text])
    lexical = index.lexical.scores(query)[DOCUMENTS.index(document)] / (index.lexical.ceiling(query) or 1)
    mean = float(q["mean"][0][0] @ d["mean"][0][0]) / (float(np.linalg.norm(q["mean"][0][0])) or 1)
    total, ceiling = 0.0, 0.0
    for word, row in zip(dict.fromkeys(query.lower().split()), q["words"][0], strict=True):
        idf = math.sqrt(word_idf(word))
        total += idf * max((float(row @ other) for other in d["words"][0]), default=0.0)
        ceiling += idf * float(np.linalg.norm(row))
    return {"lexical": lexical, "mean": mean, "words": total / (ceiling or 1)}


@pytest.mark.parametrize("query", QUERIES)
def test_the_hybrid_is_the_weighted_sum_of_its_parts(index, searcher, query):
    wanted = {}
    for document in DOCUMENTS:
        parts = parts_by_loops(index, query, document)
        wanted[document.id] = {part: SETTINGS.weights[part] / 4 * score for part, score in parts.items()}
    for hit in searcher.search(query, 10).hits:
        assert hit.parts == pytest.approx(wanted[hit.document.id], abs=1e-5)
        assert hit.score == pytest.approx(sum(wanted[hit.document.id].values()), abs=1e-5)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("workflow", ["hybrid", "lexical", "dense", "words", "dense-words", "words-dense"])
def test_the_leaves_of_every_explanation_sum_to_the_score(searcher, query, workflow):
    for hit in searcher.search(query, 10, workflow=workflow, explain=True).hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)
        assert sum(hit.parts.values()) == pytest.approx(hit.score, abs=1e-6)
        for leaf in hit.explanation.leaves():
            if leaf.query is not None:
                assert query[leaf.query.start : leaf.query.end] == leaf.query.text
            if leaf.document is not None:
                text = hit.document.full_text
                assert text[leaf.document.start : leaf.document.end] == leaf.document.text


@pytest.mark.parametrize("normalise", ["none", "min-max", "z-score"])
@pytest.mark.parametrize("scale", ["ceiling", "none"])
def test_normalised_scores_are_explained_too(index, normalise, scale):
    searcher = Searcher(
        index, HashModel(), SearchSettings(SETTINGS.weights, {"words": 0.5}, scale, normalise)
    )
    plain = Searcher(index, HashModel(), SearchSettings(SETTINGS.weights, {"words": 0.5}, scale))
    raw = {h.document.id: h for h in plain.search("brown fox box", 10, explain=True).hits}
    compared = 0
    for hit in searcher.search("brown fox box", 10, explain=True).hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)
        # Within a part, words keep their proportions: normalising only scales and shifts.
        ours, theirs = (h.explanation.children[2].children for h in (hit, raw[hit.document.id]))
        pairs = zip(ours, theirs, strict=False)  # a normalisation adds a last leaf, which belongs to no word
        ratios = [a.score / b.score for a, b in pairs if a.query and abs(b.score) > 1e-6]
        assert ratios == pytest.approx(ratios[:1] * len(ratios), rel=1e-4)
        compared += len(ratios) > 1
    assert compared >= 3


@pytest.mark.parametrize(
    "weights", [{"words": 1.0}, {"mean": 1.0, "words": 0.0}, {"lexical": 1.0, "words": 3.0}]
)
def test_parts_without_weight_propose_but_do_not_score(index, weights):
    hits = Searcher(index, HashModel(), SearchSettings(weights)).search("brown fox", 3, explain=True).hits
    used = {part for part, weight in weights.items() if weight}
    assert hits and all(set(hit.parts) == used for hit in hits)
    for hit in hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score, abs=1e-5)


def test_rank_fusion_claims_no_word(index):
    settings = SearchSettings(SETTINGS.weights, {"words": 0.5}, method="rrf")
    for hit in Searcher(index, HashModel(), settings).search("brown fox", 3, explain=True).hits:
        assert sum(leaf.score for leaf in hit.explanation.leaves()) == pytest.approx(hit.score)
        assert all(leaf.query is None for leaf in hit.explanation.leaves())


def test_a_score_does_not_depend_on_the_candidates(index):
    everything = Searcher(index, HashModel()).search("brown fox", 6)
    scores = {hit.document.id: hit.score for hit in everything.hits}
    few = SearchSettings(SETTINGS.weights, {"words": 0.5}, candidates=1)
    hits = Searcher(index, HashModel(), few).search("brown fox", 1).hits
    assert hits and hits[0].score == pytest.approx(scores[hits[0].document.id])


def test_lexical_search_needs_no_model_and_finds_only_what_shares_a_term(index):
    answer = Searcher(index).search("fox", 10, workflow="lexical")
    assert {hit.document.id for hit in answer.hits} == {"a", "d", "e#0"}
    assert [h.score for h in answer.hits] == pytest.approx(
        sorted((s for s in index.lexical.scores("fox") if s > 0), reverse=True)
    )
    with pytest.raises(ConfigError, match="needs the model"):
        Searcher(index).search("fox", 10)


def test_ties_break_by_falling_id(tmp_path):
    documents = [Document(name, "same words here") for name in ("b", "a", "d", "c")]
    build_index(documents, HashModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index:
        answer = Searcher(index, HashModel()).search("words", 3)
        assert [hit.document.id for hit in answer.hits] == ["d", "c", "b"]


def test_a_run_ranks_as_search_does_and_takes_the_best_passage(index, searcher):
    run = searcher.run({"q": "brown box", "r": "fox"}, k=5)
    assert set(run.queries) == {"q", "r"}
    for query, text in (("q", "brown box"), ("r", "fox")):
        best: dict[str, float] = {}
        for hit in searcher.search(text, 6).hits:
            best.setdefault(hit.document.parent or hit.document.id, hit.score)
        assert dict(run[query]) == pytest.approx(best, abs=1e-6)


def test_reranking_scores_only_the_candidates(searcher):
    first = Run({"q": {"a": 3.0, "c": 2.0}})
    again = searcher.run({"q": "brown fox"}, candidates=first)
    everything = dict(searcher.run({"q": "brown fox"})["q"])
    assert dict(again["q"]) == pytest.approx({name: everything[name] for name in ("a", "c")})
    assert searcher >> searcher >> searcher == Pipeline((searcher, searcher, searcher))
    assert (searcher >> (lambda queries, run: run.top(1)))({"q": "brown fox"})["q"] == [
        searcher.run({"q": "brown fox"})["q"][0]
    ]
    assert Pipeline((searcher,)) >> searcher == Pipeline((searcher, searcher))
    assert (Pipeline((lambda queries, run=None: first,)) >> searcher)({"q": "brown fox"}) == again
    with pytest.raises(DataError, match="'zzz' is not in the index"):
        searcher.run({"q": "brown fox"}, candidates=Run({"q": {"zzz": 1.0}}))


def test_batches_of_queries_do_not_show(index, searcher, monkeypatch):
    queries = {str(i): text for i, text in enumerate(QUERIES)}
    together = searcher.run(queries)
    monkeypatch.setattr("counterpoint.search.engine.SCORES", 1)
    done = []
    apart = searcher.run(queries, on_progress=done.append)
    assert done == [1, 2, 3, 4, 5]
    for query in queries:
        assert dict(apart[query]) == pytest.approx(dict(together[query]), abs=1e-6)


EACH = [
    {"lexical": 0.3, "mean": 0.3, "words": 0.4},
    {"lexical": 1.0, "mean": 7.0, "words": 0.1},
    {"words": 0.7, "mean": 0.1, "lexical": 0.1},
]


@pytest.mark.parametrize("fusion", FUSIONS)
def test_several_weights_for_the_time_of_one_search(index, fusion, monkeypatch):
    settings, queries = SETTINGS.with_fusion(fusion), {str(i): text for i, text in enumerate(QUERIES)}
    alone = [Searcher(index, HashModel(), replace(settings, weights=each)).run(queries, 3) for each in EACH]
    assert len({str(run.to_dict()) for run in alone}) == len(EACH)
    calls = []
    encode = HashModel.encode_query
    monkeypatch.setattr(HashModel, "encode_query", lambda self, t: calls.append(t) or encode(self, t))
    together = [replace(settings, weights=each) for each in EACH]
    assert list(Searcher(index, HashModel(), settings).run_each(queries, 3, together)) == alone
    assert len(calls) == 1


def test_candidates_before_they_are_weighed(index, searcher):
    queries, done = {str(i): text for i, text in enumerate(QUERIES)}, []
    found = dict(searcher.candidates(queries, 3, on_progress=done.append))
    assert list(found) == list(queries) and done == [5]
    for name, text in queries.items():
        for position, row in zip(found[name].positions.tolist(), found[name].table, strict=True):
            wanted = parts_by_loops(index, text, index.document(position))
            assert row == pytest.approx([wanted[part] for part in SETTINGS.weights], abs=1e-5)
    ((_, lexical),) = searcher.candidates({"q": "fox"}, workflow="lexical")
    assert lexical.table.shape == (len(lexical.positions), 1)


def test_several_weights_are_of_the_same_parts_and_settings_alike(searcher):
    each = [replace(SETTINGS, weights=weights) for weights in EACH]
    assert list(searcher.run_each({"q": "fox"}, 3, [])) == []
    with pytest.raises(
        ConfigError, match="weights of lexical, mean together with weights of lexical, mean, words"
    ):
        list(searcher.run_each({"q": "fox"}, 3, [each[0], replace(each[0], weights={**EACH[0], "words": 0})]))
    with pytest.raises(ConfigError, match="at least 1, found 0"):
        list(searcher.run_each({"q": "fox"}, 0, each))
    for other in (replace(each[0], candidates=7), each[0].with_fusion("rrf")):
        with pytest.raises(ConfigError, match="may differ only in weights and feedback"):
            list(searcher.run_each({"q": "fox"}, 3, [each[0], other]))


def test_settings_that_cannot_be_carried_out(index, tmp_path):
    for k in ("2", 2.0, None, True):
        with pytest.raises(ConfigError, match=f"k must be a whole number, found {k!r}"):
            Searcher(index, HashModel()).search("fox", k)  # pyright: ignore
    with pytest.raises(ConfigError, match="k must be at least 1"):
        Searcher(index, HashModel()).search("fox", 0)
    with pytest.raises(ConfigError, match="unknown workflow 'hybird'"):
        Searcher(index, HashModel()).search("fox", workflow="hybird")  # pyright: ignore
    with pytest.raises(ConfigError, match="none of its parts"):
        Searcher(index, HashModel(), SearchSettings(weights={})).search("fox")
    with pytest.raises(ArtifactError, match="built with the model"):
        Searcher(index, HashModel(seed=9))
    build_index(DOCUMENTS, None, tmp_path / "lexical")
    with (
        Index(tmp_path / "lexical") as lexical,
        pytest.raises(ConfigError, match="no such part; it has lexical"),
    ):
        Searcher(lexical).search("fox", workflow="dense")


def test_settings_survive_the_manifest(index):
    assert SearchSettings.for_index(index) == SETTINGS


@pytest.mark.parametrize("blank", ["", " ", "\n\t\u3000"])
def test_an_empty_query_is_refused_and_finds_nothing_among_many(searcher, blank):
    with pytest.raises(ConfigError, match="the query is empty"):
        searcher.search(blank)
    queries = {"some": "brown fox", "blank": blank, "more": "dog"}
    run = searcher.run(queries, 5)
    assert list(run) == list(queries) and run["blank"] == []
    alone = searcher.run({name: queries[name] for name in ("some", "more")}, 5)
    assert {name: run[name] for name in alone} == {name: alone[name] for name in alone} and alone["some"]
    assert searcher.run(queries, 5, candidates=run)["blank"] == []
    assert searcher.run(queries, 5, candidates=Run({"blank": {"a": 1.0}}))["blank"] == []
    (each,) = searcher.run_each(queries, 5, [SETTINGS])
    assert each["blank"] == [] and searcher.rank_parts(queries, 5, ["mean"])["mean"]["blank"] == []


@pytest.mark.parametrize("query", ["zzz", "?", "never seen"])
def test_a_query_without_a_known_term_finds_nothing_by_words(searcher, query):
    assert searcher.search(query, workflow="lexical").hits == ()
    assert searcher.run({"q": query}, 5, workflow="lexical")["q"] == []


def test_a_query_with_a_vector_that_is_no_number_is_refused(index, searcher, monkeypatch):
    """A search that went on would find nothing, or other documents by another kernel."""
    model, encode = searcher.model, searcher.model.encode_query

    def encoded(texts):
        found = encode(texts)
        for rows in found.values():
            rows.values[rows.offsets[1]] = np.inf
        return found

    monkeypatch.setattr(model, "encode_query", encoded)
    with pytest.raises(DataError, match="query 'second': its vector in '.+' is NaN or infinite"):
        searcher.run({"1": "first", "2": "second"})
