"""What a frozen backbone made is kept, and what comes out depends on the text alone."""

import pytest
import torch
from safetensors.torch import save_file
from tests.encode.tiny import TEXTS

from counterpoint.encode import Encoder, Mean, TextInput, TokenVectors, Transformer
from counterpoint.encode.state_memory import StateMemory
from counterpoint.errors import ArtifactError, ConfigError


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


def test_what_was_asked_for_inference_serves_training(encoder):
    tokens = encoder.tokens(TEXTS, "document")
    encoder.backbone.memory = memory = StateMemory(1.0)
    with torch.inference_mode():
        seen = encoder(tokens)["mean"].values
    states = encoder.backbone(tokens)
    assert torch.equal(encoder(tokens)["mean"].values, seen) and not states.is_inference()
    weight = torch.ones(states.shape[-1], requires_grad=True)
    (states @ weight).sum().backward()
    assert weight.grad is not None and len(memory) == len(TEXTS)


def test_each_precision_has_states_of_its_own(encoder):
    tokens = encoder.tokens(TEXTS, "document")
    encoder.backbone.memory = memory = StateMemory(1.0)
    full = encoder.backbone(tokens)
    with torch.autocast("cpu", torch.bfloat16):
        half = encoder.backbone(tokens)
    assert len(memory) == 2 * len(TEXTS) and not torch.equal(full, half)
    assert torch.equal(encoder.backbone(tokens), full)


def test_values_beyond_half_precision_are_kept_as_they_are():
    states = torch.tensor([[[1e6, 1.0], [2.0, 3.0]]])
    ids, attention = torch.tensor([[1, 2]]), torch.ones(1, 2, dtype=torch.bool)
    found = StateMemory(1.0).states(lambda i, a: states, ids, attention, torch.tensor([2]))
    assert torch.equal(found, states)


def test_a_memory_without_room_is_refused():
    with pytest.raises(ConfigError, match="the size must be above 0 GiB, found 0 GiB"):
        StateMemory(0.0)


# -- on disk ------------------------------------------------------------------------------------------


def test_what_was_saved_is_not_computed_again(encoder, tmp_path, monkeypatch):
    """Nor is it different: to the last bit, also where a second memory adds its own."""
    tokens = encoder.tokens(TEXTS, "document")
    encoder.backbone.memory = memory = StateMemory(1.0, tmp_path / "states")
    expected = encoder(tokens)["tokens"].values
    memory.save()
    memory.save()
    assert len(list((tmp_path / "states").iterdir())) == 1, "the second time there is nothing new"
    other = StateMemory(1.0, tmp_path / "states")
    encoder.backbone.memory = other
    new = encoder(encoder.tokens([*TEXTS, "another text"], "document"))
    other.save()
    encoder.backbone.memory = both = StateMemory(1.0, tmp_path / "states")
    assert len(both) == len(TEXTS) + 1 and both.room == other.room
    monkeypatch.setattr(encoder.backbone, "_states", lambda ids, attention: pytest.fail("computed again"))
    assert torch.equal(encoder(tokens)["tokens"].values, expected)
    assert torch.equal(
        encoder(encoder.tokens(["another text"], "document"))["mean"].values[0], new["mean"].values[-1]
    )


def test_a_folder_of_more_than_there_is_room_for(encoder, tmp_path):
    encoder.backbone.memory = memory = StateMemory(1.0, tmp_path)
    expected = encoder(encoder.tokens(TEXTS, "document"))["tokens"].values
    memory.save()
    encoder.backbone.memory = small = StateMemory((2**30 - memory.room - 1) / 2**30, tmp_path)
    assert len(small) == len(TEXTS) - 1
    assert torch.equal(encoder(encoder.tokens(TEXTS, "document"))["tokens"].values, expected)


def test_a_memory_without_a_folder_saves_nothing(encoder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    encoder.backbone.memory = memory = StateMemory(1.0)
    encoder(encoder.tokens(TEXTS, "document"))
    memory.save()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["cut", "other"])
def test_a_damaged_folder_is_named(encoder, tmp_path, damage):
    encoder.backbone.memory = memory = StateMemory(1.0, tmp_path)
    encoder(encoder.tokens(TEXTS, "document"))
    memory.save()
    (path,) = tmp_path.iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-1000])
    else:
        save_file({"states": torch.zeros(3, 2)}, path)
    with pytest.raises(ArtifactError, match="cannot be read as safetensors|holds no hidden states") as found:
        StateMemory(1.0, tmp_path)
    assert path.name in str(found.value)
