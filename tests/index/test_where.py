"""Conditions on metadata, against SQLite and against an oracle that knows what is neither true nor false."""

import json
import operator
import re
import sqlite3

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import ConfigError
from counterpoint.index.where import DEEPEST, LONGEST, VALUES, where_of

FIELDS = {"year": "int", "score": "float", "lang": "str", "draft": "bool", "my field": "str", "tags": "list"}
ROWS = [
    {"year": 2019, "score": 0.5, "lang": "en", "draft": True, "my field": "a b"},
    {"year": 2020, "score": -1.5, "lang": "de", "draft": False, "my field": "it's"},
    {"year": 2021, "score": 3.0, "lang": "EN", "draft": None, "my field": None},
    {"year": None, "score": None, "lang": None, "draft": False, "my field": "%"},
    {"year": -7, "score": 1e300, "lang": "", "draft": True, "my field": "A\u0000B"},
]
TAGGED = [["a", 1, True], [], ["it's", 1.5, "1", ["a"]], None, [False, "A", {"b": "a"}]]
ROWS = [{**row, "tags": tags} for row, tags in zip(ROWS, TAGGED, strict=True)]


def found(text, rows=tuple(ROWS)):
    """The numbers of the rows that SQLite finds."""
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE d ({', '.join(map(column, FIELDS))})")
    holes = ", ".join("?" for _ in FIELDS)
    for row in rows:
        values = [row[name] for name in FIELDS]
        listed = [json.dumps(value) if isinstance(value, list) else value for value in values]
        connection.execute(f"INSERT INTO d VALUES ({holes})", listed)
    where = where_of(text, FIELDS, column)
    return [row[0] - 1 for row in connection.execute(f"SELECT rowid FROM d WHERE {where.sql}", where.values)]


def column(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("year >= 2020 and lang in ('en','de') and not draft", [1]),
        ("year >= 2020", [1, 2]),
        ("not year >= 2020", [0, 4]),
        ("year is null", [3]),
        ("year is not null and draft", [0, 4]),
        ("draft = true or draft = false", [0, 1, 3, 4]),
        ("draft is true", [0, 4]),
        ("draft is not true", [1, 2, 3]),
        ("lang = ''", [4]),
        ("lang != 'en'", [1, 2, 4]),
        ("lang like 'e%'", [0, 2]),
        ("\"my field\" = 'it''s'", [1]),
        ("\"my field\" between 'a' and 'b'", [0]),
        ("score > -2 and score < 1", [0, 1]),
        ("year not in (2019, -7)", [1, 2]),
        ("year == 2019 OR YEAR = 2020".replace("YEAR", "year"), [0, 1]),
        ("not (not draft)", [0, 4]),
        ("year = 2019.5", []),
        ("score = 3", [2]),
        ("'a' in tags", [0]),
        ("'a' not in tags", [1, 2, 4]),
        ("not 'a' in tags or tags is null", [1, 2, 3, 4]),
        ("1 in tags", [0]),
        ("'1' in tags", [2]),
        ("1.5 in tags and 'it''s' in tags", [2]),
        ("true in tags or false in tags", [0, 4]),
    ],
)
def test_conditions_mean_what_they_say(text, wanted):
    assert found(text) == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is empty"),
        ("kind = '\ud800'", "half a surrogate pair"),
        ("year = 1; drop table documents", "cannot be parsed at 'drop';"),
        ("drop table documents", "cannot be parsed"),
        ("year in (select 1)", "is not a condition"),
        ("year in ()", "is not a condition"),
        ("lang in ('a', year)", "not a value"),
        ("year = lang", "not a value"),
        ("year = ?", "not a value"),
        ("year = 1 collate nocase", "not a value"),
        ("upper(lang) = 'EN'", "not a field"),
        ("documents.year = 1", "not a field"),
        ("1 = 1", "not a field"),
        ("cast(year as text) = 'a'", "not a field"),
        ("year", "is not true or false"),
        ("year = 'x'", "'year' is a number, \"'x'\" is not; compare it with a number"),
        ("year >= '2020'", "'year' is a number, \"'2020'\" is not; leave out the quotes"),
        ("draft = 'true'", "leave out the quotes"),
        ("lang = 1", "'lang' is text, '1' is not; put the value in quotes, or build the index with "),
        ("lang >= 2.5", "with --metadata lang:float"),
        ("draft = 1", "'draft' is true or false"),
        ("year like '2%'", "is not text"),
        ("tags = 'a'", "'tags' is a list; test whether it has a value: \"'a'\" in …"),
        ("tags in ('a')", "'tags' is a list"),
        ("tags like 'a%'", "is not text"),
        ("tags", "is not true or false"),
        ("'en' in lang", "'lang' is text and not a list; compare it"),
        ("'a' in tag", "did you mean 'tags'"),
        ("year in tags", "not a value"),
        ("'a' in (select 1)", "is not a condition"),
        ("'a' in t.tags", "is not a field"),
        ("year = 99999999999999999999", "too large"),
        ("score < 1e400", "too large"),
        ("yaer = 1", "did you mean 'year'"),
        ("zzz = 1", "there are year, score, lang"),
        ("year >=", "cannot be parsed at '>=';"),
        ("lang = 'en", "cannot be parsed;"),
        ("((year = 1", "cannot be parsed"),
        ("lang like 'a' escape 'b'", "is not a condition"),
        ("exists(select 1)", "is not a condition"),
        ("not " * 60 + "draft", "deep"),
        (" or ".join(["draft"] * 501), "more than 500 comparisons"),
        ("year in (" + ", ".join("1" * (VALUES + 1)) + ")", "more than 1,000 values"),
        ("year = 1 " * LONGEST, "the maximum is 10,000"),
    ],
)
def test_what_is_no_condition_is_refused(text, why):
    with pytest.raises(ConfigError, match=re.escape(why)):
        where_of(text, FIELDS, column)


