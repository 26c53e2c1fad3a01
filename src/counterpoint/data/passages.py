"""Cut documents at sentence boundaries into passages that fit an encoder."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from unicodedata import category

from counterpoint.data.reader import Located
from counterpoint.data.sentences import UNSPACED_LETTER, Begins, Sentence, count_words, sentences, word_starts
from counterpoint.errors import ConfigError
from counterpoint.types import Document

__all__ = ["PASSAGE_WORDS", "cut_passages", "located_passages"]

PASSAGE_WORDS = 150
"""Default passage length. English takes 1.3 to 1.6 word pieces per word, so 150 words and a title fit the 256
pieces that small encoders were trained on (most accept 512), even if the text is full of code and names."""

# A passage ends before a section once it is a quarter full, and before a paragraph once it is three quarters
# full.
FULL_ENOUGH: Mapping[Begins, float] = MappingProxyType({"section": 0.25, "paragraph": 0.75, "sentence": 1.0})


def cut_passages(
    document: Document, *, max_words: int = PASSAGE_WORDS, overlap: int = 0
) -> Iterator[Document]:
    """Cut a document into passages of at most `max_words` words, in order.

    A document that is short enough, or empty, is returned unchanged with its own id. Otherwise passage `n`
    (from 1) has the id `<document id>#<n>`, the document's title and metadata, `parent` (the document's id)
    and `start`, with `document.text[start : start + len(passage.text)] == passage.text`. Without overlap, the
    passages together contain every character except white space exactly once.

    Sections: if `document.metadata["headings"]` is a list of `[position, heading]`, passages begin at these
    positions where possible. Each has the heading above it as `metadata["section"]` and in its title.

    Args:
        document: the whole document.
        max_words: maximum number of words in a passage, as `count_words` counts them. A longer sentence is
            cut between words, and a longer word (or text without spaces) between characters.
        overlap: maximum number of words from the end of a passage that the next passage repeats, in whole
            sentences.

    Raises:
        ConfigError: `max_words` is below 1, or `overlap` is not from 0 to below `max_words`.

    Example:
        >>> whole = Document("d", "One sentence here. Another one there. A third.")
        >>> [(passage.id, passage.start, passage.text) for passage in cut_passages(whole, max_words=6)]
        [('d#1', 0, 'One sentence here. Another one there.'), ('d#2', 38, 'A third.')]
    """
    if max_words < 1 or not 0 <= overlap < max_words:
        raise ConfigError(
            f"passages need max_words of at least 1 and an overlap from 0 to below max_words, found "
            f"max_words={max_words} and overlap={overlap}"
        )
    headings = _headings(document.metadata.get("headings"))
    metadata = dict(document.metadata)
    if headings:
        del metadata["headings"]
    if count_words(document.text) <= max_words:
        yield replace(document, metadata=metadata) if headings else document
        return
    places = [position for position, _ in headings]
    for number, (start, end) in enumerate(_spans(document.text, tuple(places), max_words, overlap), 1):
        above = bisect_right(places, start) - 1
        section = headings[above][1] if above >= 0 else ""
        yield Document(
            id=f"{document.id}#{number}",
            text=document.text[start:end],
            title=_title(document.title, section),
            parent=document.id,
            start=document.start + start,
            metadata={**metadata, "section": section} if section else metadata,
        )


def located_passages(found: Located, max_words: int | None) -> Iterator[Located]:
    """The passages of a document, or the document itself if there is no maximum, each with its place."""
    passages = [found.document] if max_words is None else cut_passages(found.document, max_words=max_words)
    return (Located(passage, found.path, found.line) for passage in passages)


def _headings(found: object) -> list[tuple[int, str]]:
    """Positions and headings from metadata; anything else under that name is ignored."""
    if not isinstance(found, list):
        return []
    marks = [mark for mark in found if isinstance(mark, Sequence) and len(mark) == 2]
    return sorted((at, text) for at, text in marks if isinstance(at, int) and isinstance(text, str))


def _title(title: str, section: str) -> str:
    return f"{title}: {section}" if title and section and section != title else title or section


def _spans(text: str, headings: tuple[int, ...], most: int, overlap: int) -> Iterator[tuple[int, int]]:
    held: list[Sentence] = []
    words = 0
    for whole in sentences(text, headings):
        for part in _parts(text, whole, most):
            if held and (words + part.words > most or words >= FULL_ENOUGH[part.begins] * most):
                yield held[0].start, held[-1].end
                held = [] if part.begins == "section" else _tail(held, min(overlap, most - part.words))
                words = sum(sentence.words for sentence in held)
            held.append(part)
            words += part.words
    if held:
        yield held[0].start, held[-1].end


def _tail(held: list[Sentence], words: int) -> list[Sentence]:
    """The last sentences with at most `words` words together, but never all of them."""
    kept = len(held)
    while kept > 1 and held[kept - 1].words <= words:
        kept -= 1
        words -= held[kept].words
    return held[kept:]


def _parts(text: str, sentence: Sentence, most: int) -> Iterator[Sentence]:
    if sentence.words <= most:
        yield sentence
        return
    starts = [*word_starts(text, sentence.start, sentence.end), sentence.end]
    first, begins = 0, sentence.begins
    while first < len(starts) - 1:
        last = _cut(text, starts, first, min(first + most, len(starts) - 1))
        end = starts[last]
        while text[end - 1].isspace():
            end -= 1
        yield Sentence(starts[first], end, last - first, begins)
        first, begins = last, "sentence"


def _cut(text: str, starts: list[int], first: int, last: int) -> int:
    """The last word start up to `last` that splits neither a word nor a letter from its combining marks."""
    if last == len(starts) - 1:
        return last
    whole = [at for at in range(first + 1, last + 1) if not category(text[starts[at]]).startswith("M")]
    for at in reversed(whole):
        if text[starts[at] - 1].isspace() or UNSPACED_LETTER.match(text, starts[at]):
            return at
    return whole[-1] if whole else last
