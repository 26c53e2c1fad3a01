"""Texts to vector sets: backbones, heads, encoders, and readers of published checkpoints.

Names are imported on first use. So indexes and explanations can use `counterpoint.encode.words` without
torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.encode.backbone import Transformer
    from counterpoint.encode.batching import EncodeOptions, Precision, bf16_gains, token_batches
    from counterpoint.encode.checkpoints import load_encoder
    from counterpoint.encode.checkpoints.classification import load_interactive
    from counterpoint.encode.cut import cut_query
    from counterpoint.encode.dual import DualEncoder
    from counterpoint.encode.encoder import Encoder
    from counterpoint.encode.gate import BY_GATE, Gate
    from counterpoint.encode.heads import Cls, Head, Mean, WholeWords
    from counterpoint.encode.interactive import InteractiveEncoder, Pairs
    from counterpoint.encode.keyed import Keyed
    from counterpoint.encode.layers import Activation, Layer, Linear, Stack, Unit
    from counterpoint.encode.routed import BY_LOAD, BY_ROUTER, Routed
    from counterpoint.encode.router import Router
    from counterpoint.encode.terms import SparseTerms
    from counterpoint.encode.text import TextInput
    from counterpoint.encode.token_heads import PUNCTUATION, Static, TokenVectors
    from counterpoint.encode.tokenizer import Tokenizer
    from counterpoint.encode.tokens import Kind, Tokens, WordMap
    from counterpoint.encode.words import Stem, WordSettings, split_words, stem, unique_words, word_id

__all__ = [
    "BY_GATE",
    "BY_LOAD",
    "BY_ROUTER",
    "PUNCTUATION",
    "Activation",
    "Cls",
    "DualEncoder",
    "EncodeOptions",
    "Encoder",
    "Gate",
    "Head",
    "InteractiveEncoder",
    "Keyed",
    "Kind",
    "Layer",
    "Linear",
    "Mean",
    "Pairs",
    "Precision",
    "Routed",
    "Router",
    "SparseTerms",
    "Stack",
    "Static",
    "Stem",
    "TextInput",
    "TokenVectors",
    "Tokenizer",
    "Tokens",
    "Transformer",
    "Unit",
    "WholeWords",
    "WordMap",
    "WordSettings",
    "bf16_gains",
    "cut_query",
    "load_encoder",
    "load_interactive",
    "split_words",
    "stem",
    "token_batches",
    "unique_words",
    "word_id",
]

_HOMES = {
    "backbone": ("Transformer",),
    "batching": ("EncodeOptions", "Precision", "bf16_gains", "token_batches"),
    "checkpoints": ("load_encoder",),
    "checkpoints.classification": ("load_interactive",),
    "cut": ("cut_query",),
    "dual": ("DualEncoder",),
    "encoder": ("Encoder",),
    "gate": ("BY_GATE", "Gate"),
    "heads": ("Cls", "Head", "Mean", "WholeWords"),
    "interactive": ("InteractiveEncoder", "Pairs"),
    "keyed": ("Keyed",),
    "layers": ("Activation", "Layer", "Linear", "Stack", "Unit"),
    "routed": ("BY_LOAD", "BY_ROUTER", "Routed"),
    "router": ("Router",),
    "terms": ("SparseTerms",),
    "text": ("TextInput",),
    "token_heads": ("PUNCTUATION", "Static", "TokenVectors"),
    "tokenizer": ("Tokenizer",),
    "tokens": ("Kind", "Tokens", "WordMap"),
    "words": ("Stem", "WordSettings", "split_words", "stem", "unique_words", "word_id"),
}


__getattr__ = lazily(__name__, _HOMES)


__dir__ = __all__.copy