def test_only_errors_of_syntax_come_with_the_grammar():
    for text, is_syntax in (("year >=", True), ("year in ()", True), ("year = 'x'", False), ("year", False)):
        with pytest.raises(ConfigError) as error:
            where_of(text, FIELDS, column)
        assert ("is null, is not null, and" in str(error.value)) == is_syntax


@settings(deadline=None)
@given(st.text(max_size=80) | st.text("()='\"; -*/notandrye120,", max_size=80))
def test_hostile_text_is_an_error_of_ours_or_a_condition(text):
    try:
        where = where_of(text, FIELDS, column)
    except ConfigError:
        return
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE d ({', '.join(map(column, FIELDS))})")
    connection.execute(f"SELECT 1 FROM d WHERE {where.sql}", where.values)


COMPARE = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
VALUES_OF = {
    "year": st.integers(-5, 5),
    "score": st.sampled_from([-1.5, 0.0, 2.0]),
    "lang": st.sampled_from(["", "a", "it's"]),
}
TAGS = st.sampled_from(["", "a", "1", "true", 1, 0, 1.5, True, False])


def _has(values, one):
    return any(value == one and isinstance(value, bool) == isinstance(one, bool) for value in values)


@st.composite
def comparisons(draw):
    """The text of a test, and what it says of a row: true, false or None."""
    name = draw(st.sampled_from([*VALUES_OF, "draft", "tags"]))
    if name == "draft":
        return "draft", lambda row: row["draft"]
    if name == "tags":
        tag = draw(TAGS)
        shown = f"'{tag}'" if isinstance(tag, str) else json.dumps(tag)
        return f"{shown} in tags", lambda row: None if row[name] is None else _has(row[name], tag)
    sign, value = draw(st.sampled_from([*COMPARE, "in", "is null"])), draw(VALUES_OF[name])
    shown = "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)
    if sign == "is null":
        return f"{name} is null", lambda row: row[name] is None
    if sign == "in":
        return f"{name} in ({shown})", lambda row: None if row[name] is None else row[name] == value
    compare = COMPARE[sign]
    return f"{name} {sign} {shown}", lambda row: None if row[name] is None else compare(row[name], value)


def both(one, other):
    return lambda row: _and(one(row), other(row))


def _and(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def _not(a):
    return None if a is None else not a


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(
            lambda two: (f"({two[0][0]} and {two[1][0]})", both(two[0][1], two[1][1]))
        ),
        st.tuples(inner, inner).map(
            lambda two: (
                f"({two[0][0]} or {two[1][0]})",
                lambda row: _not(_and(_not(two[0][1](row)), _not(two[1][1](row)))),
            )
        ),
        inner.map(lambda one: (f"not ({one[0]})", lambda row: _not(one[1](row)))),
    ),
    max_leaves=8,
)
OF_DOCUMENTS = {**VALUES_OF, "draft": st.booleans(), "tags": st.lists(TAGS)}
DOCUMENTS = st.fixed_dictionaries({name: st.none() | values for name, values in OF_DOCUMENTS.items()}).map(
    lambda row: {**row, "my field": None}
)


@settings(deadline=None)
@given(CONDITIONS, st.lists(DOCUMENTS, max_size=12))
def test_documents_are_those_of_an_oracle(condition, rows):
    text, says = condition
    assert found(text, rows) == [i for i, row in enumerate(rows) if says(row) is True]


def test_a_long_chain_is_not_deep():
    assert found(" or ".join(["year = 2019"] * 400)) == [0]
    assert DEEPEST < 400


@pytest.mark.parametrize("inner", ["draft", "not draft", "year in (1, 2)", " or ".join(["draft"] * 480)])
@pytest.mark.parametrize("shape", ["not ({})", "(draft and ({}))", "({} or draft)", "not (draft and ({}))"])
def test_sqlite_takes_what_is_just_deep_enough(inner, shape):
    text = inner
    for _ in range(60):
        try:
            where_of(shape.format(text), FIELDS, column)
        except ConfigError:
            break
        text = shape.format(text)
    else:
        raise AssertionError("nothing is too deep")
    assert len(text) > len(inner) and isinstance(found(text), list)
