"""CITADEL end to end: trained a few steps, indexed, searched and explained as its scorer scores."""

import numpy as np
import pytest
import torch
from tests.learn.small import training_set

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Routed, Router, TextInput, Transformer
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, build_index
from counterpoint.learn import Contrastive, Job, RouterBalance, RouterSparsity, Train, train
from counterpoint.model import Model, load_model
from counterpoint.score import Dot, MaxSim
from counterpoint.search import Searcher
from counterpoint.search.explain import _Rows
from counterpoint.types import Document, Ragged, Span
from counterpoint.vectors import Vectors

DATA = training_set()
SCORER = Dot("cls") + MaxSim("routed", exact=True, floor0=True)
SEARCH = {"weights": {"cls": 1.0, "routed": 1.0}, "scale": "none", "exact": ["routed"]}


@pytest.fixture(scope="module")
def model(tiny_bert_folder, tmp_path_factory):
    torch.manual_seed(4)
    heads = {"cls": Cls(Linear(4)), "routed": Routed(Router(start="new"), keys=(1, 3), projection=Linear(4))}
    text = TextInput(32)
    encoder = Encoder(Transformer(str(tiny_bert_folder), layers=2), heads, query=text, document=text)
    router = Contrastive("router", scorer=Dot("routed.router"))
    objective = (
        Contrastive("expert") + router + 1e-2 * RouterBalance("routed") + 1e-4 * RouterSparsity("routed")
    )
    stage = Train(objective, SCORER, steps=6, batch=6, chunk=4, lr=1e-3)
    run = tmp_path_factory.mktemp("run")
    return load_model(train(Job(Model(DualEncoder(encoder), search=SEARCH), (stage,), DATA, run)))


def indexed(model, folder):
    documents = [Document(name, text) for name, text in [*DATA.documents.items(), ("empty", "")]]
    build_index(documents, model, folder, model.index_settings(codec="float32", lexical=None))
    return Index(folder)


@torch.inference_mode()
def scored(model, scorer=SCORER):
    texts = [*DATA.documents.values(), ""]
    sides = model.encode_query(list(DATA.queries.values())), model.encode_document(texts)
    return scorer(*({name: Vectors.pad(found) for name, found in side.items()} for side in sides)).numpy()


@pytest.mark.parametrize("closed", [None, 1.5])
def test_every_workflow_scores_as_the_scorer(model, tmp_path, closed):
    if closed is not None:
        model = load_model_again(model, tmp_path).close_gates(closed)
    expected = scored(model)
    with indexed(model, tmp_path / "i") as index:
        assert index.layouts["routed"].inverted
        searcher = Searcher(index, model)
        for workflow in ("hybrid", "dense-words", "words-dense"):
            run, seen = searcher.run(DATA.queries, 100, workflow=workflow), 0
            for i, query in enumerate(DATA.queries):
                for j, document in enumerate([*DATA.documents, "empty"]):
                    if query in run and document in run.scores(query):
                        assert run.scores(query)[document] == pytest.approx(expected[i, j], abs=1e-3)
                        seen += 1
            assert seen == expected.size or workflow == "words-dense"
        words = searcher.run(DATA.queries, 100, workflow="words")
        plain = scored(model, MaxSim("routed", exact=True, floor0=True))
        for i, query in enumerate(DATA.queries):
            found = words.scores(query) if query in words else {}
            line = [found.get(document, 0.0) for document in [*DATA.documents, "empty"]]
            np.testing.assert_allclose(line, plain[i], atol=1e-3)


def load_model_again(model, tmp_path):
    model.save(tmp_path / "again")
    return load_model(tmp_path / "again")


def test_explanations_name_tokens_and_keys_and_sum_to_the_score(model, tmp_path):
    matched = 0
    with indexed(model, tmp_path / "i") as index:
        for query in list(DATA.queries.values())[:12]:
            for hit in Searcher(index, model).search(query, 5, explain=True).hits:
                leaves = list(hit.explanation.leaves())
                assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-3)
                for leaf in leaves:
                    if leaf.query is not None and leaf.document is not None:
                        keys = {span.text.rpartition("→")[2] for span in (leaf.query, leaf.document)}
                        assert len({key.lower().removeprefix("##") for key in keys}) == 1
                        place = leaf.document
                        token = place.text.partition("→")[0]
                        assert hit.document.full_text[place.start : place.end] in (token, "")
                        matched += 1
    assert matched > 5


def split(recomputed, stored, weights=None):
    """Which of the rows a to f are taken for the stored ones, and which for dropped ones."""
    spans = [Span(letter, at, at + 1) for at, letter in enumerate("abcdef")]
    rows = _Rows(spans, np.array(recomputed), lambda: np.array(weights or [1.0] * 6), False)
    stored = np.array(stored)
    kept, dropped = rows.split(Ragged(np.zeros((len(stored), 1)), np.array([0, len(stored)]), stored), "d")
    return "".join(span.text for span in kept), "".join(span.text for span in dropped)


def test_a_router_that_chose_another_key_for_a_token_is_still_explained():
    recomputed = [5, 7, 9, 7, 2, 1]
    assert split(recomputed, [5, 9, 1]) == ("acf", "bde")
    assert split(recomputed, [5, 7, 1], [1.0, 0.1, 1.0, 0.9, 0.0, 1.0]) == ("adf", "bce")
    assert split(recomputed, [5, 7, 8, 7, 2, 1]) == ("abcdef", "")
    assert split(recomputed, [5, 7, 9, 7, 2, 3]) == ("abcdef", "")
    assert split(recomputed, [3, 7, 9, 7, 2, 1]) == ("abcdef", "")
    assert split(recomputed, [5, 7, 9, 4, 7, 2, 1]) == ("abcddef", "")
    assert split(recomputed, [5, 7, 7, 2, 3]) == ("abdef", "c")
    with pytest.raises(ArtifactError, match="not of its text's words"):
        split(recomputed, [5, 0, 0, 0])
