"""Idf gives no weight to rows that stand for nothing in a text, at search as in training."""

import math

import numpy as np
import pytest
from tests.encode.tiny import FP32
from tests.learn.small import training_set

from counterpoint.encode import DualEncoder, Encoder, Linear, Static, TextInput, Transformer, WholeWords
from counterpoint.index import Index, build_index
from counterpoint.model import Model
from counterpoint.search import Searcher
from counterpoint.types import Document

SEARCH = {"weights": {"l": 1.0}, "idf": {"l": 1.0}, "scale": "none"}


@pytest.fixture(scope="module")
def searcher(tiny_bert_folder, tmp_path_factory):
    query, document = TextInput(10, marker="[unused0]", expand_to=10), TextInput(24, marker="[unused1]")
    heads = {"l": Static(projection=Linear(8), normalise=True, skip=["?", "!"])}
    encoder = Encoder(Transformer(str(tiny_bert_folder), layers=0), heads, query, document)
    model = Model(DualEncoder(encoder), search=SEARCH).setup().eval()
    folder = tmp_path_factory.mktemp("special") / "i"
    documents = (Document(name, text) for name, text in training_set().documents.items())
    build_index(documents, model, folder, model.index_settings(codec="float32", lexical=None))
    with Index(folder) as index:
        yield Searcher(index, model)


def test_special_ids_are_known(searcher):
    tokenizer = searcher.model.encoder.query.backbone.tokenizer
    names = {tokenizer.name_of(number) for number in searcher.model.sets["l"].special}
    assert names == {"[CLS]", "[SEP]", "[PAD]", "[MASK]", "[unused0]", "[unused1]", "?", "!"}
    words = Encoder(searcher.model.encoder.query.backbone, {"w": WholeWords()})
    assert Model(DualEncoder(words)).sets["w"].special == ()


def test_only_words_count(searcher):
    """Σ idf·max by loops over the words of the query.

    [MASK] and the sign that is skipped are in no document, and add nothing.
    """
    model, texts = searcher.model, training_set().documents
    tokenizer = model.encoder.query.backbone.tokenizer
    q = model.encode_query(["zz dog?"], FP32)["l"]
    d = model.encode_document(list(texts.values()), FP32)["l"]
    names = [tokenizer.name_of(number) for number in q.ids_of(0).tolist()]
    assert names == ["[CLS]", "[unused0]", "z", "##z", "dog", "?", "[SEP]", *["[MASK]"] * 3]
    found = dict(searcher.run({"q": "zz dog?"}, 24, workflow="words")["q"])
    for at, document in enumerate(texts):
        score = 0.0
        for name, number, row in zip(names, q.ids_of(0), q[0], strict=True):
            if name in ("z", "##z", "dog"):
                df = sum(number in d.ids_of(other) for other in range(len(texts)))
                assert (df == 0) == (name != "dog")
                idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
                score += idf * max(float(row @ other) for other in d[at])
        assert found[document] == pytest.approx(score, rel=1e-4)
    leaves = list(searcher.search("zz dog?", workflow="words", explain=True).hits[0].explanation.leaves())
    silent = [leaf for leaf in leaves if leaf.query.text not in ("zz", "z", "dog")]
    assert len(silent) == 7 and not any(leaf.score for leaf in silent)
    assert np.isclose(sum(leaf.score for leaf in leaves), max(found.values()), rtol=1e-5)
