"""Names of several words: where they are cut, and where they are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.identifiers import DOTTED, pieces_of


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
    found = DOTTED.findall("use datetime.date.today, not 3.14. Next sentence; e.g. os.path: end.")
    assert found == ["datetime.date.today", "e.g", "os.path"]


def test_data_are_no_names_and_take_no_time():
    assert cut("aB_1" * 25) and not cut("aB_1" * 25 + "x")
    assert DOTTED.findall("a" * 1_000_000) == []


@given(st.from_regex(r"\w{0,12}", fullmatch=True))
def test_pieces_are_the_word_without_its_underscores_in_order(word):
    pieces = pieces_of(word)
    if pieces:
        assert "".join(word[start:end] for start, end in pieces) == word.replace("_", "")
        assert all(start < end for start, end in pieces)
        assert (0, len(word)) not in pieces
