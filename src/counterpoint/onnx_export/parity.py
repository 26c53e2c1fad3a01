"""Differences between an export's vectors and the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from counterpoint.onnx_export.graph import CannotExport
from counterpoint.types import Ragged

__all__ = ["BOUND", "NEAR", "QUERIES", "TEXTS", "difference", "nearness"]

BOUND = 1e-4
"""Maximum difference of a component, relative to the longest vector of its set; float32 rounds at 6e-8."""

LONG = (
    "Retrieval models compare a question with passages; some of these are long, and their ends are cut off. "
)

TEXTS: Sequence[str] = (
    "",
    " ",
    "a",
    "whale",
    "what is a whale?",
    "Where did we decide on the index format",
    "how do I copy a list without changing the original",
    "0-dimensional biomaterials lack inductive properties.",
    "1 in 5 million in UK have abnormal PrP positivity.",
    "Depletion of nitric oxide is responsible for vasospasm.",
    "the the the the the",
    "The THE the tHe",
    "running runs run ran runner",
    "!!! ??? ... ,,, ;;;",
    "3.14159 2026-11-24 10^12 $3.50 100%",
    "is_empty checkIfEmpty HTTP2Server date.today os.path.is_empty",
    "def search(self, query: str, k: int = 10) -> Answer:",
    "datetime.datetime.now().isoformat()",
    "user@example.org https://example.org/a/b?c=d#e",
    "Ein Wal ist ein Säugetier, kein Fisch.",
    "naïve café résumé Ångström",
    "Кит — это млекопитающее",
    "鯨は哺乳類です",
    "鲸鱼是哺乳动物",
    "วาฬเป็นสัตว์เลี้ยงลูกด้วยนม",
    "الحوت من الثدييات",
    "🐋 whale 🐳 emoji",
    "zero\u200bwidth soft\u00adhyphen",
    "a\tb\nc\r\nd",
    "broken \ud83d surrogate",
    "x" * 120,
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis",
    "[CLS] [SEP] [MASK] [PAD] [UNK]",
    LONG,
    LONG * 3,
    LONG * 60,
    " ".join(f"name{number}Value_{number}" for number in range(200)),
)
"""Test texts: short, long, empty, truncated, in other scripts, and with names from programs."""

NEAR = 0.998
"""The least mean cosine with which queries are encoded in 8 bits by default; docs/design.md has the rule."""

QUERIES = tuple(text for text in TEXTS if len(text) < 200)
"""Those that are no longer than queries."""


def difference(made: Mapping[str, Ragged], wanted: Mapping[str, Ragged]) -> float:
    """The largest difference of a component, relative to the longest vector of its set.

    Raises:
        CannotExport: the rows differ, or values are not finite.
    """
    largest = 0.0
    for name, packed in wanted.items():
        found = made[name]
        if not np.array_equal(found.offsets, packed.offsets) or not _same_ids(found, packed):
            raise CannotExport(f"the graph's rows of {name!r} differ from the model's")
        if not len(packed.values):
            continue
        longest = float(np.linalg.norm(packed.values, axis=1).max())
        apart = float(np.abs(found.values - packed.values).max()) / (longest or 1.0)
        if not np.isfinite(apart):
            raise CannotExport(f"the graph's values of {name!r} are not finite")
        largest = max(largest, apart)
    return largest


def _same_ids(one: Ragged, other: Ragged) -> bool:
    if one.ids is None or other.ids is None:
        return one.ids is None and other.ids is None
    return np.array_equal(one.ids, other.ids)


def nearness(made: Mapping[str, Ragged], wanted: Mapping[str, Ragged]) -> float:
    """The mean cosine of corresponding rows, in the set where it is smallest; 1 without rows."""
    return min((_cosine(made[name].values, packed.values) for name, packed in wanted.items()), default=1.0)


def _cosine(made: np.ndarray, wanted: np.ndarray) -> float:
    lengths = np.linalg.norm(made, axis=1) * np.linalg.norm(wanted, axis=1)
    there = lengths > 0
    return float(((made * wanted).sum(1)[there] / lengths[there]).mean()) if there.any() else 1.0
