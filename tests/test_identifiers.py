"""Names of several words: where they are cut, and where they are not."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.identifiers import dotted_in, names_in, pieces_of, spaced


def cut(word):
    return [word[start:end] for start, end in pieces_of(word)]


@pytest.mark.parametrize(
    ("word", "pieces"),
    [
        ("is_empty", "is empty"),
        ("checkIfEmpty", "check If Empty"),
        ("HTTP2Server", "HTTP 2 Server"),
        ("HTTPServer", "HTTP Server"),
        ("parseURLs", "parse URLs"),
        ("__init__", "init"),
        ("MAX_LEN_2", "MAX LEN 2"),
        ("sha256", "sha 256"),
        ("float64s", "float 64 s"),
        ("\u00e4u\u00dfereGr\u00f6\u00dfe", "\u00e4u\u00dfere Gr\u00f6\u00dfe"),
    ],
)
def test_names_are_cut(word, pieces):
    assert cut(word) == pieces.split()


@pytest.mark.parametrize(
    "word",
    ["server", "Server", "HTTP", "PCs", "DNAs", "p53", "B12", "mp3", "1980s", "2nd", "H2O", "42", "_", "__"]
    + ["na\u00efve", "\u6771\u4eac", "\u00c9cole", "x", ""],
)
def test_words_of_prose_are_not(word):
    assert cut(word) == []


def test_dots_tie_names_together_and_numbers_not():
    found = dotted_in(
        "use datetime.date.today, not 3.14. Next sentence; e.g. os.path: end, i.e. in the U.S.A."
    )
    assert [span.text for span in found] == ["datetime.date.today", "os.path"]


def test_data_are_no_names_and_take_no_time():
    assert cut("aB_1" * 25) and not cut("aB_1" * 25 + "x")
    assert dotted_in("a" * 1_000_000) == []


@given(st.from_regex(r"\w{0,12}", fullmatch=True))
def test_pieces_are_the_word_without_its_underscores_in_order(word):
    pieces = pieces_of(word)
    if pieces:
        assert "".join(word[start:end] for start, end in pieces) == word.replace("_", "")
        assert all(start < end for start, end in pieces)
        assert (0, len(word)) not in pieces


PIECES = ["is", "Empty", "_", ".", "2", "HTTP", " ", "check", "\u00c9", "\n"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)


@given(TEXTS)
def test_names_stand_where_they_say_and_none_overlaps_another_of_its_list(text):
    for spans in names_in(text):
        assert all(text[span.start : span.end] == span.text for span in spans)
        assert all(one.end <= other.start for one, other in pairwise(spans))


@given(TEXTS)
def test_spaces_are_put_in_where_it_says(text):
    made, places = spaced(text, lambda word: False)
    rebuilt = text
    for at in reversed(places.tolist()):
        rebuilt = f"{rebuilt[:at]} {rebuilt[at:]}"
    assert made == rebuilt
    assert not [at for at in places.tolist() if "_" in text[at - 1 : at + 1] or " " in text[at - 1 : at + 1]]
    assert spaced(text, lambda word: True)[0] == text


def test_a_name_that_is_known_stays_whole_and_the_next_one_does_not():
    assert spaced("YouTube_playVideo2x", "YouTube".__eq__)[0] == "YouTube_play Video2x"
