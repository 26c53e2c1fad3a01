"""What a frozen backbone made is kept, and what comes out depends on the text alone."""

import pytest
import torch
from tests.encode.tiny import TEXTS

from counterpoint.encode import Encoder, Mean, TextInput, TokenVectors, Transformer
from counterpoint.encode.state_memory import StateMemory
from counterpoint.errors import ConfigError


@pytest.fixture
def encoder(tiny_bert_folder):
    heads = {"mean": Mean(), "tokens": TokenVectors()}
    query = TextInput(12, expand_to=12)  # whose masks are scored and not attended
    return Encoder(Transformer(str(tiny_bert_folder)), heads, query=query).setup().eval()


@pytest.mark.parametrize("side", ["query", "document"])
def test_states_are_those_of_the_backbone(encoder, side):
    """Up to half precision, for every head, and twice the same."""
    tokens = encoder.tokens(TEXTS, side)
    expected = encoder(tokens)
    encoder.backbone.memory = memory = StateMemory(1.0)
    for _ in range(2):
        found = encoder(tokens)
        for name, vectors in expected.items():
            assert torch.equal(found[name].mask, vectors.mask)
            real = vectors.mask
            torch.testing.assert_close(found[name].values[real], vectors.values[real], rtol=2e-3, atol=2e-3)
    assert len(memory) == len(TEXTS)


def test_nothing_depends_on_what_was_asked_before(encoder):
    """Not on the other texts of the batch, nor on whether there was room: to the last bit."""
    alone = []
    for text in TEXTS:
        encoder.backbone.memory = StateMemory(1.0)
        alone.append(encoder(encoder.tokens([text], "document"))["mean"].values[0])
    for size in (1.0, 1e-9):
        encoder.backbone.memory = memory = StateMemory(size)
        for texts in (TEXTS[3:], TEXTS):
            found = encoder(encoder.tokens(texts, "document"))["mean"].values
        assert all(torch.equal(one, other) for one, other in zip(alone, found, strict=True))
        assert len(memory) == (len(TEXTS) if size == 1.0 else 0)


def test_a_text_passes_the_backbone_once(encoder, monkeypatch):
    seen = []
    compute = encoder.backbone._states
    monkeypatch.setattr(
        encoder.backbone, "_states", lambda ids, attention: seen.append(ids) or compute(ids, attention)
    )
    encoder.backbone.memory = StateMemory(1.0)
    for _ in range(3):
        encoder(encoder.tokens(TEXTS, "document"))
    assert len(seen) == len(TEXTS)


def test_values_beyond_half_precision_are_kept_as_they_are():
    states = torch.tensor([[[1e6, 1.0], [2.0, 3.0]]])
    ids, attention = torch.tensor([[1, 2]]), torch.ones(1, 2, dtype=torch.bool)
    found = StateMemory(1.0).states(lambda i, a: states, ids, attention, torch.tensor([2]))
    assert torch.equal(found, states)


def test_a_memory_without_room_is_refused():
    with pytest.raises(ConfigError, match="there must be room for something, found 0 GiB"):
        StateMemory(0.0)
