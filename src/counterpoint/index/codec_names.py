"""The names of codecs, without numpy: what a command line offers."""

from typing import Literal

__all__ = ["CodecChoice", "CodecName"]

CodecName = Literal["1-bit", "2-bit", "4-bit", "int4", "int8", "float16", "float32"]
CodecChoice = Literal["auto", CodecName]
"""A codec, or the one of fewest bytes that the documents allow."""
