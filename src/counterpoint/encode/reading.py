"""`Reading`: how the texts of one side become token rows, with every open setting of `TextInput` filled in.

Queries are tokenised with it, without torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from counterpoint.encode.rows import Kind, Row
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.identifiers import spaced

__all__ = ["Reading"]

NOWHERE = np.zeros(0, np.int64)


@final
@dataclass(frozen=True)
class Reading:
    """How texts of one side are tokenised; the attributes are those of `TextInput`.

    With `identifiers`, names such as `checkIfEmpty` are read with a space before each inner capital that a
    small letter follows, unless the vocabulary has the whole name.
    """

    max_length: int
    marker: str | None = None
    prompt: str = ""
    expand_to: int | None = None
    attend: bool = False
    expand_with: str | None = None
    identifiers: bool = False

    def rows(self, texts: Sequence[str], tokenizer: Tokenizer) -> list[Row]:
        """Tokenise texts into rows of at most `max_length` positions."""
        marker = [] if self.marker is None else [tokenizer.id_of(self.marker)]
        opening, closing = [*tokenizer.prefix, *marker], tokenizer.suffix
        opening_kinds = [Kind.SPECIAL] * len(tokenizer.prefix) + [Kind.MARKER] * len(marker)
        closing_kinds = [Kind.SPECIAL] * len(closing)
        room = self.max_length - len(opening) - len(closing)
        found = []
        read = [_spaced(text, tokenizer) if self.identifiers else (text, NOWHERE) for text in texts]
        encodings = tokenizer.encode([self.prompt + text for text, _ in read])
        for text, (shown, added), encoding in zip(texts, read, encodings, strict=True):
            places, kinds = _places(shown, encoding.offsets[: room + 1], len(self.prompt))
            if len(added):  # offsets without the added spaces
                places = (np.array(places) - np.searchsorted(added + np.arange(len(added)), places)).tolist()
            cut = places[room][0] if len(places) > room else None
            ids = np.array([*opening, *encoding.ids[:room], *closing], dtype=np.int64)
            kinds = np.array([*opening_kinds, *kinds[:room], *closing_kinds], dtype=np.int64)
            spans = np.zeros((len(ids), 2), dtype=np.int64)
            spans[len(opening) : len(ids) - len(closing)] = np.reshape(places[:room], (-1, 2))
            attended = np.ones(len(ids), dtype=bool)
            row = Row(text, ids, kinds, attended, spans, cut, self.identifiers)
            found.append(self._expanded(row, tokenizer))
        return found

    def filler(self, tokenizer: Tokenizer) -> int:
        """Vocabulary id that fills shorter texts; `TextInput.check` made sure that there is one."""
        return (tokenizer.mask_id or 0) if self.expand_with is None else tokenizer.id_of(self.expand_with)

    def _expanded(self, row: Row, tokenizer: Tokenizer) -> Row:
        missing = (self.expand_to or 0) - len(row)
        if missing <= 0:
            return row
        return replace(
            row,
            ids=np.pad(row.ids, (0, missing), constant_values=self.filler(tokenizer)),
            kinds=np.pad(row.kinds, (0, missing), constant_values=Kind.EXPANSION),
            attended=np.pad(row.attended, (0, missing), constant_values=self.attend),
            spans=np.pad(row.spans, ((0, missing), (0, 0))),
        )


def _places(
    text: str, offsets: Sequence[tuple[int, int]], prompt: int
) -> tuple[list[tuple[int, int]], list[Kind]]:
    """Offsets of each token in the text, and its kind; input offsets count from the start of the prompt.

    Some tokenizers count the space before a word as part of its token; it is removed here.
    """
    places, kinds = [], []
    for start, end in offsets:
        kinds.append(Kind.PROMPT if prompt and end <= prompt else Kind.TEXT)
        start, end = max(start - prompt, 0), max(end - prompt, 0)
        if text[start : start + 1].isspace():
            start += len(text[start:end]) - len(text[start:end].lstrip())
        places.append((start, end))
    return places, kinds


def _spaced(text: str, tokenizer: Tokenizer) -> tuple[str, np.ndarray]:
    return spaced(text, lambda word: any(tokenizer.find(one) is not None for one in (word, word.lower())))
