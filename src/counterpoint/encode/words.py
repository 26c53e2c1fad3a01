"""Whole words, their stems and their ids: the units of ColBERTer's second kind of vector.

This module needs no torch. Indexes, explanations and the `WholeWords` head use the same functions, so they
always agree on words.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.types import Span

__all__ = [
    "Stem",
    "WordSettings",
    "is_punctuation",
    "number_words",
    "repair",
    "split_words",
    "stem",
    "unique_words",
    "word_id",
]

Stem = Literal["snowball", "porter", "nltk", "lower", "none"]
"""Normal form under which words count as the same. All but "none" compare in lower case.

snowball: Snowball's English stemmer (Porter 2). porter: Porter's original. nltk: NLTK's variant of Porter,
used in the paper (slower). lower: no stemming, as in the training of ColBERTer's released checkpoints.
"""

# Unicode blocks in which BERT makes each character a word (its `handle_chinese_chars`).
_HAN = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f"
    "\U0002b740-\U0002b81f\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_HAN_OR_RUN = re.compile(f"[{_HAN}]|[^{_HAN}]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class WordSettings:
    """Which words count as the same and which are left out.

    Attributes:
        stem: see `Stem`.
        hash_bits: number of low bits of the hash that make an id, 1 to 32; fewer bits give more collisions.
        drop_punctuation: leave out words that are one punctuation sign.
    """

    stem: Stem = "snowball"
    hash_bits: int = 32
    drop_punctuation: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.hash_bits <= 32:
            raise ConfigError(f"hash_bits must be between 1 and 32, found {self.hash_bits}")


def repair(text: str) -> str:
    """Replace lone surrogates (half a character, from broken JSON) one for one; no tokenizer accepts them."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def split_words(text: str) -> list[Span]:
    """Split a text as BERT's pre-tokenizer does; return each word with its character offsets.

    Words end at white space. Every punctuation sign is a word (`didn ' t`, `$ 3 . 50`), and so is every
    Chinese character. In other scripts without spaces (Thai, Lao, Khmer, Japanese kana), a word is a run up
    to the next space or punctuation sign.

    >>> [word.text for word in split_words("It cost $3.50")]
    ['It', 'cost', '$', '3', '.', '50']
    """
    runs = _pre_tokenizer()(repair(text))
    if text.isascii():
        return [Span(word, start, end) for word, (start, end) in runs]
    return [
        Span(piece.group(), start + piece.start(), start + piece.end())
        for word, (start, _) in runs
        for piece in _HAN_OR_RUN.finditer(word)
    ]


def stem(word: str, method: Stem = "snowball") -> str:
    """Normal form under which a word is counted and matched.

    >>> stem("Sentences"), stem("Sentences", "lower")
    ('sentenc', 'sentences')
    """
    return _stemmer(method)(word)


def word_id(word: str, bits: int = 32) -> int:
    """Hash of a stemmed word: the first four bytes of SHA-256 of its UTF-8, little-endian; 0 becomes 1.

    ColBERTer's published code does the same, because 0 marks "no word" there.
    """
    digest = hashlib.sha256(word.encode()).digest()
    return (int.from_bytes(digest[:4], "little") & ((1 << bits) - 1)) or 1


def unique_words(
    text: str | Sequence[Span], settings: WordSettings | None = None
) -> tuple[Int[np.ndarray, " w"], list[Span]]:
    """The distinct words of a text, in order of first occurrence.

    Args:
        text: a text, or some of its `split_words`.
        settings: the defaults if None.

    Returns:
        ids: int64, without duplicates.
        spans: for each id, the span of its first occurrence.
    """
    words = split_words(text) if isinstance(text, str) else text
    ids, _, first = number_words(words, settings or WordSettings())
    return ids, [words[position] for position in first]


def number_words(
    words: Sequence[Span], settings: WordSettings
) -> tuple[Int[np.ndarray, " w"], Int[np.ndarray, " n"], list[int]]:
    """Give the same number to the same words.

    Returns:
        ids: of the distinct words, in order of first occurrence.
        rows: for each word its position in `ids`; -1 if it is left out.
        first: for each of `ids` the position in `words` of its first occurrence.
    """
    normal = _stemmer(settings.stem)
    row_of_word: dict[str, int] = {}
    row_of_id: dict[int, int] = {}
    first: list[int] = []
    rows = np.full(len(words), -1, dtype=np.int64)
    for position, word in enumerate(words):
        if settings.drop_punctuation and is_punctuation(word.text):
            continue
        row = row_of_word.get(word.text)
        if row is None:
            number = word_id(normal(word.text), settings.hash_bits)
            row = row_of_word[word.text] = row_of_id.setdefault(number, len(row_of_id))
            if row == len(first):
                first.append(position)
        rows[position] = row
    return np.array(list(row_of_id), dtype=np.int64), rows, first


def is_punctuation(word: str) -> bool:
    """Whether a word is one punctuation sign, by BERT's definition (ASCII symbols such as $ included)."""
    return len(word) == 1 and (word in string.punctuation or unicodedata.category(word).startswith("P"))


@cache
def _pre_tokenizer() -> Callable[[str], list[tuple[str, tuple[int, int]]]]:
    from tokenizers.pre_tokenizers import BertPreTokenizer  # the compiled library; it does not need torch

    return BertPreTokenizer().pre_tokenize_str


@cache
def _nltk_stem() -> Callable[[str], str]:
    """Cached: NLTK's stemmer is plain Python and would take half of the time of training heads."""
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise MissingExtraError("stem='nltk'", package="nltk", extra="nltk") from error
    stem_word = PorterStemmer().stem
    return lru_cache(maxsize=2**16)(lambda word: stem_word(word.lower()))


def _stemmer(method: Stem) -> Callable[[str], str]:
    """A function from a word to its normal form; new each time, because PyStemmer's are not thread-safe."""
    if method == "none":
        return lambda word: word
    if method == "lower":
        return str.lower
    if method in ("snowball", "porter"):
        import Stemmer

        stem_word = Stemmer.Stemmer("english" if method == "snowball" else "porter").stemWord
        return lambda word: stem_word(word.lower())
    if method == "nltk":
        return _nltk_stem()
    raise ConfigError(f"unknown stemmer {method!r}; use 'snowball', 'porter', 'nltk', 'lower' or 'none'")
