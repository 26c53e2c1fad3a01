"""Uni-ColBERTer and ColBERTer on odd texts: in every workflow an index scores as the model was trained."""

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32

from counterpoint.encode import Cls, DualEncoder, Encoder, Gate, Linear, Transformer, WholeWords, word_id
from counterpoint.index import Index, build_index
from counterpoint.learn.scorer_to_search import scorer_to_search
from counterpoint.model import Model
from counterpoint.score import Dot, MaxSim, Mix
from counterpoint.search import Searcher
from counterpoint.types import Document
from counterpoint.vectors import Vectors

DOCUMENTS = {
    "cats": "The cat sat on the mat, the cat slept.",
    "dogs": "dogs run, running dogs run!",
    "empty": "",
    "chinese": "中文 cat 文",
    "thai": "กกก กก",
    "long": "supercalifragilistic" * 8 + " dog",
    "one": "cat",
    "signs": "$ 3 . 50",
}
QUERIES = {
    "plain": "where is the cat",
    "no match": "zebra quartz",
    "empty": "\u200b",  # a model sees nothing of it
    "chinese": "文",
    "thai": "กก",
    "repeated": "dog dog dog running",
}


def made(folder, *, exact, bits=32, closed=False):
    """A tiny model of random weights whose gate drops about half of the words, or all of them."""
    torch.manual_seed(7)
    heads = {
        "cls": Cls(projection=Linear(4)),
        "words": WholeWords(stem="lower", hash_bits=bits, projection=Linear(3)),
    }
    encoder = DualEncoder(
        Encoder(Transformer(str(folder)), heads),
        gates={"words": Gate()},
        shared={"words": Linear(1)} if exact else None,
    )
    model = Model(encoder).setup().eval()
    gate = encoder.gates["words"].linear_
    with torch.no_grad():
        gate.weight.normal_(0, 2)
        rows = (
            DualEncoder(encoder.query).eval().encode_document(list(DOCUMENTS.values()), FP32)["words"].values
        )
        gate.bias.copy_(-(torch.from_numpy(rows) @ gate.weight[0]).median() - (1e6 if closed else 0))
    scorer = Mix([Dot("cls"), MaxSim("words", exact=exact, floor0=True)]).setup()
    with torch.no_grad():
        scorer.gamma_.fill_(0.4)
    carried = scorer_to_search(scorer, model)
    assert carried is not None and carried[0], carried
    return model, scorer


def trained_scores(model, scorer):
    """What the scorer gives every query and document."""
    q = model.encode_query(list(QUERIES.values()))
    d = model.encode_document(list(DOCUMENTS.values()))
    padded = [{name: Vectors.pad(packed) for name, packed in side.items()} for side in (q, d)]
    with torch.inference_mode():
        return scorer(*padded).numpy(), scorer.parts[1](*padded).numpy()


@pytest.fixture(params=[False, True], ids=["colberter", "uni-colberter"])
def exact(request):
    return request.param


def indexed(model, tmp_path):
    documents = [Document(name, text) for name, text in DOCUMENTS.items()]
    build_index(documents, model, tmp_path / "i", model.index_settings(codec="float32", lexical=None))
    return Index(tmp_path / "i")


@pytest.mark.parametrize("bits", [32, 4], ids=["", "collisions"])
@pytest.mark.parametrize("workflow", ["hybrid", "dense-words", "words-dense"])
def test_an_index_scores_as_the_model_was_trained(tiny_bert_folder, tmp_path, exact, bits, workflow):
    model, scorer = made(tiny_bert_folder, exact=exact, bits=bits)
    expected, _ = trained_scores(model, scorer)
    with indexed(model, tmp_path) as index:
        run = Searcher(index, model).run(QUERIES, 100, workflow=workflow)
    seen = 0
    for i, query in enumerate(QUERIES):
        for j, document in enumerate(DOCUMENTS):
            if document in run.scores(query):
                assert run.scores(query)[document] == pytest.approx(expected[i, j], abs=1e-4)
                seen += 1
    assert seen == len(QUERIES) * len(DOCUMENTS) if workflow != "words-dense" else seen > 0


def test_words_alone_score_as_the_model_was_trained(tiny_bert_folder, tmp_path, exact):
    model, scorer = made(tiny_bert_folder, exact=exact)
    _, expected = trained_scores(model, scorer)
    with indexed(model, tmp_path) as index:
        run = Searcher(index, model).run(QUERIES, 100, workflow="words")
    for i, query in enumerate(QUERIES):
        found = run.scores(query) if query in run else {}
        scores = [found.get(document, 0.0) for document in DOCUMENTS]  # what matches nothing may be left out
        np.testing.assert_allclose(scores, expected[i], atol=1e-4)


def test_where_all_words_are_gated_away_the_single_vector_scores_alone(tiny_bert_folder, tmp_path, exact):
    model, scorer = made(tiny_bert_folder, exact=exact, closed=True)
    expected, words = trained_scores(model, scorer)
    assert not words.any()
    with indexed(model, tmp_path) as index:
        assert index.info()["sets"]["words"]["vectors"] == 0
        run = Searcher(index, model).run(QUERIES, 100, workflow="dense-words")
    for i, query in enumerate(QUERIES):
        found = [run.scores(query)[document] for document in DOCUMENTS]
        np.testing.assert_allclose(found, expected[i], atol=1e-4)


def test_explanations_name_what_matched_and_sum_to_the_score(tiny_bert_folder, tmp_path, exact):
    model, _ = made(tiny_bert_folder, exact=exact)
    with indexed(model, tmp_path) as index:
        searcher = Searcher(index, model)
        for text in QUERIES.values():
            for hit in searcher.search(text, 8, workflow="dense-words", explain=True).hits:
                assert hit.explanation is not None
                leaves = list(hit.explanation.leaves())
                assert sum(leaf.score for leaf in leaves) == pytest.approx(hit.score, abs=1e-4)
                for leaf in leaves:
                    if exact and leaf.query is not None and leaf.document is not None:
                        assert leaf.query.text.lower() == leaf.document.text.lower()
                        place = leaf.document
                        assert hit.document.full_text[place.start : place.end] == place.text


def test_four_bits_make_words_collide(tiny_bert_folder):
    """With sixteen ids, words that differ share a row, the mean of both, and match each other."""
    model, _ = made(tiny_bert_folder, exact=True, bits=4)
    words = sorted(
        {
            word
            for text in DOCUMENTS.values()
            for word in text.lower().split()
            if word.isascii() and word.isalpha() and len(word) < 9
        }
    )
    ids = [word_id(word, 4) for word in words]
    assert len(set(ids)) < len(words) and max(ids) < 16
    found = DualEncoder(model.encoder.query).eval().encode_document([" ".join(words)])["words"]
    assert sorted(found.ids.tolist()) == sorted(set(ids))
    one, other = next((a, b) for a in words for b in words if a < b and word_id(a, 4) == word_id(b, 4))
    q, d = model.encode_query([one])["words"], model.encode_query([other])["words"]
    score = MaxSim("words", exact=True)({"words": Vectors.pad(q)}, {"words": Vectors.pad(d)})
    assert score.item() == pytest.approx(float(q.values[0] @ d.values[0]), rel=1e-5)
