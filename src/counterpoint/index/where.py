"""Conditions on metadata: `year >= 2020 and lang in ('en', 'de') and not draft`.

sqlglot parses them as SQL. They are checked against a small grammar and rewritten as SQL in which every value
is a parameter:

    condition   condition and|or condition · not condition · (condition) · test
    test        field =|!=|<|<=|>|>= value · field [not] in (value, ...) · field [not] between value and value
                field [not] like text · field is [not] null · field (true or false) ·
                value [not] in field (a list)
    value       a number, 'text', true or false

As in SQL, a test of a field that a document does not have is neither true nor false, and neither is its
negation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, final

from counterpoint.errors import ConfigError
from counterpoint.suggestion import suggestion

__all__ = ["FieldType", "Tested", "Where", "names_in", "where_of"]

FieldType = Literal["int", "float", "str", "bool"]
Tested = Literal["int", "float", "str", "bool", "list"]
"""Types of fields that conditions test; a list may have values of several types."""
LONGEST = 10_000  # characters of a condition
VALUES = 1_000  # in one condition; SQLite takes 32,766
DEEPEST = 20  # levels of `and`, `or` and `not`; SQLite's parser allows about 30
TESTS = 500  # in one condition; SQLite refuses a chain of 1,000
GRAMMAR = (
    "a condition compares fields with values: year >= 2020 and lang in ('en', 'de') and not draft; allowed "
    "are =, !=, <, <=, >, >=, in, between, like, is null, is not null, and, or, not, and 'reef' in tags for "
    "lists; put a name that is a word of SQL, or has other signs than letters, digits and _, in double "
    'quotes: "when" = 1'
)
NAMES = {"int": "a number", "float": "a number", "str": "text", "bool": "true or false"}
IN_LISTS: Mapping[str, str] = {
    "int": "'integer', 'real'",
    "float": "'integer', 'real'",
    "str": "'text'",
    "bool": "'true', 'false'",
}
"""SQLite's names of the types of values in a list that may equal a value of our type."""
COMPARED: Mapping[str, str] = {"EQ": "=", "NEQ": "<>", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}


@final
@dataclass(frozen=True)
class Where:
    """A parsed condition.

    Attributes:
        sql: an SQL expression; fields appear in the form that `column` of `where_of` gave.
        values: of its parameters, in order.
    """

    sql: str
    values: tuple[str | int | float, ...]


def where_of(text: str, fields: Mapping[str, Tested], column: Callable[[str], str]) -> Where:
    """Parse a condition on some fields with their types; `column` gives the SQL expression of a field.

    Raises:
        ConfigError: it is not a condition, it is too long, it names an unknown field, or it compares a field
            with a value of another type.
    """
    tree, reader = _parsed(text), _Reader(text, fields, column)
    return Where(reader.condition(tree, 0), tuple(reader.values))


def names_in(text: str) -> set[str]:
    """The fields that a condition names.

    Raises:
        ConfigError: it cannot be parsed.
    """
    from sqlglot import exp

    return {column.name for column in _parsed(text).find_all(exp.Column)}


def _parsed(text: str) -> Any:
    if len(text) > LONGEST:
        raise ConfigError(
            f"the condition has {len(text):,} characters, the maximum is {LONGEST:,}; test a metadata field "
            "that holds its result"
        )
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    if not text.strip():
        raise _outside(text, "it is empty")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise _outside(text, "it has half a surrogate pair, which is no character")
    try:
        return parse_one(text, read="sqlite", into=exp.Condition)
    except (SqlglotError, RecursionError, ValueError) as error:
        faults = getattr(error, "errors", None)  # a text with an open quote has none
        word = faults[0].get("highlight") if faults else None
        place = f" at {word!r}" if word else ""
        raise _outside(text, f"it cannot be parsed{place}") from error


def _fault(text: str, why: str) -> ConfigError:
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return ConfigError(f"the condition {shown!r}: {why}")


def _outside(text: str, why: str) -> ConfigError:
    """The error for what is not in the grammar."""
    return _fault(text, f"{why}; {GRAMMAR}")


