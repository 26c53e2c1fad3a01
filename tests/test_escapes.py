import json
import math
import re
import tomllib
import unicodedata

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.escapes import escaped, escaped_lines, harmless, html_text, json_text

# By Unicode's tables: Cc are C0, DEL and C1, Cs surrogates, Zl and Zp separators; the rest is Bidi_Control.
BIDI = {0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}
texts = st.text(st.characters()) | st.text(
    st.sampled_from("a\\é\t\n\r\x1b\x7f\x9b\u2028\u202e\u2066\ud800[;1m")
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner) | st.tuples(inner, inner),
)


def unsafe(character):
    return unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") or ord(character) in BIDI


@given(texts)
def test_no_unsafe_character_is_shown_and_no_other_is_changed(text):
    shown = escaped(text)
    assert not any(map(unsafe, shown))
    assert (shown == text) == (not any(map(unsafe, text)))
    assert all(escaped(character).startswith("\\") for character in text if unsafe(character))
    assert shown == "".join(map(escaped, text))


def test_every_character_of_unicode():
    for code in range(0x110000):
        character = chr(code)
        assert (escaped(character) != character) == unsafe(character), hex(code)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]52;c;aGk=\x07", r"\x1b]52;c;aGk=\x07"),
        ("\x00\t\n\r\x7f", r"\x00\t\n\r\x7f"),
        ("\x80\x9b\x85", r"\u0080\u009b\u0085"),
        ("abc\u202edcba\u2069", r"abc\u202edcba\u2069"),
        ("\u2028\ud800", r"\u2028\ud800"),
        ("مرحبا שלום नमस्ते ก็ 👩‍👩‍👧 🏴󠁧󠁢󠁥󠁮󠁧󠁿 é ﷽\u00a0\u200b\ufeff", None),  # joiners, tags, marks
        (r"C:\new\x1b", None),
    ],
)
def test_examples(text, shown):
    assert escaped(text) == (text if shown is None else shown)


@given(texts)
def test_our_own_lines_stay_lines(text):
    assert escaped_lines(text) == "\n".join(map(escaped, text.split("\n")))


@given(st.dictionaries(texts, texts))
def test_toml_stays_toml(data):
    """`recipe show` prints a recipe that can be read again."""
    sound = {name: text for name, text in data.items() if not re.search("[\ud800-\udfff]", name + text)}
    assert tomllib.loads(escaped_lines(tomli_w.dumps(sound))) == sound


@given(texts)
def test_a_page_keeps_its_white_space(text):
    shown = html_text(text)
    assert not any(unsafe(character) for character in shown if character not in "\t\n\r")
    assert not set(shown) & set("<>\"'")


@given(texts)
def test_streams_let_only_style_through(text):
    styled = f"\x1b[1;32m{escaped(text)}\x1b[0m\r\n\x1b[A"
    assert harmless(styled) == styled
    assert not any(map(unsafe, harmless(text.replace("\x1b[", "")).translate(dict.fromkeys(b"\t\n\r"))))


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;a\x07", "\x1b[5A", "\x9b1m", "\x1b[1m\x1b[6n", "\x1b["])
def test_streams_stop_what_moves_asks_or_writes(text):
    assert "\x1b" not in harmless(text).replace("\x1b[1m", "") and "\x9b" not in harmless(text)


def finite(data):
    """What JSON can hold of it."""
    if isinstance(data, list | tuple):
        return [finite(value) for value in data]
    if isinstance(data, dict):
        return {name: finite(value) for name, value in data.items()}
    return None if isinstance(data, float) and not math.isfinite(data) else data


def refuse(name):
    raise ValueError(name)


@given(anything, st.sampled_from([None, 1]), st.booleans())
def test_json_is_always_valid_and_shows_nothing_unsafe(data, indent, ascii_only):
    text = json_text(data, indent=indent, ascii_only=ascii_only)
    assert json.loads(text, parse_constant=refuse) == finite(data)
    assert text.encode("ascii" if ascii_only else "utf-8")
    assert not any(map(unsafe, text.replace("\n", "")))
