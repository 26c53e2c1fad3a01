"""What somebody else wrote: TOML that is refused, and failures that are said of the file."""

import pytest

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.foreign import parse_toml, reading


def test_toml_is_read():
    assert parse_toml("a = 1\n[b.c]\nd = [1, {e = 2}]") == {"a": 1, "b": {"c": {"d": [1, {"e": 2}]}}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a =", "Invalid value"),
        ("a = " + "9" * 5000, "4300 digits"),
        ("a = " + "[" * 100_000, "nested deeper than 100 levels"),
        ("a = " + "[" * 120 + "]" * 120, "nested deeper than 100 levels"),
        ("[a" + ".a" * 5000 + "]", "nested deeper than 100 levels"),  # no recursion in reading this one
    ],
)
def test_toml_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        parse_toml(text)


def test_a_hundred_levels_are_enough():
    text = "a = " + "[" * 99 + "]" * 99
    assert parse_toml(text)["a"] != 1


@pytest.mark.parametrize(
    "error", [KeyError("dim"), TypeError("x"), ZeroDivisionError(), OSError("x"), RuntimeError()]
)
def test_what_fails_is_said_of_the_file(error, tmp_path):
    with pytest.raises(ArtifactError, match=f"{tmp_path}: its settings.*{type(error).__name__}") as caught:
        with reading(tmp_path):
            raise error
    assert caught.value.path == tmp_path and caught.value.__cause__ is error


def test_our_own_errors_get_the_file_unless_they_have_one(tmp_path):
    for error in (ConfigError("dim is 3"), ArtifactError("dim is 3")):
        with pytest.raises(ArtifactError, match=f"^{tmp_path}: dim is 3$"), reading(tmp_path):
            raise error
    for error in (ArtifactError("damaged", path="elsewhere"), DataError("no rows")):
        with pytest.raises(type(error)) as caught, reading(tmp_path):
            raise error
        assert caught.value is error
    with pytest.raises(AssertionError), reading(tmp_path):  # a bug of ours stays one
        raise AssertionError