@final
class _Reader:
    """Walks the tree of one condition and refuses everything outside the grammar."""

    def __init__(self, text: str, fields: Mapping[str, Tested], column: Callable[[str], str]):
        self.text, self.fields, self.column = text, fields, column
        self.values: list[str | int | float] = []
        self.tests = 0

    def condition(self, node: Any, depth: int) -> str:
        from sqlglot import exp

        if depth > DEEPEST:
            raise _fault(self.text, f"it is nested more than {DEEPEST} levels deep")
        if isinstance(node, exp.And | exp.Or):
            joined = " AND " if isinstance(node, exp.And) else " OR "
            return f"({joined.join(self.condition(side, depth + 1) for side in self._sides(node))})"
        if isinstance(node, exp.Not):
            return f"(NOT {self.condition(node.this, depth + 1)})"
        if isinstance(node, exp.Paren):
            return self.condition(node.this, depth + 1)
        return self._test(node)

    def _sides(self, node: Any) -> list[Any]:
        """The operands of a chain of `and` or `or`, whose tree is as deep as the chain is long."""
        found, kind = [], type(node)
        while isinstance(node, kind):
            found.append(node.expression)
            node = node.this
        return [node, *reversed(found)]

    def _test(self, node: Any) -> str:
        from sqlglot import exp

        self.tests += 1
        if self.tests > TESTS:
            raise _fault(self.text, f"it has more than {TESTS} comparisons; use in (…) for many values")
        if isinstance(node, exp.Column):
            field = self._field(node)
            if self.fields[field] != "bool":
                raise _fault(self.text, f"{field!r} is not true or false; compare it with a value")
            return self.column(field)
        if sign := COMPARED.get(type(node).__name__):
            field = self._field(node.this)
            return f"({self.column(field)} {sign} {self._value(node.expression, field)})"
        if isinstance(node, exp.In) and set(_given(node)) == {"this", "expressions"}:
            field = self._field(node.this)
            listed = ", ".join(self._value(value, field) for value in node.expressions)
            return f"({self.column(field)} IN ({listed}))"
        if isinstance(node, exp.In) and set(_given(node)) == {"this", "field"}:
            return self._listed(node)
        if isinstance(node, exp.Between) and set(_given(node)) == {"this", "low", "high"}:
            field = self._field(node.this)
            low, high = (self._value(node.args[key], field) for key in ("low", "high"))
            return f"({self.column(field)} BETWEEN {low} AND {high})"
        if isinstance(node, exp.Like):
            field = self._field(node.this)
            if self.fields[field] != "str":
                raise _fault(self.text, f"{field!r} is not text, and `like` needs text")
            return f"({self.column(field)} LIKE {self._value(node.expression, field)})"
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
            return f"({self.column(self._field(node.this))} IS NULL)"
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            field = self._field(node.this)
            return f"({self.column(field)} IS {self._value(node.expression, field)})"
        raise _outside(self.text, f"{_shown(node)} is not a condition")

    def _listed(self, node: Any) -> str:
        """The SQL of a test whether a list has a value."""
        value, field = self._literal(node.this), self._field(node.args["field"])
        if (kind := self.fields[field]) != "list":
            raise _fault(self.text, f"{field!r} is {NAMES[kind]} and not a list; compare it with a value")
        column, kinds = self.column(field), IN_LISTS[type(value).__name__]
        found = f"SELECT 1 FROM json_each({column}) WHERE type IN ({kinds}) AND value = {self._kept(value)}"
        return f"(CASE WHEN {column} IS NOT NULL THEN EXISTS ({found}) END)"

    def _field(self, node: Any) -> str:
        from sqlglot import exp

        if not isinstance(node, exp.Column) or set(_given(node)) != {"this"}:
            raise _outside(self.text, f"{_shown(node)} is not a field; write the field on the left")
        name = node.name
        if name not in self.fields:
            hint = suggestion(name, self.fields, f"there are {', '.join(self.fields) or 'none'}")
            raise ConfigError(
                f"the condition {self.text!r}: the documents have no metadata field {name!r}; {hint}"
            )
        return name

    def _value(self, node: Any, field: str) -> str:
        """Check a value against its field's type; return its SQL parameter."""
        value, wanted = self._literal(node), self.fields[field]
        if wanted == "list":
            raise _fault(self.text, f"{field!r} is a list; test whether it has a value: {_shown(node)} in …")
        if NAMES[type(value).__name__] != NAMES[wanted]:
            if wanted == "str":
                raise ConfigError(
                    f"the condition {self.text!r}: {field!r} is text, {_shown(node)} is not; put the value "
                    f"in quotes, or build the index with --metadata {field}:{type(value).__name__}"
                )
            bare = str(value).lower() in ("true", "false") if wanted == "bool" else _is_number(str(value))
            remedy = (
                "leave out the quotes"
                if isinstance(value, str) and bare
                else f"compare it with {NAMES[wanted]}"
            )
            raise _fault(self.text, f"{field!r} is {NAMES[wanted]}, {_shown(node)} is not; {remedy}")
        return self._kept(value)

    def _kept(self, value: str | float) -> str:
        """The SQL parameter of a value."""
        if len(self.values) == VALUES:
            raise _fault(self.text, f"it has more than {VALUES:,} values")
        self.values.append(int(value) if isinstance(value, bool) else value)
        return "?"

    def _literal(self, node: Any) -> str | int | float | bool:
        from sqlglot import exp

        if isinstance(node, exp.Boolean):
            return bool(node.this)
        negative = isinstance(node, exp.Neg)
        literal = node.this if negative else node
        if not isinstance(literal, exp.Literal) or (negative and literal.is_string):
            raise _outside(self.text, f"{_shown(node)} is not a value; write the value on the right")
        if literal.is_string:
            return str(literal.this)
        try:
            number = int(literal.this)
        except ValueError:
            number = float(literal.this)
        if not abs(number) < 2**63:
            raise _fault(self.text, f"the number {_shown(node)} is too large")
        return -number if negative else number


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _given(node: Any) -> dict[str, Any]:
    """The arguments of a node that are set."""
    return {key: value for key, value in node.args.items() if value not in (None, False, [])}


def _shown(node: Any) -> str:
    said = node.sql(dialect="sqlite")
    return repr(said if len(said) <= 60 else f"{said[:60]}…")
