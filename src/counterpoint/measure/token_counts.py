"""Number of vectors per text: as word-pieces, words, or distinct words (ColBERTer, table 1)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice

from counterpoint.encode.words import Stem, WordSettings, split_words, unique_words
from counterpoint.errors import DataError

__all__ = ["TokenCounts", "count_tokens"]

BATCH = 512  # number of texts tokenised at a time


@dataclass(frozen=True)
class TokenCounts:
    """Means over texts.

    Attributes:
        texts: number of texts.
        pieces: word-pieces, without special tokens.
        unique_pieces: distinct word-pieces.
        words: whole words; a punctuation sign is one.
        unique_words: distinct words in lower case.
        unique_stems: distinct stems, which is the number of ColBERTer's word vectors.
    """

    texts: int
    pieces: float
    unique_pieces: float
    words: float
    unique_words: float
    unique_stems: float

    @property
    def retained(self) -> float:
        """Share of vectors that remains with distinct stems instead of word-pieces."""
        return self.unique_stems / self.pieces

    def to_dict(self) -> dict[str, float]:
        """All values by name."""
        return {**asdict(self), "retained": self.retained}


def count_tokens(
    texts: Iterable[str], encode: Callable[[Sequence[str]], Sequence[Sequence[int]]], stem: Stem = "nltk"
) -> TokenCounts:
    """Count over texts, without truncation.

    Args:
        texts: any number; read once.
        encode: returns the word-piece ids of some texts, without special tokens.
        stem: normal form for `unique_stems`; the paper uses "nltk".

    Raises:
        DataError: no text, or texts without a single word-piece.
    """
    sums = dict.fromkeys([field.name for field in fields(TokenCounts)], 0)
    lower, stemmed = WordSettings("lower"), WordSettings(stem)
    source = iter(texts)
    while batch := list(islice(source, BATCH)):
        for text, ids in zip(batch, encode(batch), strict=True):
            words = split_words(text)
            sums["texts"] += 1
            sums["pieces"] += len(ids)
            sums["unique_pieces"] += len(set(ids))
            sums["words"] += len(words)
            sums["unique_words"] += len(unique_words(words, lower)[0])
            sums["unique_stems"] += len(unique_words(words, stemmed)[0])
    count = sums.pop("texts")
    if not sums["pieces"]:
        raise DataError(f"nothing to count: {count} texts without a single word")
    return TokenCounts(count, **{name: total / count for name, total in sums.items()})
