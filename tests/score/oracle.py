"""Scores by Python loops, slow and obvious, and sets of vectors to try them on."""

import math

import hypothesis.strategies as st

from counterpoint.testing.scorers import DIM, vectors

__all__ = ["DIM", "dot", "maxsim", "sets", "unit", "vectors"]

INTEGERS = st.integers(-3, 3)  # products and sums of small whole numbers are exact in any order


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(row):
    length = math.sqrt(dot(row, row))
    return [x / length for x in row] if length else list(row)


def maxsim(q, d, *, exact=False, floor0=False, normalise=False):
    """`q` and `d` are one text each: lists of (row, id)."""
    total = 0.0
    for q_row, q_id in q:
        best = None
        for d_row, d_id in d:
            similarity = dot(unit(q_row), unit(d_row)) if normalise else dot(q_row, d_row)
            if exact and q_id != d_id:
                similarity = 0.0
            if best is None or similarity > best:
                best = similarity
        if best is None or (floor0 and best < 0):
            best = 0.0
        total += best
    return total


def sets(max_texts=3, max_rows=4, min_texts=1):
    """Batches: lists of texts, each a list of (row, id)."""
    row = st.tuples(st.lists(INTEGERS, min_size=DIM, max_size=DIM), st.integers(1, 4))
    return st.lists(st.lists(row, max_size=max_rows), min_size=min_texts, max_size=max_texts)
