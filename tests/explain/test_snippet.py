"""Snippets: the stretches with the matches, every matched word marked, no repeated title."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.explain.marks import Mark
from counterpoint.explain.snippet import snippet
from counterpoint.types import Document, Span


def mark(document, word, score=1.0):
    start = document.full_text.index(word)
    return Mark(Span(word, start, start + len(word)), score, "words", word)


def text_of(shown):
    return "".join(piece.text for piece in shown)


def matched(shown):
    return [piece.text for piece in shown if piece.matched]


def test_a_short_text_is_shown_whole_on_one_line():
    document = Document("d", "  one\n\ntwo\tthree ")
    assert text_of(snippet(document, [], 80)) == "one two three"


def test_every_occurrence_of_a_matched_word_is_marked_and_no_part_of_another():
    document = Document("d", "An otter is no otters' otter. OTTER!")
    shown = snippet(document, [mark(document, "otter")], 80)
    assert matched(shown) == ["otter", "otter", "OTTER"] and text_of(shown) == document.text


def test_a_piece_of_a_name_is_marked_inside_it_and_a_piece_of_a_word_is_not():
    document = Document("d", "date_string, parseDate(dates): updated")
    assert matched(snippet(document, [mark(document, "date")], 80)) == ["date", "Date"]


def test_matches_that_added_little_are_not_marked():
    document = Document("d", "the otter of the sea")
    shown = snippet(document, [mark(document, "otter"), mark(document, "of", 0.05)], 80)
    assert matched(shown) == ["otter"]
    assert matched(snippet(document, [mark(document, "of", 0.0)], 80)) == []


def test_two_far_matches_give_two_stretches():
    document = Document(
        "d", "filler words " * 40 + "an otter swims " + "more filler " * 40 + "a whale sings."
    )
    marks = [mark(document, "otter"), mark(document, "whale")]
    shown = text_of(snippet(document, marks, 200))
    assert shown.startswith("… ") and "an otter swims" in shown and shown.endswith("a whale sings.")
    assert shown.count(" … ") == 1 and len(shown) < 230
    near = text_of(snippet(document, marks[:1], 200))
    assert near.startswith("… ") and near.endswith(" …") and "whale" not in near


def test_words_are_not_cut():
    document = Document("d", "abcdefgh " * 100)
    shown = text_of(snippet(document, [], 100))
    assert re.fullmatch(r"(abcdefgh )+…", shown) and 80 < len(shown) <= 102


@pytest.mark.parametrize("line", ["Sea otters", "# Sea Otters #", "  == sea otters == "])
def test_a_first_line_that_repeats_the_title_is_left_out(line):
    document = Document("d", f"{line}\n\nThey swim.", "Sea otters")
    assert text_of(snippet(document, [], 80)) == "They swim."


def test_a_text_that_only_begins_like_its_title_stays():
    document = Document("d", "Sea otters swim.\nAlways.", "Sea otters")
    assert text_of(snippet(document, [], 80)) == "Sea otters swim. Always."


WORD = st.text(alphabet="abc .\n", min_size=1, max_size=6)


@settings(deadline=None)
@given(st.lists(WORD, max_size=60), st.lists(st.tuples(st.integers(0, 59), st.floats(0, 1)), max_size=5))
def test_what_is_shown_is_the_documents_and_not_much_longer_than_asked(words, picks):
    document = Document("d", " ".join(words), "abc")
    full = document.full_text
    marks = [
        Mark(Span(full[at : at + 3], at, at + 3), score, "words", "q")
        for at, score in picks
        if at + 3 <= len(full)
    ]
    shown = snippet(document, marks, 40)
    whole = " ".join(document.text.split())
    for stretch in re.split(r" ?… ?", text_of(shown)):
        assert " ".join(stretch.split()) in whole
    assert len(text_of(shown)) <= 40 + 40 + 6
