"""Which words are marked, and where they are in the title and in the text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.explain.marks import marks_of, pieces_of
from counterpoint.explain.rows import Row
from counterpoint.types import Document, Span

TEXT = st.text(alphabet="ab \n\t", max_size=12)


@settings(deadline=None)
@given(TEXT, TEXT)
def test_every_place_in_the_full_text_is_one_in_a_field(title, text):
    document = Document("d", text, title)
    full = document.full_text
    for start in range(len(full)):
        for end in range(start + 1, len(full) + 1):
            place = document.place(Span(full[start:end], start, end))
            if place is not None:
                field, first, last = place
                assert getattr(document, field)[first:last] == full[start:end]
            else:  # a piece of both: the space between title and text is in it
                assert title and " " in full[start:end]


def row(label, **spans):
    """A query word that matched `part=(text, start, score)`."""
    matches = {part: Span(text, start, start + len(text)) for part, (text, start, _) in spans.items()}
    return Row(label, None, matches, {part: score for part, (_, _, score) in spans.items()})


def test_a_word_is_marked_by_the_most_that_it_added_and_no_letter_twice():
    rows = [
        row("cat", words=("cats", 2, 0.5), lexical=("cats", 2, 0.7)),
        row("at", words=("at", 3, 1.4)),
        row("dog", words=("dogs", 11, 0.1)),
    ]
    marks = marks_of(rows)
    assert [(mark.span.text, mark.part, mark.score) for mark in marks] == [
        ("cats", "lexical", 0.7),
        ("dogs", "words", 0.1),
    ]


def test_the_piece_of_a_name_is_marked_unless_the_whole_added_as_much():
    def marked(whole):
        rows = [row("dates", words=("date", 0, 1.0)), row("str", words=("date_string", 0, whole))]
        return [mark.span.text for mark in marks_of(rows)]

    assert marked(0.3) == ["date"] and marked(0.6) == ["date_string"]


def test_title_and_text_are_cut_at_their_own_marks():
    document = Document("d", "a dog and a cat", "Cats  ")
    marks = marks_of([row("cat", words=("Cats", 0, 1.0)), row("dog", words=("dog", 9, 0.5))])
    title = pieces_of(document, marks, "title")
    text = pieces_of(document, marks, "text")
    assert [(piece.text, piece.mark is not None) for piece in title] == [("Cats", True), ("  ", False)]
    assert [(piece.text, piece.mark is not None) for piece in text] == [
        ("a ", False),
        ("dog", True),
        (" and a cat", False),
    ]


def test_a_mark_over_both_fields_is_in_neither():
    document = Document("d", "b", "a")
    mark = marks_of([row("q", words=("a b", 0, 1.0))])
    assert [piece.mark for piece in pieces_of(document, mark, "title")] == [None]
    assert [piece.text for piece in pieces_of(document, mark, "text")] == ["b"]


@pytest.mark.parametrize("field", ["title", "text"])
def test_an_empty_field_has_no_pieces(field):
    assert pieces_of(Document("d", "", ""), [], field) == []
