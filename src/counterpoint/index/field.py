"""Conditions on metadata, written in Python: `field("year") >= 2020`.

They are converted to the text that `counterpoint.index.where` parses. Names and values are quoted, so user
input cannot change the condition.

    >>> print((field("year") >= 2020) & field("lang").is_in(["en", "de"]) & ~field("draft").is_true())
    (("year" >= 2020 AND "lang" IN ('en', 'de')) AND (NOT "draft" IS TRUE))
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import final

from counterpoint.errors import ConfigError

__all__ = ["Expression", "Field", "field"]

Value = str | int | float | bool


@final
@dataclass(frozen=True)
class Expression:
    """A condition. Combine conditions with `&` (and), `|` (or), `~` (not), each comparison in parentheses."""

    text: str

    def __and__(self, other: Expression) -> Expression:
        return Expression(f"({self.text} AND {other.text})")

    def __or__(self, other: Expression) -> Expression:
        return Expression(f"({self.text} OR {other.text})")

    def __invert__(self) -> Expression:
        return Expression(f"(NOT {self.text})")

    def __bool__(self) -> bool:
        raise ConfigError("a condition is neither true nor false by itself; join conditions by &, | and ~")

    def __str__(self) -> str:
        return self.text


@final
class Field:
    """A metadata field; comparing it makes a condition."""

    __hash__ = None  # type: ignore[assignment]  # == makes a condition

    def __init__(self, name: str):
        self.name = name

    def __eq__(self, value: Value) -> Expression:  # type: ignore[override]
        return self._with("=", value)

    def __ne__(self, value: Value) -> Expression:  # type: ignore[override]
        return self._with("<>", value)

    def __lt__(self, value: Value) -> Expression:
        return self._with("<", value)

    def __le__(self, value: Value) -> Expression:
        return self._with("<=", value)

    def __gt__(self, value: Value) -> Expression:
        return self._with(">", value)

    def __ge__(self, value: Value) -> Expression:
        return self._with(">=", value)

    def is_in(self, values: Iterable[Value]) -> Expression:
        """Whether the field has one of some values.

        Raises:
            ConfigError: `values` is empty.
        """
        listed = ", ".join(map(_literal, values))
        if not listed:
            raise ConfigError(f"field({self.name!r}).is_in: no values; nothing would be found")
        return Expression(f"{self._quoted} IN ({listed})")

    def contains(self, value: Value) -> Expression:
        """Whether the field is a list that has a value."""
        return Expression(f"({_literal(value)} IN {self._quoted})")

    def between(self, low: Value, high: Value) -> Expression:
        """Whether the field is from `low` to `high`, both included."""
        return Expression(f"({self._quoted} BETWEEN {_literal(low)} AND {_literal(high)})")

    def like(self, pattern: str) -> Expression:
        """Whether the field matches a pattern; % matches any text and _ any single character."""
        return self._with("LIKE", pattern)

    def is_true(self) -> Expression:
        """Whether the field is true."""
        return Expression(f"{self._quoted} IS TRUE")

    def is_null(self) -> Expression:
        """Whether a document lacks the field."""
        return Expression(f"{self._quoted} IS NULL")

    @property
    def _quoted(self) -> str:
        return '"' + self.name.replace('"', '""') + '"'

    def _with(self, how: str, value: Value) -> Expression:
        return Expression(f"{self._quoted} {how} {_literal(value)}")


def field(name: str) -> Field:
    """A metadata field, to compare with values."""
    return Field(name)


def _literal(value: Value) -> str:
    """A value in the grammar of conditions."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return repr(value)
    raise ConfigError(f"a field is compared with text, a number, true or false, found {value!r}")
