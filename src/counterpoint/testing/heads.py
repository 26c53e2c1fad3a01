"""The contract of heads, in an encoder with a tiny random backbone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch.testing import assert_close

from counterpoint.encode import Encoder, Head, Transformer
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.part import Part
from counterpoint.testing.rules import making, try_rules
from counterpoint.types import Side

__all__ = ["DIM", "RULES", "check_head"]

DIM = 5
VOCABULARY = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b")
TEXTS = ("a b", "b b a b a a", "", "b")
SIDES: tuple[Side, ...] = ("query", "document")


def check_head(declare: Callable[[], Head]) -> None:
    """Check a head over hidden states of 5 components.

    The texts are "a b", "b b a b a a", "" and "b". A head that leaves out short words makes no rows of them.

    Args:
        declare: makes a head that is not set up yet.

    Raises:
        AssertionError: naming the broken rule.

    Example:
        >>> from counterpoint.encode import Mean
        >>> check_head(Mean)
    """
    making(declare, "lambda: Mean(normalise=True)")
    try_rules(RULES, declare, draws=1)


def makes_the_vectors_that_it_declares(head: Head, _: Random) -> None:
    """Rows are those of `choice`, with their ids, or one if `pooled`; they have `dim` components."""
    encoder = encoder_of(head)
    for side in SIDES:
        made = encoder(encoder.tokens(TEXTS, side))["made"].ragged()
        assert np.isfinite(made.values).all(), "a component is not finite"
        lengths = np.linalg.norm(made.values, axis=1)
        unit = np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)
        assert not head.normalise or unit.all(), (
            "with `normalise`, rows are not of length 1; call `self.finish`"
        )
        counts, spans = np.diff(made.offsets), encoder.spans(TEXTS, "made", side)
        told = [len(each) for each in spans]
        assert counts.tolist() == told, f"rows of {list(TEXTS)}: {counts.tolist()}, by `choice` {told}"
        for at, ids in enumerate([] if head.pooled else encoder.row_ids(TEXTS, "made", side)):
            found = made.ids_of(at)
            assert np.array_equal(found, ids), f"ids of {TEXTS[at]!r}: {found}, by `choice` {ids}"


def reads_each_text_alone(head: Head, _: Random) -> None:
    """Vectors depend on their own text alone, not on other texts, nor on padding."""
    encoder = encoder_of(head)
    for side in SIDES:
        together = encoder(encoder.tokens(TEXTS, side))["made"].ragged()
        for at, text in enumerate(TEXTS):
            alone = encoder(encoder.tokens([text], side))["made"].ragged()
            start, end = together.offsets[at], together.offsets[at + 1]
            assert_close(alone.values, together.values[start:end], msg=f"{text!r} alone has other vectors")


def passes_gradients(head: Head, _: Random) -> None:
    """Gradients reach the backbone, and are finite."""
    encoder = encoder_of(head)
    made = encoder(encoder.tokens(TEXTS, "document"))["made"]
    remedy = "check the head with arguments that keep words of one letter"
    assert made.mask.any(), f"the head made no rows of the documents {list(TEXTS)}; {remedy}"
    weights = torch.randn(made.values.shape, generator=torch.Generator().manual_seed(0))
    (made.values * weights)[made.mask].sum().backward()
    found = [each.grad for each in encoder.backbone.parameters() if each.grad is not None]
    assert any(gradient.any() for gradient in found), "no gradient reaches the backbone"
    assert all(torch.isfinite(gradient).all() for gradient in found), "a gradient is not finite"


def survives_saving(head: Head, _: Random) -> None:
    """An encoder that is loaded again makes the same vectors."""
    encoder = encoder_of(head)
    with TemporaryDirectory() as folder:
        encoder.save(Path(folder) / "encoder")
        again = Part.load(Path(folder) / "encoder")
    assert isinstance(again, Encoder)
    one, other = (each(each.tokens(TEXTS, "query"))["made"].ragged() for each in (encoder, again))
    assert np.array_equal(one.values, other.values), "the vectors changed"


RULES = (
    makes_the_vectors_that_it_declares,
    reads_each_text_alone,
    passes_gradients,
    survives_saving,
)


def encoder_of(head: Head) -> Encoder:
    """An encoder of one set, `made`, with random weights that are always the same."""
    assert isinstance(head, Head), f"a {type(head).__name__} is no Head"
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Encoder(_backbone(), {"made": head}).setup().eval()


def _backbone() -> Transformer:
    import tokenizers

    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    backend = tokenizers.Tokenizer(tokenizers.models.WordPiece(numbers, unk_token="[UNK]"))
    backend.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    ends = [(token, numbers[token]) for token in ("[CLS]", "[SEP]")]
    backend.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    backbone = Transformer("tiny", random=True)
    backbone.tokenizer_ = Tokenizer(backend, pad="[PAD]", mask="[MASK]")
    backbone.config_ = {
        "model_type": "bert",
        "vocab_size": len(VOCABULARY),
        "hidden_size": DIM,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "intermediate_size": 8,
        "max_position_embeddings": 16,
        "initializer_range": 0.4,
    }
    return backbone
