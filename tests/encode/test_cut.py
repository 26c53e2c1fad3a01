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
    with pytest.raises(ConfigError, match=r"layers is \[0, 3\], expected rising numbers from 0 to 2"):
        cut_query(deep(tiny_bert_folder), [0, 3]).setup()
    with pytest.raises(ConfigError, match=r"layers is \[2, 0\], expected rising numbers"):
        cut_query(deep(tiny_bert_folder).setup(), [2, 0])


def test_some_layers_by_their_numbers(tiny_bert_folder, tmp_path):
    """The states are those of the chosen layers, one after the other, cut from memory or from files."""
    encoder = deep(tiny_bert_folder).setup().eval()
    light = cut_query(encoder, [0, 2]).setup().eval()
    tokens = encoder.tokens(TEXTS, "query")
    with torch.inference_mode():
        bert = encoder.backbone.model_
        bert.encoder.layer = torch.nn.ModuleList([bert.encoder.layer[at] for at in (0, 2)])
        expected = bert(tokens.ids, tokens.attention.long()).last_hidden_state
        torch.testing.assert_close(light.query.backbone(tokens), expected)
    again = cut_query(deep(tiny_bert_folder), [0, 2]).setup()
    assert again.query.backbone.fingerprint() == light.query.backbone.fingerprint()
    again.save(tmp_path / "light")
    assert Part.load(tmp_path / "light").fingerprint() == again.fingerprint()
