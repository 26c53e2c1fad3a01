"""CITADEL end to end: trained a few steps, indexed, searched and explained as its scorer scores."""

import math

import numpy as np
import pytest
import torch
from tests.learn.small import training_set

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    Linear,
    Routed,
    Router,
    Static,
    TextInput,
    Transformer,
)
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, build_index
from counterpoint.learn import (
    Contrastive,
    Fit,
    InterIso,
    Job,
    RouterBalance,
    RouterSparsity,
    Train,
    train,
)
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim, ZScore
from counterpoint.search import Searcher
from counterpoint.search.explain import _Rows
from counterpoint.types import Document, Span
from counterpoint.vectors import Vectors

DATA = training_set()
ROUTED = MaxSim("routed", exact=True, floor0=True)
SEARCH = {"weights": {"cls": 1.0, "routed": 1.0}, "scale": "none", "exact": ["routed"]}
HIL = {"weights": {"cls": 1.0, "l": 1.0, "routed": 1.0}, "idf": {"l": 1.0}, "scale": "none"}


def trained(folder, run, activation, heads, search, stages):
    torch.manual_seed(4)
    head = Routed(
        Router(activation, "new"), keys=(1, 3), projection=Linear(4), normalise=activation == "softmax"
    )
    text = TextInput(32)
    heads = {"cls": Cls(Linear(4)), "routed": head, **heads}
    encoder = Encoder(Transformer(str(folder), layers=2), heads, query=text, document=text)
    model = Model(DualEncoder(encoder), search={**search, "exact": ["routed"]}).setup()
    torch.nn.init.zeros_(head.router.bias_)  # the start is meant for states of some hundred components
    return load_model(train(Job(model, stages, DATA, run)))


def citadel(expert):
    router = Contrastive("router", scorer=Dot("routed.router"))
    return expert + router + 1e-2 * RouterBalance("routed") + 1e-4 * RouterSparsity("routed")


@pytest.fixture(scope="module")
def model(tiny_bert_folder, tmp_path_factory):
    stage = Train(citadel(Contrastive("expert")), Dot("cls") + ROUTED, steps=6, batch=6, chunk=4, lr=1e-3)
    return trained(tiny_bert_folder, tmp_path_factory.mktemp("run"), "log", {}, SEARCH, (stage,))


@pytest.fixture(scope="module")
def hil(tiny_bert_folder, tmp_path_factory):
    """CITADEL-HIL: L and the expert vectors, InterIso on both, each on the scale of its own spread."""
    low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(ROUTED)
    shapes = InterIso("l", 0.3, absolute=True, name="iso_l") + InterIso("routed", -0.3, False, name="iso_h")
    expert = Dot("cls") + high
    objective = citadel(Contrastive("expert", expert)) + Contrastive("l", low) + shapes
    stages = (
        Fit("l", what="idf", documents=None),
        Train(objective, low + expert, steps=6, batch=6, chunk=4, lr=1e-3, keep="last"),
    )
    static = {"l": Static(projection=Linear(4, bias=False), normalise=True)}
    return trained(tiny_bert_folder, tmp_path_factory.mktemp("run"), "softmax", static, HIL, stages)


def indexed(model, folder):
    documents = [Document(name, text) for name, text in DOCUMENTS.items()]
    build_index(documents, model, folder, model.index_settings(codec="float32", lexical=None))
    return Index(folder)


DOCUMENTS = {**DATA.documents, "empty": ""}


def scorer_of(model):
    """The sum of the parts with the weights of the model's search settings; idf by its formula."""
    parts = {"cls": Dot("cls"), "routed": ROUTED}
    if "l" in model.sets:
        parts["l"] = MaxSim("l", idf=1.0).setup()
        rows = [set(ids.tolist()) for ids in model.row_ids(list(DOCUMENTS.values()), "l", "document")]
        special, count = set(model.sets["l"].special), len(rows)
        words = sorted(set().union(*rows) | special)
        found = [sum(word in row for row in rows) for word in words]
        idf = [math.log(1 + (count - df + 0.5) / (df + 0.5)) for df in found]
        idf = [0.0 if word in special else value for word, value in zip(words, idf, strict=True)]
        parts["l"].set_idf(torch.tensor(words), torch.tensor(idf), math.log(1 + (count + 0.5) / 0.5))
    weights = model.search["weights"]
    assert weights.keys() == parts.keys()
    return lambda q, d: sum(weights[on] * part(q, d) for on, part in parts.items())


@torch.inference_mode()
def scored(model, scorer):
    sides = model.encode_query(list(DATA.queries.values())), model.encode_document(list(DOCUMENTS.values()))
    return scorer(*({name: Vectors.pad(found) for name, found in side.items()} for side in sides)).numpy()


def assert_scores(searcher, workflow, expected, *, everywhere):
    run, seen = searcher.run(DATA.queries, 100, workflow=workflow), 0
    for i, query in enumerate(DATA.queries):
        for j, document in enumerate(DOCUMENTS):
            if query in run and document in run.scores(query):
                assert run.scores(query)[document] == pytest.approx(expected[i, j], abs=1e-3)
                seen += 1
    assert seen == expected.size if everywhere else seen > len(DATA.queries)


@pytest.mark.parametrize("closed", [None, 1.5])
def test_every_workflow_scores_as_the_scorer(model, tmp_path, closed):
    if closed is not None:
        model.save(tmp_path / "again")
        model = load_model(tmp_path / "again").prune(closed)
    expected = scored(model, scorer_of(model))
    with indexed(model, tmp_path / "i") as index:
        assert index.layouts["routed"].kind == "exact"
        searcher = Searcher(index, model)
        for workflow in ("hybrid", "dense-words", "words-dense"):
            assert_scores(searcher, workflow, expected, everywhere=workflow != "words-dense")
        words = searcher.run(DATA.queries, 100, workflow="words")
        plain = scored(model, ROUTED)
        for i, query in enumerate(DATA.queries):
            found = words.scores(query) if query in words else {}
            line = [found.get(document, 0.0) for document in DOCUMENTS]
            np.testing.assert_allclose(line, plain[i], atol=1e-3)


def test_beside_word_embeddings_it_scores_by_what_the_z_scores_have_learnt(hil, tmp_path):
    weights = hil.search["weights"]
    assert weights["cls"] == 1 and weights["l"] != 1 and weights["routed"] > weights["l"], (
        "softmaxes are small"
    )
    with indexed(hil, tmp_path / "i") as index:
        assert_scores(Searcher(index, hil), "dense-words", scored(hil, scorer_of(hil)), everywhere=True)


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
    kept, dropped = rows.split(np.array(stored), "d")
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
    with pytest.raises(ArtifactError, match="do not belong to its text"):
        split(recomputed, [5, 0, 0, 0])
