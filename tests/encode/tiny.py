"""Tiny random models, built by the reference libraries in their own formats."""

import string
from pathlib import Path

import numpy as np
import torch

from counterpoint.encode import (
    DualEncoder,
    EncodeOptions,
    Encoder,
    Linear,
    Mean,
    TextInput,
    TokenVectors,
    Transformer,
    WholeWords,
)

WORDS = (
    "the cat sat on mat dog dogs run running house red blue what is where a an of in query document".split()
)
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LETTERS = list(string.ascii_lowercase + string.digits + string.punctuation + "中文ก")
VOCABULARY = list(
    dict.fromkeys([*SPECIAL, *LETTERS, *(f"##{c}" for c in LETTERS), *(w for w in WORDS if len(w) > 1)])
)

TEXTS = [
    "The cat sat on the mat.",
    "Where is the red house? In 中文, what?",
    "",
    "dogs run, running dogs!",
    "a" * 30 + " supercalifragilistic " + "dog " * 40,
]


def save_tiny_bert(folder: Path, *, positions: int = 64, dim: int = 16) -> Path:
    """A BERT whose random weights are large enough for every part of it to show in the output."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(1)
    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=dim,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=positions,
        initializer_range=0.4,
    )
    BertModel(config).save_pretrained(folder)
    tiny_tokenizer(positions).save_pretrained(folder)
    return folder


def tiny_tokenizer(positions: int = 64):
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    backend = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer(lowercase=True)
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    backend.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=positions,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
    )


FP32 = EncodeOptions(precision="fp32", device="cpu")


def model(folder, **options):
    heads = {
        "mean": Mean(normalise=True),
        "words": WholeWords(projection=Linear(4)),
        "tokens": TokenVectors(),
    }
    return DualEncoder(Encoder(Transformer(str(folder), **options), heads, query=TextInput(expand_to=9)))


def copy(folder, target):
    for file in folder.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    return target


def assert_same(one, other, **tolerance):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name].offsets, other[name].offsets)
        np.testing.assert_allclose(one[name].values, other[name].values, **tolerance)
