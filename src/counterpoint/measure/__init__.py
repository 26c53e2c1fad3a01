"""Measures of retrieval."""

from counterpoint.measure.evaluate import Report, evaluate
from counterpoint.measure.names import parse_measure

__all__ = ["Report", "evaluate", "parse_measure"]
