"""Escape output text, so that it cannot control a terminal and JSON is always valid.

A title may contain an escape sequence that writes to the clipboard, or a character that reverses the rest of
the line. Such characters are shown as escapes: C0 and C1 controls, DEL, bidirectional controls, line and
paragraph separators, and lone surrogates, which no encoding can write. All other text stays unchanged, in any
script. A backslash stays, too: the escapes are for reading, not for parsing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html import escape
from math import isfinite
from types import MappingProxyType
from typing import Any

__all__ = ["escaped", "escaped_lines", "harmless", "html_text", "json_text"]

# For regular expressions; includes line ends and tabs.
UNSAFE = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
ANY = re.compile(f"[{UNSAFE}]")
WITHIN_LINES = re.compile(f"(?!\n)[{UNSAFE}]")
# Allows the controls of our own output: line ends, tabs, colours (rich), one line up (tqdm).
BESIDE_STYLE = re.compile(rf"(?P<style>[\t\n\r]|\x1b\[[0-9;]*m|\x1b\[A)|[{UNSAFE}]")
BESIDE_SPACE = re.compile(rf"(?![\t\n\r])[{UNSAFE}]")
SHORT: Mapping[str, str] = MappingProxyType({"\t": r"\t", "\n": r"\n", "\r": r"\r"})


def escaped(text: str) -> str:
    r"""Escape text within one line: unsafe characters become `\n`, `\x1b`, `\u202e`.

    Example:
        >>> print(escaped("a title\n\x1b]52;c;bHM=\x07"))
        a title\n\x1b]52;c;bHM=\x07
    """
    return ANY.sub(_escape, text)


def escaped_lines(text: str) -> str:
    """Escape text that consists of our own lines; line feeds stay."""
    return WITHIN_LINES.sub(_escape, text)


def html_text(text: str) -> str:
    """Escape text for a page: HTML's special characters, and unsafe ones except tabs and line ends."""
    return escape(BESIDE_SPACE.sub(_escape, text))


def harmless(text: str) -> str:
    """Escape text for a stream: allow only line ends, tabs, colours and one line up as controls."""
    return BESIDE_STYLE.sub(lambda found: found[0] if found["style"] else _escape(found), text)


def json_text(data: object, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Valid JSON that is safe to print: unsafe characters are escaped.

    Args:
        data: plain data; NaN and infinities, which JSON lacks, become null.
        indent: spaces per level; None for one line.
        ascii_only: escape everything that is not ASCII, for streams that are not UTF-8.
    """
    try:
        text = json.dumps(data, ensure_ascii=ascii_only, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(data), ensure_ascii=ascii_only, allow_nan=False, indent=indent)
    return WITHIN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)  # they occur only within strings


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    # TOML has no \x escape and no raw C0 characters, so `recipe show` stays valid TOML.
    return SHORT.get(found[0], f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}")


def _finite(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data
