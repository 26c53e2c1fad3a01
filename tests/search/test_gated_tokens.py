"""A gate that drops some occurrences of a word-piece and keeps others: explanations show those it kept."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.encode.tiny import FP32

from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, TokenVectors, Transformer
from counterpoint.index import Index, build_index
from counterpoint.model import Model
from counterpoint.search import Searcher
from counterpoint.search.explain import heaviest_rows
from counterpoint.types import Document

TEXTS = {
    "cats": "the cat sat on the mat where the cat is a red cat",
    "dogs": "dogs run where dogs run and the dogs run",
    "house": "the house is a red house and the dogs run in the house",
}
rows = st.lists(st.integers(0, 2), max_size=7)


@settings(deadline=None)
@given(rows, st.data())
def test_the_heaviest_rows_are_those_of_all_ways(ids, data):
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(ids), max_size=len(ids))), float)
    stored = np.array(data.draw(rows), int)
    ids = np.array(ids, int)
    ways = [w for w in combinations(range(len(ids)), len(stored)) if (ids[list(w)] == stored).all()]
    kept = heaviest_rows(ids, weights, stored)
    if not ways:
        assert kept is None
    else:
        assert (ids[kept] == stored).all()
        assert weights[kept].sum() == max(weights[list(way)].sum() for way in ways)


def test_the_rows_that_a_gate_kept_are_those_above_its_threshold():
    ids, weights = np.array([5, 7, 5, 7, 5]), np.array([0.0, 0.2, 0.3, 0.0, 0.1])
    kept = heaviest_rows(ids, weights, ids[weights > 0])
    assert kept is not None and (kept == (weights > 0)).all()


@pytest.fixture
def model(tiny_bert_folder, monkeypatch):
    monkeypatch.setattr("counterpoint.encode.batching.bf16_gains", lambda device: False)
    torch.manual_seed(3)
    head = TokenVectors(projection=Linear(3))
    plain = Encoder(Transformer(str(tiny_bert_folder)), {"tokens": head})
    encoder = DualEncoder(plain, gates={"tokens": Gate()})
    made = Model(encoder, search={"weights": {"tokens": 1.0}, "scale": "none", "floor": ["tokens"]})
    gate = made.setup().eval().encoder.gates["tokens"].linear_
    found = DualEncoder(plain).eval().encode_document(list(TEXTS.values()), FP32)["tokens"].values
    with torch.no_grad():
        gate.weight.normal_(0, 2)
        at = np.sort((torch.from_numpy(found) @ gate.weight[0]).numpy())
        gate.bias.fill_(-float(at[len(at) // 2 - 1 : len(at) // 2 + 1].mean()))  # between two rows
    return made


def test_an_explanation_shows_the_occurrences_that_the_gate_keeps(model, tmp_path):
    documents = [Document(name, text) for name, text in TEXTS.items()]
    build_index(documents, model, tmp_path / "i", model.index_settings(codec="float32", lexical=None))
    plain, gate = DualEncoder(model.encoder.query).eval(), model.encoder.gates["tokens"].linear_
    elsewhere = 0
    with Index(tmp_path / "i") as index:
        for hit in Searcher(index, model).search("the cat dogs house", 3, explain=True).hits:
            text = TEXTS[hit.document.id]
            spans = plain.spans([text], "tokens", "document")[0]
            vectors = plain.encode_document([text], FP32)["tokens"]
            with torch.no_grad():  # ColBERTer, equation 9, for every row
                r = torch.relu(gate(torch.from_numpy(vectors.values)))[:, 0].numpy()
            kept = {span for span, weight in zip(spans, r, strict=True) if weight > 0}
            words = hit.words["tokens"]
            assert {word.span for word in words if word.importance is not None} == kept
            assert {word.span for word in words if word.importance is None} == set(spans) - kept
            matched = {leaf.document for leaf in hit.explanation.leaves()} - {None}
            assert matched and matched <= kept
            ids = vectors.ids_of(0)
            earliest = heaviest_rows(ids, np.zeros(len(ids)), ids[r > 0])
            elsewhere += {span for span, k in zip(spans, earliest, strict=True) if k} != kept
    assert elsewhere, "no text here would have been explained wrongly by taking the earliest occurrences"
