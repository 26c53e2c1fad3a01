"""Hidden states of every layer are transformers', and without padding."""

import numpy as np
import pytest
import torch
from tests.encode.tiny import FP32, TEXTS, model
from transformers import AutoModel

from counterpoint.encode import EncodeOptions


@pytest.mark.parametrize("side", ["query", "document"])
def test_states_of_every_layer_and_text(tiny_bert_folder, side):
    made = model(tiny_bert_folder).setup()
    reference = AutoModel.from_pretrained(tiny_bert_folder).eval()
    done = []
    options = EncodeOptions(budget=60, precision="fp32", device="cpu", progress=done.append)
    seen = {}
    for positions, layers in made.encode_layers(TEXTS, side, options):
        assert len(layers) == 4  # the embeddings and three layers
        for place, position in enumerate(positions):
            seen[position] = [layer[place] for layer in layers], layers[0].ids_of(place)
    assert sorted(seen) == list(range(len(TEXTS))) and sum(done) == len(TEXTS)
    for position, text in enumerate(TEXTS):
        tokens = made.encoder(side).tokens([text], side)
        states, ids = seen[position]
        assert ids.tolist() == tokens.ids[0].tolist()
        with torch.inference_mode():
            theirs = reference(
                input_ids=tokens.ids, attention_mask=tokens.attention.long(), output_hidden_states=True
            ).hidden_states
        for ours, expected in zip(states, theirs, strict=True):
            np.testing.assert_allclose(ours, expected[0].numpy(), rtol=1e-4, atol=1e-5)


def test_the_last_layer_is_what_heads_are_fed(tiny_bert_folder):
    made = model(tiny_bert_folder).setup().train()
    tokens = made.encode_document(TEXTS, FP32)["tokens"]
    for positions, layers in made.encode_layers(TEXTS, "document", FP32):
        for place, position in enumerate(positions):
            np.testing.assert_allclose(layers[-1][place], tokens[position], rtol=1e-4, atol=1e-5)
    assert made.training


def test_a_backbone_without_layers_has_its_embeddings(tiny_bert_folder):
    made = model(tiny_bert_folder, layers=0)
    ((positions, layers),) = made.encode_layers(["dog"], "document", FP32)
    assert positions == [0] and len(layers) == 1
    tokens = made.encode_document(["dog"], FP32)["tokens"]
    np.testing.assert_allclose(layers[0].values, tokens.values, rtol=1e-4, atol=1e-5)
