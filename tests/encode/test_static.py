"""The static head: word embeddings, projected, against the table by hand."""

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS
from torch.testing import assert_close

from counterpoint.encode import (
    PUNCTUATION,
    DualEncoder,
    Encoder,
    Gate,
    Linear,
    Mean,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.errors import ConfigError
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.transform import Normalise

QUERY = TextInput(12, marker="[unused0]", expand_to=12)


def dual(folder, *, normalise=True, **more):
    heads = {
        "l": Static(skip=PUNCTUATION, projection=Linear(4, bias=False), normalise=normalise),
        "h": TokenVectors(skip=PUNCTUATION, projection=Linear(4, bias=False), normalise=True),
    }
    return DualEncoder(Encoder(Transformer(str(folder)), heads, query=QUERY), **more).setup().eval()


@torch.inference_mode()
@pytest.mark.parametrize("side", ["query", "document"])
def test_a_row_is_the_projected_word_embedding(tiny_bert_folder, side):
    """L_s = Linear(Vocab(Input(s))): no position, no segment, no layer norm (HIL, section 3.3)."""
    made = dual(tiny_bert_folder)
    words = made.query.backbone.model_.state_dict()["embeddings.word_embeddings.weight"]
    weight = made.query.heads["l"].projection.linear_.weight
    tokens = made.query.tokens(TEXTS, side)
    vectors, contextual = made(tokens)["l"], made(tokens)["h"]
    assert torch.equal(vectors.mask, contextual.mask) and torch.equal(vectors.ids, tokens.ids)
    for text, at in vectors.mask.nonzero().tolist():
        mapped = weight @ words[tokens.ids[text, at]]
        assert_close(vectors.values[text, at], mapped / mapped.norm())
    assert vectors.mask.sum() > 20


def test_embeddings_are_the_backbones_own_and_learn(tiny_bert_folder, tmp_path):
    made = dual(tiny_bert_folder)
    plain = Encoder(Transformer(str(tiny_bert_folder)), {"h": TokenVectors()}).setup()
    assert len(made.state_dict()) == len(plain.state_dict()) + 2  # the two projections, no second table
    made(made.query.tokens(TEXTS, "document"))["l"].values.sum().backward()
    assert made.query.backbone.embeddings.weight.grad.abs().sum() > 0
    with torch.no_grad():
        made.query.backbone.embeddings.weight += 0.5
    made.save(tmp_path / "m")
    again = Part.load(tmp_path / "m")
    assert_close(again.table("l"), made.table("l"))


def test_only_static_heads_run_no_layer(tiny_bert_folder, monkeypatch):
    made = Encoder(Transformer(str(tiny_bert_folder)), {"l": Static()}).setup()
    monkeypatch.setattr(Transformer, "forward", lambda *_: pytest.fail("the backbone ran"))
    assert made(made.tokens(TEXTS, "query"))["l"].values.shape[2] == 16


def test_the_table_is_what_texts_are_encoded_to(tiny_bert_folder):
    """After projection, unit length, shared layer and transforms."""
    encoder = dual(tiny_bert_folder, normalise=False, shared={"l": Linear(3)})
    model = Model(encoder, {"l": [Normalise()]}).setup()
    assert model.sets["l"].static and model.sets["l"].ids and not model.sets["h"].static
    table = model.table("l")
    assert table.shape == (encoder.query.backbone.embeddings.num_embeddings, 3)
    assert table.dtype == np.float32
    for packed in (model.encode_document(TEXTS, FP32)["l"], model.encode_query(TEXTS, FP32)["l"]):
        np.testing.assert_allclose(packed.values, table[packed.ids], atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(packed.values, axis=1), 1, atol=1e-6)


def test_a_table_for_each_side(tiny_bert_folder):
    other = dual(tiny_bert_folder).query
    with torch.no_grad():
        other.backbone.embeddings.weight += 1
    model = Model(DualEncoder(dual(tiny_bert_folder).query, other)).setup()
    queries = model.encode_query(TEXTS, FP32)["l"]
    np.testing.assert_allclose(queries.values, model.table("l", "query")[queries.ids], atol=1e-6)
    documents = model.encode_document(TEXTS, FP32)["l"]
    np.testing.assert_allclose(documents.values, model.table("l")[documents.ids], atol=1e-6)


def test_sets_without_a_table(tiny_bert_folder):
    model = Model(dual(tiny_bert_folder, gates={"l": Gate()})).setup()
    assert not model.sets["l"].static
    with pytest.raises(ConfigError, match="a gate"):
        model.table("l")
    with pytest.raises(ConfigError, match="text around"):
        model.table("h")
    with pytest.raises(ConfigError, match="it has|makes"):
        model.table("x")


def test_padding_takes_no_part(tiny_bert_folder):
    made = dual(tiny_bert_folder)
    together = made(made.query.tokens(TEXTS, "document"))["l"].ragged()
    for index, text in enumerate(TEXTS):
        alone = made(made.query.tokens([text], "document"))["l"].ragged()
        np.testing.assert_array_equal(alone.ids, together.ids_of(index))
        np.testing.assert_allclose(alone.values, together[index], atol=1e-6)


def test_in_dim_is_that_of_the_embeddings(tiny_bert_folder):
    with pytest.raises(ConfigError, match="word embeddings have 16"):
        Encoder(Transformer(str(tiny_bert_folder)), {"l": Static(in_dim=4), "m": Mean()}).setup()
