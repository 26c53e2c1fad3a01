"""Haystack's filters as conditions."""

import pytest

from counterpoint.errors import ConfigError
from counterpoint.integrations.haystack_filters import condition_of

YEAR = {"field": "meta.year", "operator": ">=", "value": 2020}
LANG = {"field": "lang", "operator": "in", "value": ["en", "it's"]}


@pytest.mark.parametrize(
    ("filters", "condition"),
    [
        (YEAR, '"year" >= 2020'),
        (LANG, "\"lang\" IN ('en', 'it''s')"),
        ({**LANG, "operator": "not in"}, "(NOT \"lang\" IN ('en', 'it''s'))"),
        ({**YEAR, "operator": "=="}, '"year" = 2020'),
        ({**YEAR, "operator": "!="}, '"year" <> 2020'),
        ({**YEAR, "operator": "==", "value": None}, '"year" IS NULL'),
        ({**YEAR, "operator": "!=", "value": None}, '(NOT "year" IS NULL)'),
        ({"operator": "AND", "conditions": [YEAR]}, '"year" >= 2020'),
        (
            {"operator": "AND", "conditions": [YEAR, LANG]},
            "(\"year\" >= 2020 AND \"lang\" IN ('en', 'it''s'))",
        ),
        (
            {"operator": "OR", "conditions": [YEAR, {"operator": "NOT", "conditions": [YEAR, LANG]}]},
            "(\"year\" >= 2020 OR (NOT (\"year\" >= 2020 AND \"lang\" IN ('en', 'it''s'))))",
        ),
    ],
)
def test_a_filter_is_a_condition(filters, condition):
    assert str(condition_of(filters)) == condition


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"field": "year", "value": 1},
        {**YEAR, "operator": "~"},
        {"operator": "AND", "conditions": []},
        {"operator": "XOR", "conditions": [YEAR]},
        {"year": 2020},
    ],
)
def test_anything_else_is_refused(wrong):
    with pytest.raises(ConfigError, match="a filter has 'field', 'operator'"):
        condition_of(wrong)


def test_values_are_those_of_conditions():
    with pytest.raises(ConfigError, match="text, a number, true or false"):
        condition_of({**YEAR, "value": {"a": 1}})
