"""Options of building, changing, exporting and searching an index, with their defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

if TYPE_CHECKING:
    from counterpoint.index import CodecChoice
    from counterpoint.index.field import Expression
    from counterpoint.model import Model

__all__ = [
    "AUTO_MODEL",
    "BACKEND",
    "CACHED_QUERIES",
    "DEEP",
    "DEFAULT_MODEL",
    "MEASURES",
    "AddOptions",
    "Backend",
    "BuildOptions",
    "ExportOptions",
    "SearchOptions",
]

DEFAULT_MODEL = "minilm"
AUTO_MODEL = "auto"
"""The default: the model of an exported index, and `DEFAULT_MODEL` for other sources."""

Backend = Literal["auto", "int8", "onnx", "torch"]
"""What encodes queries. int8: the graph exported with the index, with 8-bit matrices, or an error. onnx: the
graph in float32 by ONNX Runtime, or an error; it takes longer. torch: the model. auto: int8 if the
export found its vectors near the model's, else onnx, or torch if there is no graph."""
BACKEND: Backend = "auto"

DEEP = 1000
"""Documents per query of a run."""

MEASURES = "nDCG@10 R@100 RR@10"
"""What `evaluate` measures unless it is told otherwise."""

CACHED_QUERIES = 256
"""Queries whose vectors an open index caches; 30 kB each for the default model's median query."""


@final
@dataclass(frozen=True)
class BuildOptions:
    """Options to build an index, for `counterpoint index` and `counterpoint.index`.

    For an exported index, None means the setting of that index.

    Attributes:
        model: name of a preset, folder, hub id, or a model; None or "none" for BM25 only. "auto" takes the
            model of an exported index, and minilm for other sources.
        codec: how vectors are stored; None for the model's own choice. "auto" takes the codec of fewest bytes
            that hardly changes the ranking of a sample (`counterpoint.index.auto_codec`).
        gate: prune rows whose weight by the model's gate or router is at or below this.
        ann: approximate search over pooled vectors along a graph, instead of scoring all of them.
        pool_factor: keep 1/`pool_factor` of a document's vectors in each multi-vector set, by token pooling;
            None for 1, or as in the export.
        lexical: keep BM25 postings; None for yes, or for the setting of an exported index.
        analyzer: how BM25 splits text into terms; None for the model's own choice, or "english" without one.
        identifiers: BM25 indexes names such as `is_empty` and `checkIfEmpty` as one word and as several; None
            for yes.
        k1: term-frequency saturation of BM25; None for 0.9.
        b: length normalisation of BM25, from 0 to 1; None for 0.4.
        passage_words: cut documents into passages of at most this many words; 0 keeps them whole. None cuts
            files, but not the documents of a collection.
        lenient: skip what cannot be read instead of stopping. None skips files of a folder, and stops
            otherwise.
        overwrite: replace an existing index.
        resume: continue an unfinished build in the same folder, with the same documents, model and codec;
            what it encoded is kept. If there is none, build from the start.
        processes: number of encoding processes; each loads the model and gets a share of the threads. None
            for 1; on a Ray cluster, for one per GPU, or per processor if there are no GPUs.
        ray: encode on this Ray cluster, such as "10.0.0.1:6379", or "local" to start one on this machine. The
            result is the same.
        shards: divide the index into this many shards; None for 1, or as in the export. The results are the
            same for every number.
        vectors: take the vectors of an exported index instead of encoding its documents. None takes them if
            they exist and were not stored in 1, 2 or 4 bits, which lose more when they are stored again.
        id: column or key of the id in CSV, TSV, JSON, JSON Lines, dicts and frames; None to guess it.
        title: column or key of the title; None to guess it.
        text: column or key of the text; None to guess it.
        metadata: columns or keys kept as metadata; None for all others. "year:int" declares a type (int,
            float, str or bool) and makes an index for conditions. If all have types, others are kept, too.
        include: read only files of a folder that match one of these patterns (syntax of `.gitignore`).
        exclude: skip files and folders that match one of these patterns.
        gitignore: skip what the `.gitignore` files of a folder name.
    """

    model: str | Path | Model | None = AUTO_MODEL
    codec: CodecChoice | None = None
    gate: float | None = None
    ann: Literal["hnsw"] | None = None
    pool_factor: float | None = None
    lexical: bool | None = None
    analyzer: Literal["english", "english-long", "simple", "none"] | None = None
    identifiers: bool | None = None
    k1: float | None = None
    b: float | None = None
    passage_words: int | None = None
    lenient: bool | None = None
    overwrite: bool = False
    resume: bool = False
    processes: int | None = None
    ray: str | None = None
    shards: int | None = None
    vectors: bool | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    metadata: str | Sequence[str] | None = None
    include: str | Sequence[str] | None = None
    exclude: str | Sequence[str] | None = None
    gitignore: bool = True


@final
@dataclass(frozen=True)
class AddOptions:
    """Options to add documents, for `counterpoint add` and `OpenIndex.add`.

    Attributes:
        replace: replace documents with the same ids; otherwise an existing id is an error.
        passage_words: as for `BuildOptions`; None for the setting that the index was built with.
        lenient: as for `BuildOptions`, as are all others.
    """

    replace: bool = False
    passage_words: int | None = None
    lenient: bool | None = None
    id: str | None = None
    title: str | None = None
    text: str | None = None
    include: str | Sequence[str] | None = None
    exclude: str | Sequence[str] | None = None
    gitignore: bool = True


@final
@dataclass(frozen=True)
class ExportOptions:
    """Options to export an index, for `counterpoint export` and `OpenIndex.export`.

    Attributes:
        vectors: write vectors as well, decoded to float32.
        where: a metadata condition, as for `SearchOptions`; only documents that meet it are exported.
        overwrite: replace an existing export.
    """

    vectors: bool = False
    where: str | None = None
    overwrite: bool = False


@final
@dataclass(frozen=True)
class SearchOptions:
    """Options to search an index, for `counterpoint search` and `OpenIndex.search`.

    Attributes:
        k: number of documents.
        workflow: hybrid, lexical, dense, words, dense-words or words-dense.
        weights: weights of the hybrid's parts, a mapping or "lexical=1 mean=1"; None for the index's own.
        adapt: adapt weights to the query; None for the index's setting, or for no if weights are given.
        fusion: how to make parts comparable: ceiling, min-max, z-score, rrf or none.
        feedback: weight of pseudo-relevance feedback, and number of documents: 0.1, (0.1, 5) or "0.1,5"; 0
            for none.
        exhaustive: score every vector, even if the index has a sketch, a graph or lists.
        probes: lists probed per query vector, for token sets with lists of centroids; None for the index's
            setting.
        where: a metadata condition, such as "year >= 2020 and lang in ('en', 'de') and not draft", or one
            made by `counterpoint.field`; only documents that meet it are searched.
        explain: explain which words matched what, and how much each match counts.
    """

    k: int = 10
    workflow: str = "hybrid"
    weights: str | Mapping[str, float] | None = None
    adapt: bool | None = None
    fusion: str | None = None
    feedback: str | float | tuple[float, int] | None = None
    exhaustive: bool = False
    probes: int | None = None
    where: str | Expression | None = None
    explain: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON, without options that are None."""
        kept = {name: value for name, value in vars(self).items() if value is not None}
        if "where" in kept:
            kept["where"] = str(kept["where"])
        if isinstance(kept.get("feedback"), tuple):
            kept["feedback"] = ",".join(map(str, kept["feedback"]))
        return kept
