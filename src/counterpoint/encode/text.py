"""`TextInput`: how texts of one side become token rows."""

from __future__ import annotations

from typing import final

from counterpoint.encode.reading import Reading
from counterpoint.encode.tokenizer import Tokenizer
from counterpoint.errors import ConfigError
from counterpoint.part import Part

__all__ = ["TextInput"]


@final
class TextInput(Part):
    """How texts of one side are tokenised.

    ColBERT v1's query side is `TextInput(32, marker="[unused0]", expand_to=32)`: [CLS] [Q] tokens [SEP], then
    [MASK] up to 32 positions. No position attends to these masks, but they are scored. Its document side is
    `TextInput(180, marker="[unused1]")`.

    Args:
        max_length: maximum number of positions, special tokens included; the backbone's limit if None.
        marker: a vocabulary entry inserted after [CLS].
        prompt: text put in front of every text ("query: "); its tokens represent no text.
        expand_to: fill shorter texts with mask tokens up to this many positions.
        attend: whether the backbone may attend to the mask tokens (PyLate's `attend_to_expansion_tokens`).
        expand_with: a vocabulary entry to use instead of the mask token.
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
        """Check these settings against the tokenizer and the backbone's limit.

        Raises:
            ConfigError: lists every problem.
        """
        faults = []
        longest = limit if self.max_length is None else self.max_length
        least = len(tokenizer.prefix) + len(tokenizer.suffix) + (self.marker is not None) + 1
        if longest > limit:
            faults.append(f"max_length is {longest}, but the backbone accepts at most {limit} positions")
        if longest < least:
            faults.append(f"max_length is {longest}, but special tokens and one token of text need {least}")
        if self.expand_to is not None and self.expand_to > longest:
            faults.append(f"expand_to is {self.expand_to}, more than max_length, which is {longest}")
        if self.expand_to is not None and self.expand_with is None and tokenizer.mask_id is None:
            faults.append(
                "expand_to needs a mask token, which this vocabulary lacks; name another with expand_with"
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
        """Vocabulary ids of the marker and of the token that fills shorter texts."""
        added = set() if self.marker is None else {tokenizer.id_of(self.marker)}
        return added if self.expand_to is None else {*added, self.reading(0).filler(tokenizer)}

    def reading(self, limit: int, identifiers: bool = False) -> Reading:
        """The same settings for a backbone that accepts `limit` positions, usable without torch."""
        given = self.marker, self.prompt, self.expand_to, self.attend, self.expand_with
        return Reading(self.max_length or limit, *given, identifiers)
