"""The measured figures of `resources/scale.toml`, as costs of a kind of index.

A figure that is unsure is written as `[low, high]`. Every table of figures names its source: the command, the
machine, the commit and the date.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, final

from counterpoint.errors import ConfigError
from counterpoint.scale.fan_out import Quantiles
from counterpoint.scale.formulas import Costs, Stage, sum_of_lines

__all__ = ["Figures", "IndexKind", "figures", "kind_of"]

FILE = Path(__file__).parents[1] / "resources" / "scale.toml"
COLD = ("documents", "checksums", "manifest", "other", "queries", "model")
"""Purposes of files that a query reads only where it shows or checks something."""
SCANNED = ("lexical", "offsets", "order", "postings", "lists", "centroids", "graph", "sketch", "sorted rows")
"""Purposes of files that queries read whole, or in places that no query shares; by their first word."""
BYTES_OF_A_WORD = 6.5  # with the space, of English abstracts
SLOW = ("means", "vocabulary")
"""Purposes whose bytes grow with the number of distinct words, so slower than the collection."""


@final
@dataclass(frozen=True)
class IndexKind:
    """What an index has.

    Attributes:
        stored: bytes of a document by purpose, as `info` counts them.
        parts: `lexical`, `pooled` (one vector per document) and `words` (several).
        words: of a document.
        fitted: numbers of a document's vectors that are kept in float16 while an index is built.
        again: bytes of a document whose words match exactly, in a large index, for its rows sorted by word.
    """

    stored: Mapping[str, float]
    parts: Set[str]
    words: float
    fitted: float = 0.0
    again: float = 0.0


@final
class Figures:
    """Measured figures.

    Args:
        data: of the file.
    """

    def __init__(self, data: Mapping[str, Any]):
        self._data = data

    @property
    def models(self) -> list[str]:
        """The models that were measured."""
        return list(self._data["models"])

    @property
    def sources(self) -> Mapping[str, Mapping[str, str]]:
        """How and where the figures were measured, by table."""
        return self._data["sources"]

    @cached_property
    def latencies(self) -> Quantiles:
        """Milliseconds in which one shard answers."""
        found = self._data["latencies"]
        return Quantiles(tuple(found["levels"]), tuple(found["ms"]))

    def kind(self, model: str, codec: str | None, words: float) -> IndexKind:
        """What an index of a model has, for documents of so many words.

        Args:
            model: one of `models`.
            codec: None for the model's own.
            words: of a document.

        Raises:
            ConfigError: the model or the codec was not measured.
        """
        found = self._data["models"].get(model)
        if found is None:
            raise ConfigError(
                f"--model {model}: not measured; measured are {', '.join(self.models)}. Index a sample with "
                "it and name that with --index"
            )
        lines = found["bytes"].get(codec or found["codec"])
        if lines is None:
            raise ConfigError(
                f"--codec {codec}: not measured with {model}; measured are {', '.join(found['bytes'])}"
            )
        few = (codec or found["codec"]).endswith("-bit")
        rows = sum_of_lines({"": found["rows"]}, words)[""] if few and "rows" in found else 0.0
        stored = {purpose: max(0.0, size) for purpose, size in sum_of_lines(lines, words).items()}
        return IndexKind(stored, frozenset(found["parts"]), words, rows * found.get("dim", 0))

    def costs(self, kind: IndexKind, documents: float, high: bool) -> Costs:
        """The costs of a kind of index, every figure at its low or at its high end."""

        def end(value: Any) -> float:
            return float(value[high]) if isinstance(value, list) else float(value)

        stored, least = dict(kind.stored), self._data["sketch"]["least"]
        sketch = "pooled" in kind.parts and documents >= least
        if sketch and not any(purpose.startswith("sketch") for purpose in stored):
            stored["sketch"] = end(self._data["sketch"]["bytes"])
        if kind.again and documents >= least:
            stored["sorted rows"] = kind.again
        if not high:
            stored = {key: 0.0 if _first(key) in SLOW else size for key, size in stored.items()}
        resident = sum(
            size
            for key, size in stored.items()
            if _first(key) not in COLD
            and (high or _first(key) in SCANNED or (not sketch and _is_pooled(key, kind.stored)))
        )
        stages = [
            Stage(each["name"], *(end(each.get(key, 0)) for key in ("once", "per_shard", "per_million")))
            for each in self._data["stages"]
            if kind.parts & set(each["parts"])
        ]
        build, words = self._data["build"], kind.words
        vectors = bool(kind.parts - {"lexical"})
        return Costs(
            stored=stored,
            resident=resident,
            building=2 * kind.fitted,
            stages=stages,
            process=end(self._data["process"]["bytes"]),
            encode=end(build["encode_per_word"]) * min(words, build["longest"]) if vectors else 0.0,
            write=sum(end(build["write_per_word"][part]) * words for part in sorted(kind.parts)),
            divide=end(build["divide_per_word"]) * words,
        )


def figures() -> Figures:
    """The figures that come with the package."""
    return Figures(tomllib.loads(FILE.read_text(encoding="utf-8")))


def kind_of(info: Mapping[str, Any]) -> IndexKind:
    """What an index has, from what `Index.info` tells of it. Its passages count as documents here.

    Raises:
        ConfigError: it has no documents.
    """
    count, sizes = info["passages"], info["bytes_by_purpose"]
    if not count:
        raise ConfigError("--index: it has no documents; name one with a sample of yours")
    several = [name for name in info["sets"] if f"offsets: {name}" in sizes]
    parts = {*(["words"] if several else []), *(["pooled"] if info["sets"].keys() - several else [])}
    fitted = [info["sets"][name] for name in several if (info["sets"][name]["codec"] or "").endswith("-bit")]
    again = [name for name in several if _sorted_later(name, info)]
    return IndexKind(
        stored={purpose: size / count for purpose, size in sizes.items()},
        parts=frozenset(parts | ({"lexical"} if info["lexical"] else set())),
        words=info["text_bytes"] / count / BYTES_OF_A_WORD,
        fitted=sum(each["vectors"] * each["dim"] for each in fitted) / count,
        again=sum(sizes[f"vectors: {name}"] + 4 * info["sets"][name]["vectors"] for name in again) / count,
    )


def _sorted_later(name: str, info: Mapping[str, Any]) -> bool:
    """Whether a larger index would have a set's rows a second time (`counterpoint.index.sorted_rows`)."""
    purposes, layout = info["bytes_by_purpose"], info["sets"][name]
    supported = layout["codec"] == "int8" or (layout["codec"], layout["dim"]) == ("float16", 1)
    return supported and f"postings: {name}" in purposes and f"sorted rows: {name}" not in purposes


def _first(purpose: str) -> str:
    return purpose.partition(":")[0]


def _is_pooled(purpose: str, stored: Mapping[str, float]) -> bool:
    """Whether a purpose is the vectors of a set with one vector per document, which has no offsets."""
    kind, _, name = purpose.partition(": ")
    return kind == "vectors" and f"offsets: {name}" not in stored
