"""Matching of answers, against DPR's rule written out as loops with the `regex` package."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import DataError
from counterpoint.measure import has_answer, judged_by_answers
from counterpoint.measure.answers import answer_tokens
from counterpoint.search import Run
from counterpoint.types import Document

TEXT = st.text("aAb é\u0301ß1.,-$\n\u00a0日ⒶİΣ")


def tokens_by_the_rule(text):
    """A run of letters, numbers and marks, or any one character that is no separator and no control."""
    regex = pytest.importorskip("regex")
    pattern = regex.compile(r"([\p{L}\p{N}\p{M}]+)|([^\p{Z}\p{C}])")
    return [found.group().lower() for found in pattern.finditer(unicodedata.normalize("NFD", text))]


def stands_in(text, answer):
    tokens, wanted = tokens_by_the_rule(text), tokens_by_the_rule(answer)
    return bool(wanted) and any(
        tokens[at : at + len(wanted)] == wanted for at in range(len(tokens) - len(wanted) + 1)
    )


@given(text=TEXT, answer=TEXT)
def test_the_rule(text, answer):
    assert answer_tokens(text) == tokens_by_the_rule(text)
    assert has_answer(text, [answer]) == stands_in(text, answer)


@pytest.mark.parametrize(
    ("text", "answer", "found"),
    [
        ("It began in October 1973.", "october 1973", True),
        ("It began in October of 1973.", "October 1973", False),
        ("nineteen seventy", "nine", False),  # tokens, not characters
        ("cost: $12.50", "$12", True),
        ("Caf\u00e9 society", "cafe\u0301", True),  # composed and not
        ("Caf\u00e9 society", "cafe", False),  # a mark is part of its token
        ("anything", " ", False),
        ("", "x", False),
    ],
)
def test_by_hand(text, answer, found):
    assert has_answer(text, [answer]) is found
    assert has_answer(text, ["never", answer]) is found


def test_what_runs_retrieve_is_judged():
    documents = [
        Document("a", "It was in Paris."),
        Document("b", "It was in Rome.", title="Paris"),
        Document("c", "Paris, not retrieved"),
    ]
    one = Run({"q1": {"a": 2.0, "b": 1.0}, "q2": {"a": 1.0}, "none": {"absent": 1.0}})
    two = Run({"q1": {"b": 2.0, "a": 1.0}})
    answers = {"q1": ["paris"], "q2": ["Rome", "Athens"], "q3": ["x"]}
    assert judged_by_answers([one, two], documents, answers, 2) == {
        "q1": {"a": 1, "b": 0}, "q2": {"a": 0}, "q3": {},
    }  # fmt: skip
    assert judged_by_answers([two], documents, answers, 1) == {"q1": {"b": 0}, "q2": {}, "q3": {}}
    with pytest.raises(DataError, match="1 documents that the runs rank are not in the collection.*'b'"):
        judged_by_answers([two], documents[:1], answers, 2)
