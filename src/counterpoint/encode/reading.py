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
        opening = np.array([*tokenizer.prefix, *marker], dtype=np.int64)
        opening_kinds = [Kind.SPECIAL] * len(tokenizer.prefix) + [Kind.MARKER] * len(marker)
        closing = np.array(tokenizer.suffix, dtype=np.int64)
        room = self.max_length - len(opening) - len(closing)
        found = []
        read = [_spaced(text, tokenizer) if self.identifiers else (text, NOWHERE) for text in texts]
        encodings = tokenizer.encode([self.prompt + text for text, _ in read])
        for text, (shown, added), encoding in zip(texts, read, encodings, strict=True):
            spans, kinds = _places(shown, encoding.offsets, len(self.prompt))
            spans -= np.searchsorted(added + np.arange(len(added)), spans)  # offsets without the added spaces
            cut = int(spans[room, 0]) if len(spans) > room else None
            ids = np.concatenate([opening, np.array(encoding.ids[:room], dtype=np.int64), closing])
            kinds = np.concatenate([opening_kinds, kinds[:room], [Kind.SPECIAL] * len(closing)])
            spans = np.pad(spans[:room], ((len(opening), len(closing)), (0, 0)))
            attended = np.ones(len(ids), dtype=bool)
            row = Row(text, ids, kinds.astype(np.int64), attended, spans, cut, self.identifiers)
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


def _places(text: str, offsets: Sequence[tuple[int, int]], prompt: int) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of each token in the text, and its kind; input offsets count from the start of the prompt.

    Some tokenizers count the space before a word as part of its token; it is removed here.
    """
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2) - prompt
    kinds = np.where(spans[:, 1] > 0, Kind.TEXT, Kind.PROMPT) if prompt else np.full(len(spans), Kind.TEXT)
    spans = spans.clip(min=0)
    for index in np.flatnonzero([text[start : start + 1].isspace() for start in spans[:, 0].tolist()]):
        start, end = spans[index].tolist()
        spans[index, 0] = start + len(text[start:end]) - len(text[start:end].lstrip())
    return spans, kinds


def _spaced(text: str, tokenizer: Tokenizer) -> tuple[str, np.ndarray]:
    return spaced(text, lambda word: any(tokenizer.find(one) is not None for one in (word, word.lower())))
