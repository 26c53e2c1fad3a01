"""`TextInput`: how the texts of one side become token rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np

from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.encode.tokens import Kind, Row
from counterpoint.errors import ConfigError
from counterpoint.identifiers import spaced
from counterpoint.part import Part

__all__ = ["TextInput"]

NOWHERE = np.zeros(0, np.int64)


@final
class TextInput(Part):
    """How texts of one side are put before the backbone.

    ColBERT v1's query side is `TextInput(32, marker="[unused0]", expand_to=32)`: [CLS] [Q] tokens [SEP] and
    then [MASK] up to 32 positions, which no position attends to and which are scored all the same. Its
    document side is `TextInput(180, marker="[unused1]")`.

    Args:
        max_length: positions at most, special ones included; as many as the backbone takes where None.
        marker: a vocabulary entry inserted after [CLS].
        prompt: text put in front of every text ("query: "); its tokens stand for nothing.
        expand_to: fill shorter texts with mask tokens up to this many positions.
        attend: whether the backbone may look at the mask tokens (PyLate's `attend_to_expansion_tokens`).
        expand_with: another vocabulary entry in place of the mask token.
    """

    def __init__(
        self,
        max_length: int | None = None,
        marker: str | None = None,
        prompt: str = "",
        expand_to: int | None = None,
        attend: bool = False,
        expand_with: str | None = None,
    ):
        super().__init__()
        self.max_length = max_length
        self.marker = marker
        self.prompt = prompt
        self.expand_to = expand_to
        self.attend = attend
        self.expand_with = expand_with

    def check(self, tokenizer: Tokenizer, limit: int) -> None:
        """Find out before encoding whether these settings can be carried out.

        Raises:
            ConfigError: listing everything that is wrong.
        """
        faults = []
        longest = limit if self.max_length is None else self.max_length
        least = len(tokenizer.prefix) + len(tokenizer.suffix) + (self.marker is not None) + 1
        if longest > limit:
            faults.append(f"max_length is {longest}, the backbone takes at most {limit} positions")
        if longest < least:
            faults.append(f"max_length is {longest}, special tokens and one token of text need {least}")
        if self.expand_to is not None and self.expand_to > longest:
            faults.append(f"expand_to is {self.expand_to}, more than max_length, which is {longest}")
        if self.expand_to is not None and self.expand_with is None and tokenizer.mask_id is None:
            faults.append(
                "expand_to needs a mask token, which this vocabulary lacks; name one by expand_with"
            )
        for name in ("marker", "expand_with"):
            token = getattr(self, name)
            if token is not None and tokenizer.find(token) is None:
                faults.append(
                    f"{name} {token!r} is not one entry of the vocabulary (BERT keeps '[unused0]' free)"
                )
        if faults:
            raise ConfigError(*[f"TextInput: {fault}" for fault in faults])

    def added_ids(self, tokenizer: Tokenizer) -> set[int]:
        """Vocabulary ids of the marker and of what shorter texts are filled with."""
        added = set() if self.marker is None else {tokenizer.id_of(self.marker)}
        return added if self.expand_to is None else {*added, self._filler(tokenizer)}

    def rows(
        self, texts: Sequence[str], tokenizer: Tokenizer, limit: int, identifiers: bool = False
    ) -> list[Row]:
        """Tokenise texts into rows of at most `max_length` (or `limit`) positions.

        Where `identifiers`, names such as `checkIfEmpty` are read as if a space stood before each capital
        inside that a small letter follows, unless the vocabulary has the whole.
        """
        marker = [] if self.marker is None else [tokenizer.id_of(self.marker)]
        opening = np.array([*tokenizer.prefix, *marker], dtype=np.int64)
        opening_kinds = [Kind.SPECIAL] * len(tokenizer.prefix) + [Kind.MARKER] * len(marker)
        closing = np.array(tokenizer.suffix, dtype=np.int64)
        room = (self.max_length or limit) - len(opening) - len(closing)
        found = []
        read = [_spaced(text, tokenizer) if identifiers else (text, NOWHERE) for text in texts]
        encodings = tokenizer.encode([self.prompt + text for text, _ in read])
        for text, (shown, added), encoding in zip(texts, read, encodings, strict=True):
            spans, kinds = _places(shown, encoding.offsets, len(self.prompt))
            spans -= np.searchsorted(added + np.arange(len(added)), spans)  # where they stand without spaces
            cut = int(spans[room, 0]) if len(spans) > room else None
            ids = np.concatenate([opening, np.array(encoding.ids[:room], dtype=np.int64), closing])
            kinds = np.concatenate([opening_kinds, kinds[:room], [Kind.SPECIAL] * len(closing)])
            spans = np.pad(spans[:room], ((len(opening), len(closing)), (0, 0)))
            row = Row(text, ids, kinds.astype(np.int64), np.ones(len(ids), dtype=bool), spans, cut)
            found.append(self._expanded(replace(row, identifiers=identifiers), tokenizer))
        return found

    def _expanded(self, row: Row, tokenizer: Tokenizer) -> Row:
        missing = (self.expand_to or 0) - len(row)
        if missing <= 0:
            return row
        return Row(
            text=row.text,
            ids=np.pad(row.ids, (0, missing), constant_values=self._filler(tokenizer)),
            kinds=np.pad(row.kinds, (0, missing), constant_values=Kind.EXPANSION),
            attended=np.pad(row.attended, (0, missing), constant_values=self.attend),
            spans=np.pad(row.spans, ((0, missing), (0, 0))),
            cut=row.cut,
            identifiers=row.identifiers,
        )

    def _filler(self, tokenizer: Tokenizer) -> int:
        """What shorter texts are filled with; `check` has seen to it that there is something."""
        return (tokenizer.mask_id or 0) if self.expand_with is None else tokenizer.id_of(self.expand_with)


def _places(text: str, offsets: Sequence[tuple[int, int]], prompt: int) -> tuple[np.ndarray, np.ndarray]:
    """Where in the text each token stands, and its kind; offsets count from the start of the prompt.

    Some tokenizers count the space before a word as part of its token; it is taken off here.
    """
    spans = np.array(offsets, dtype=np.int64).reshape(-1, 2) - prompt
    kinds = np.where(spans[:, 1] > 0, Kind.TEXT, Kind.PROMPT) if prompt else np.full(len(spans), Kind.TEXT)
    spans = spans.clip(min=0)
    for index in np.flatnonzero([text[start : start + 1].isspace() for start in spans[:, 0].tolist()]):
        start, end = spans[index].tolist()
        spans[index, 0] = start + len(text[start:end]) - len(text[start:end].lstrip())
    return spans, kinds


def _spaced(text: str, tokenizer: Tokenizer) -> tuple[str, np.ndarray]:
    """What is read for a text, and where spaces were put into it."""
    return spaced(text, lambda word: any(tokenizer.find(one) is not None for one in (word, word.lower())))
