"""Conditions written in Python mean what they say, whatever names and values hold."""

import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import counterpoint as cp
from counterpoint.errors import ConfigError
from counterpoint.index.field import Expression, field
from counterpoint.index.where import where_of

NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=9)
TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=9)
VALUES = TEXTS | st.integers(-(2**62), 2**62) | st.floats(-1e18, 1e18)


def holds(expression, name, value):
    """Whether the condition holds for a document whose field has a value."""
    kind = {str: "str", int: "int", float: "float", bool: "bool"}[type(value)]
    condition = where_of(str(expression), {name: kind}, lambda _: "value")
    with sqlite3.connect(":memory:") as database:
        found = database.execute(
            f"SELECT {condition.sql} FROM (SELECT ? AS value)", (*condition.values, value)
        )
        return bool(found.fetchone()[0])


@settings(deadline=None, max_examples=200)
@given(name=NAMES, value=VALUES, other=VALUES)
def test_a_condition_holds_where_python_says_so(name, value, other):
    if isinstance(value, str) != isinstance(other, str):
        other = value
    same = field(name)
    assert holds(same == other, name, value) == (value == other)
    assert holds(same != other, name, value) == (value != other)
    assert holds(same.is_in([other, value]), name, value)
    assert holds(~same.is_in([other]), name, value) == (value != other)
    assert not holds(same.is_null(), name, value)
    if not isinstance(value, str):  # of text, SQLite compares bytes
        assert holds(same < other, name, value) == (value < other)
        assert holds(same >= other, name, value) == (value >= other)
        assert holds(same.between(min(value, other), max(value, other)), name, value)
        both = (same <= other) & (same >= other) | (same > other)
        assert holds(both, name, value) == (value >= other)


def test_truth_and_likeness():
    assert holds(field("draft").is_true(), "draft", True)
    assert holds(field("draft") == False, "draft", False)  # noqa: E712  # this makes a condition
    assert holds(field("lang").like("e%"), "lang", "en") and not holds(field("lang").like("e_"), "lang", "e")


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), [1], b"x"])
def test_what_is_no_value_is_refused(value):
    with pytest.raises(ConfigError, match="compared with text, a number, true or false"):
        field("x") == value  # noqa: B015


def test_conditions_are_joined_by_operators():
    with pytest.raises(ConfigError, match="join conditions by &"):
        (field("x") == 1) and (field("x") == 2)
    with pytest.raises(ConfigError, match="no values"):
        field("x").is_in([])
    assert isinstance(~(field("x") == 1), Expression)


def test_search_and_delete_take_them(tmp_path):
    rows = [{"id": str(y), "text": "whales", "year": y, "by": "O'Neill"} for y in (2001, 2011, 2021)]
    notes = cp.index(rows, tmp_path / "i", model=None)
    recent = (cp.field("year") > 2005) & (cp.field("by") == "O'Neill")
    found = notes.search("whales", workflow="lexical", where=recent)
    assert {hit.id for hit in found} == {"2011", "2021"}
    assert notes.delete(where=recent) == 2 and len(notes) == 1
