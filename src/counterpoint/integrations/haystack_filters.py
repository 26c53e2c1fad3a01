"""Filters of Haystack as conditions on metadata."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

from counterpoint.errors import ConfigError
from counterpoint.index.field import Expression, Field

__all__ = ["condition_of"]

TESTS: Mapping[str, Callable[[Field, Any], Any]] = MappingProxyType(
    {
        "==": lambda field, value: field.is_null() if value is None else field == value,
        "!=": lambda field, value: ~field.is_null() if value is None else field != value,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "in": Field.is_in,
        "not in": lambda field, value: ~field.is_in(value),
    }
)
JOINS: Mapping[str, Callable[[Expression, Expression], Expression]] = MappingProxyType(
    {"AND": operator.and_, "OR": operator.or_, "NOT": operator.and_}
)


def condition_of(filters: Mapping[str, Any]) -> Expression:
    """The condition that a filter of Haystack makes.

    Args:
        filters: a comparison (`field`, `operator`, `value`), or `conditions` joined by an `operator`. Fields
            may begin with "meta.".

    Raises:
        ConfigError: it is not such a filter.

    Example:
        >>> print(condition_of({"field": "meta.year", "operator": ">=", "value": 2020}))
        "year" >= 2020
    """
    how = str(filters.get("operator"))
    if filters.keys() == {"operator", "conditions"} and how in JOINS and filters["conditions"]:
        joined = reduce(JOINS[how], map(condition_of, filters["conditions"]))
        return ~joined if how == "NOT" else joined
    if filters.keys() == {"field", "operator", "value"} and how in TESTS:
        return TESTS[how](Field(filters["field"].removeprefix("meta.")), filters["value"])
    raise ConfigError(
        "a filter has 'field', 'operator' (one of "
        f"{', '.join(TESTS)}) and 'value', or 'operator' (one of {', '.join(JOINS)}) and 'conditions'; "
        f"found {filters!r}"
    )
