"""A light query encoder cut from a deep one."""

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Stack, Transformer, Unit, cut_query
from counterpoint.errors import ConfigError
from counterpoint.part import Part


def deep(folder):
    return Encoder(Transformer(str(folder)), {"cls": Cls(projection=Linear(6))})


def test_what_is_declared_stays_declared(tiny_bert_folder):
    light = cut_query(deep(tiny_bert_folder), 1, {"cls": Stack([Linear(5), Unit()])})
    assert not light.is_set_up and not light.query.is_set_up
    assert (light.query.backbone.layers, light.document.backbone.layers) == (1, None)
    assert light.query.heads["cls"] is not light.document.heads["cls"]
    assert light.setup().sets == {"cls": 5}
    assert light.to_dict() == Part.from_dict(light.to_dict()).to_dict()


@pytest.mark.parametrize("layers", [0, 1, 3])
def test_a_trained_encoder_keeps_what_it_has_learnt(tiny_bert_folder, tmp_path, layers):
    encoder = deep(tiny_bert_folder).setup().eval()
    with torch.no_grad():
        for weights in encoder.parameters():
            weights += 0.1 * torch.randn_like(weights)
    light = cut_query(encoder, layers).eval()
    tokens = encoder.tokens(TEXTS, "query")
    with torch.inference_mode():
        model = encoder.backbone.model_
        states = model(tokens.ids, tokens.attention.long(), output_hidden_states=True).hidden_states
        expected = encoder.heads["cls"].projection(states[layers][:, 0])
    found = light.setup().encode_query(TEXTS, FP32)["cls"].values
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(
        light.encode_document(TEXTS, FP32)["cls"].values,
        DualEncoder(encoder).setup().encode_document(TEXTS, FP32)["cls"].values,
    )
    light.save(tmp_path / "light")
    assert Part.load(tmp_path / "light").fingerprint() == light.fingerprint()


def test_the_sides_share_nothing_but_what_they_are_told_to(tiny_bert_folder):
    shared = {"cls": Linear(4)}
    dual = DualEncoder(deep(tiny_bert_folder), None, shared).setup().eval()
    light = cut_query(dual, 2).setup().eval()
    assert light.shared["cls"] is shared["cls"]
    before = light.encode_document(TEXTS, FP32)["cls"].values
    with torch.no_grad():
        for weights in light.query.parameters():
            weights.zero_()
    np.testing.assert_array_equal(light.encode_document(TEXTS, FP32)["cls"].values, before)
    with torch.no_grad():
        for weights in light.shared.parameters():
            weights.zero_()
    assert not light.encode_document(TEXTS, FP32)["cls"].values.any()


def test_what_cannot_be_cut_is_refused(tiny_bert_folder):
    with pytest.raises(ConfigError, match="query_layers must be at least 0, found -1"):
        cut_query(deep(tiny_bert_folder), -1)
    with pytest.raises(ConfigError, match="layers is 4, this model has 3"):
        cut_query(deep(tiny_bert_folder).setup(), 4)
    with pytest.raises(ConfigError, match="layers is 4, this model has 3"):
        cut_query(deep(tiny_bert_folder), 4).setup()
