"""Detect the encoding of a text: UTF-8 unless a byte order mark or its bytes say otherwise."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from pathlib import Path

from counterpoint.errors import DataError

__all__ = ["UTF_8", "charset_of", "marked"]

UTF_8 = "utf-8"
MARKS = (  # UTF-32 first: its little-endian mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, UTF_8),
)
# Likely ones first: short texts often fit several encodings equally well, and then the first counts.
USUAL = ["cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1254", "cp1255", "cp1256"]
USUAL += ["cp1257", "cp932", "euc_jp", "gb18030", "big5", "cp949", "mac_roman", "cp850", "cp866"]
SAMPLE = 1 << 16  # bytes examined, from the beginning and around invalid UTF-8


def marked(beginning: bytes) -> str | None:
    """The encoding that a byte order mark names, if there is one."""
    return next((name for mark, name in MARKS if beginning.startswith(mark)), None)


def charset_of(blocks: Iterable[bytes], path: str | Path | None = None) -> str:
    """Detect the encoding of a text in blocks: its mark's, else UTF-8, else what charset-normalizer finds.

    UTF-8 with a few invalid bytes counts as damaged UTF-8. If nothing fits, the result is also UTF-8, so that
    decoding reports where it fails.

    Raises:
        DataError: it contains NUL bytes, so it is not text.
    """
    decoder, head, beyond_ascii, first = codecs.getincrementaldecoder(UTF_8)(), b"", 0, True
    for block in blocks:
        if first and (name := marked(block)) is not None:
            return name
        first = False
        if b"\0" in block:
            raise DataError(
                "has NUL bytes, so it is not text; save UTF-16 without a byte order mark as UTF-8",
                path=path,
            )
        try:
            text = decoder.decode(block)
        except UnicodeDecodeError as error:
            return _guessed(head, error.object[max(0, error.start - SAMPLE) :], beyond_ascii)
        beyond_ascii += max(0, len(block) - len(text))  # at least one per character, and fast to compute
        head = head or block[:SAMPLE]
    return UTF_8


def _guessed(head: bytes, rest: bytes, beyond_ascii: int) -> str:
    """Guess the encoding of a text that is not UTF-8.

    Args:
        head: its beginning, before `rest`.
        rest: the bytes from shortly before the first one that is not UTF-8.
        beyond_ascii: 0 if everything before `rest` is ASCII, else at least the number of other characters.
    """
    shown = rest[: 2 * SAMPLE]
    text = shown.decode(UTF_8, "replace")
    broken = text.count("\ufffd")
    sound = beyond_ascii + sum(letter > "\x7f" for letter in text) - broken
    if sound >= broken or _cut_short(rest):
        return UTF_8
    from charset_normalizer import from_bytes

    if not (found := list(from_bytes(head + shown, cp_isolation=USUAL, enable_fallback=False))):
        return UTF_8
    best = found[0]
    fits = {
        name
        for match in found
        if match.chaos <= best.chaos and match.coherence >= best.coherence
        for name in match.could_be_from_charset
    }
    return next((name for name in USUAL if name in fits), best.encoding)


def _cut_short(rest: bytes) -> bool:
    try:
        rest.decode(UTF_8)
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
