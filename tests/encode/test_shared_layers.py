"""Two encoders into one space by a layer that both sides share, and backbones without layers or training."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.encode.tiny import FP32, TEXTS

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Mean, Stack, Transformer, Unit
from counterpoint.errors import ConfigError
from counterpoint.part import Part


def pair(folder, **shared):
    query = Encoder(Transformer(str(folder), layers=1), {"cls": Cls()})
    document = Encoder(Transformer(str(folder)), {"cls": Cls()})
    return DualEncoder(query, document, shared or {"cls": Stack([Linear(5), Unit()])})


def test_both_sides_pass_through_the_same_layer(tiny_bert_folder):
    made = pair(tiny_bert_folder).setup().eval()
    linear = made.shared["cls"].layers[0].linear_
    assert made.sets == {"cls": 5}
    for side in ("query", "document"):
        raw = made.encoder(side)(made.encoder(side).tokens(TEXTS, side))["cls"].values[:, 0]
        expected = torch.nn.functional.normalize(raw @ linear.weight.T + linear.bias, dim=-1)
        found = getattr(made, f"encode_{side}")(TEXTS, FP32)["cls"].values
        np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-5)


def test_it_is_saved_once_and_still_shared_when_loaded(tiny_bert_folder, tmp_path):
    made = pair(tiny_bert_folder).setup().eval()
    made.save(tmp_path / "pair")
    names = [n for n in load_file(tmp_path / "pair" / "weights.safetensors") if n.startswith("shared.")]
    assert len(names) == 2, "a weight and a bias"
    loaded = Part.load(tmp_path / "pair")
    for side in ("encode_query", "encode_document"):
        # Not equal to the last bit on every machine: weights lie at other addresses in another file.
        np.testing.assert_allclose(
            getattr(loaded, side)(TEXTS, FP32)["cls"].values,
            getattr(made, side)(TEXTS, FP32)["cls"].values,
            atol=1e-6,
        )
    assert loaded.fingerprint() == made.fingerprint()
    with torch.no_grad():
        loaded.shared["cls"].layers[0].linear_.weight.zero_()
        loaded.shared["cls"].layers[0].linear_.bias.zero_()
    for side in ("encode_query", "encode_document"):
        assert not getattr(loaded, side)(TEXTS, FP32)["cls"].values.any()


def test_a_gradient_of_either_side_reaches_it(tiny_bert_folder):
    made = pair(tiny_bert_folder).setup().eval()
    for side in ("query", "document"):
        made.zero_grad()
        made(made.encoder(side).tokens(TEXTS[:2], side))["cls"].values[:, 0, 0].sum().backward()
        assert made.shared["cls"].layers[0].linear_.weight.grad.abs().sum() > 0
        other = made.encoder("document" if side == "query" else "query")
        assert all(parameter.grad is None for parameter in other.parameters())


def test_a_layer_on_no_set_is_refused(tiny_bert_folder):
    with pytest.raises(ConfigError, match="shared layer on 'words', but the encoders make cls"):
        pair(tiny_bert_folder, words=Linear(3)).setup()


def test_no_layers_leave_the_embeddings(tiny_bert_folder):
    """DAFT's ablation without self-attention: the mean over positions of what the embeddings give."""
    made = DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=0), {"mean": Mean()})).setup().eval()
    backbone = made.query.backbone.model_
    tokens = made.query.tokens(["the cat sat"], "query")
    expected = backbone.embeddings(input_ids=tokens.ids)[0].mean(0)
    found = made.encode_query(["the cat sat"], FP32)["mean"].values[0]
    np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-6)
    assert not any("layer." in name for name in backbone.state_dict())


def test_random_weights_come_of_the_seed_and_not_of_the_file(tiny_bert_folder):
    def weights(seed, random):
        torch.manual_seed(seed)
        return Transformer(str(tiny_bert_folder), random=random).setup().state_dict()

    name = "model_.encoder.layer.0.attention.self.query.weight"
    assert torch.equal(weights(7, True)[name], weights(7, True)[name])
    assert not torch.equal(weights(7, True)[name], weights(8, True)[name])
    assert not torch.equal(weights(7, True)[name], weights(7, False)[name])
    assert torch.equal(weights(7, False)[name], weights(8, False)[name])
