"""Texts outside an index get the scores that they have inside it."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fakes import HashModel, StaticModel, UniModel

from counterpoint.errors import ConfigError
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Run, Searcher, SearchSettings
from counterpoint.search.settings import FUSIONS
from counterpoint.types import Document

WORDS = [f"w{number}" for number in range(30)]
RNG = np.random.default_rng(3)
DOCUMENTS = [Document(f"d{at:02}", " ".join(RNG.choice(WORDS, size=RNG.integers(0, 12)))) for at in range(25)]
QUERIES = ["w1 w2 w3", "w4 w4 w29", "w5 nowhere", "w6"]
HYBRID = SearchSettings({"lexical": 0.5, "mean": 1.5, "words": 2.0}, idf={"words": 0.5}, candidates=5)
ADAPTED = replace(HYBRID, adapt={"lexical": 2.0, "words": 6.0})
EXACT = SearchSettings({"lexical": 1.0, "cls": 1.0, "words": 2.0}, exact=("words",))
HIL = SearchSettings({"l": 0.7, "h": 0.3}, idf={"l": 1.0}, scale="none", floor=("h",))
FED = replace(ADAPTED, feedback=0.5)
MODELS = {
    "hash": (HashModel(), ADAPTED),
    "exact": (UniModel(3, repeats=True, dropped=("w2", "w7")), EXACT),
    "static": (StaticModel(size=997), HIL),
}


@pytest.fixture(scope="module", params=MODELS)
def searcher(request, tmp_path_factory):
    model, settings = MODELS[request.param]
    folder = tmp_path_factory.mktemp("texts") / "index"
    build_index(DOCUMENTS, model, folder, IndexSettings(codec="float32", search=settings.to_dict()))
    with Index(folder) as index:
        yield Searcher(index, model)


def assert_same(searcher, query, workflow="hybrid"):
    """Scored by their texts as by their ids."""
    everything = Run({"q": {document.id: 0.0 for document in DOCUMENTS}})
    expected = dict(searcher.run({"q": query}, workflow=workflow, candidates=everything)["q"])
    found = searcher.score_texts(query, [document.text for document in DOCUMENTS], workflow=workflow)
    assert found == pytest.approx([expected[document.id] for document in DOCUMENTS], abs=1e-5)
    assert len(set(expected.values())) > 2


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("workflow", ["hybrid", "lexical", "dense", "words"])
def test_a_text_scores_as_the_document_that_has_it(searcher, query, workflow):
    if workflow == "dense" and "l" in searcher.index.layouts:
        with pytest.raises(ConfigError, match="dense"):
            searcher.score_texts(query, ["w1"], workflow=workflow)
    else:
        assert_same(searcher, query, workflow)


@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_fusion(searcher, fusion):
    assert_same(searcher.with_settings(searcher.settings.with_fusion(fusion)), "w1 w2 w3")


def test_feedback_is_left_out_so_that_texts_do_not_change_each_other(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="float32", search=FED.to_dict()))
    with Index(tmp_path / "i") as index:
        searcher, texts = Searcher(index, HashModel()), ["w1 w2 other", "w2", "", "entirely other"]
        together = searcher.score_texts("w1 w2", texts)
        alone = [searcher.score_texts("w1 w2", [text])[0] for text in texts]
        plain = Searcher(index, HashModel(), ADAPTED).score_texts("w1 w2", texts)
    assert together == pytest.approx(alone) and together == pytest.approx(plain)
    assert together[0] > together[1] > together[2]


def test_a_score_of_a_perfect_match_is_one(searcher):
    if searcher.settings.scale != "none" and "mean" in searcher.index.layouts:
        assert searcher.score_texts("w1", ["w1"], workflow="dense-words")[0] == pytest.approx(1.0)


@pytest.mark.parametrize("query", ["", " \n"])
def test_an_empty_query_is_refused(searcher, query):
    with pytest.raises(ConfigError, match="the query is empty"):
        searcher.score_texts(query, ["w1"])


def test_words_need_the_model(searcher):
    with pytest.raises(ConfigError, match="needs the model"):
        Searcher(searcher.index, None).score_texts("w1", ["w1"])
