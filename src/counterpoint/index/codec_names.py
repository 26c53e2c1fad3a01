"""The names of codecs, without importing numpy, for the command line."""

from typing import Literal

__all__ = ["CodecChoice", "CodecName"]

CodecName = Literal["1-bit", "2-bit", "4-bit", "int4", "int8", "float16", "float32"]
CodecChoice = Literal["auto", CodecName]
"""A codec, or `auto` for the smallest that keeps the ranking."""
