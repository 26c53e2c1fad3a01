"""Relevance by answer strings: a passage is relevant to a question if it contains an answer (DPR)."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import groupby

from counterpoint.errors import DataError
from counterpoint.search.run import Run
from counterpoint.types import Document

__all__ = ["answer_tokens", "has_answer", "judged_by_answers"]

Grades = dict[str, dict[str, int]]


def answer_tokens(text: str) -> list[str]:
    """Tokenise a text as DPR's evaluation does: NFD, tokens, lower case.

    A token is a run of letters, digits and marks, or any one other character that is neither a separator nor
    a control character.

    >>> answer_tokens("Beyoncé's $3.50") == ["beyonce\u0301", "'", "s", "$", "3", ".", "50"]
    True
    """
    found: list[str] = []
    for kind, run in groupby(unicodedata.normalize("NFD", text), _kind):
        if kind == "word":
            found.append("".join(run))
        elif kind == "sign":
            found += run
    return [token.lower() for token in found]


def has_answer(text: str, answers: Iterable[str]) -> bool:
    """Whether the text contains the tokens of any answer, one after another.

    An answer without tokens (white space, for example) is in no text; in DPR's own code it would be in every
    text.
    """
    return _holds(_joined(text), [_joined(answer) for answer in answers])


def judged_by_answers(
    runs: Iterable[Run], documents: Iterable[Document], answers: Mapping[str, Sequence[str]], k: int
) -> Grades:
    """Judge the first `k` documents of every run by the answers in their texts; titles do not count.

    Args:
        runs: whose documents are judged.
        documents: the collection, read once.
        answers: by query; queries without answers are not judged.
        k: number of documents judged per query.

    Returns:
        For every query with answers, grade 1 for each of these documents with an answer, 0 for the others.

    Raises:
        DataError: a run ranks a document that is not in the collection.
    """
    wanted: dict[str, set[str]] = {}
    for run in runs:
        for query in (query for query in run if query in answers):
            for document, _ in run[query][:k]:
                wanted.setdefault(document, set()).add(query)
    joined = {query: [_joined(answer) for answer in texts] for query, texts in answers.items()}
    grades: Grades = {query: {} for query in answers}
    for document in documents:
        if queries := wanted.pop(document.id, None):
            text = _joined(document.text)
            for query in queries:
                grades[query][document.id] = int(_holds(text, joined[query]))
    if wanted:
        raise DataError(
            f"{len(wanted)} documents that the runs rank are not in the collection, such as {min(wanted)!r}; "
            "judging by answers needs their texts"
        )
    return grades


@cache
def _kind(character: str) -> str:
    """`word`, `sign`, or an empty string between tokens, by the character's general category."""
    category = unicodedata.category(character)[0]
    return "word" if category in "LMN" else "" if category in "ZC" else "sign"


def _joined(text: str) -> str:
    """The tokens with a space before and after each; no token contains one."""
    tokens = answer_tokens(text)
    return f" {' '.join(tokens)} " if tokens else ""


def _holds(text: str, answers: Sequence[str]) -> bool:
    return any(answer and answer in text for answer in answers)
