"""Numbers as people type them."""

import pytest

from counterpoint.errors import ConfigError
from counterpoint.scale import parse_bytes, parse_count, shown_bytes, shown_count, shown_hours


@pytest.mark.parametrize(
    ("text", "value"),
    [("200k", 2e5), ("50M", 5e7), ("1.5B", 1.5e9), ("1,000", 1e3), (" 7 m ", 7e6), ("12", 12)],
)
def test_counts_have_units(text, value):
    assert parse_count(text, "--documents") == value


@pytest.mark.parametrize("text", ["", "0", "-5", "5X", "50 M M", "1e6", "nan", "M", "9" * 90, "64GB"])
def test_what_is_no_count_is_named(text):
    with pytest.raises(ConfigError, match="--documents: expected a number such as 200k, 50M or 1.5B, found"):
        parse_count(text, "--documents")


def test_bytes_need_a_unit():
    assert parse_bytes("64GB", "--memory") == 64e9 and parse_bytes("0.5 tb", "--memory") == 5e11
    with pytest.raises(ConfigError, match="--memory: expected an amount such as .*64GB.*, found '64'"):
        parse_bytes("64", "--memory")


def test_numbers_are_shown_with_units():
    assert [shown_count(n) for n in (7, 12_345, 2.5e6)] == ["7", "12,345", "2.5 million"]
    assert shown_count(1.5e9) == "1.5 billion"
    assert [shown_bytes(n) for n in (7, 1_500, 2e6, 3.25e9, 4e12)] == [
        "7 bytes", "1.5 kB", "2.0 MB", "3.2 GB", "4.0 TB",
    ]  # fmt: skip
    assert [shown_hours(n) for n in (0.25, 2.5, 71, 720)] == [
        "15 minutes",
        "2.5 hours",
        "71 hours",
        "30 days",
    ]
