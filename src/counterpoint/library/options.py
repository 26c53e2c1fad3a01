"""What may be asked for when an index is built and searched: one place for the defaults of every way in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, final

from counterpoint.index.codec_names import CodecChoice

if TYPE_CHECKING:
    from counterpoint.index.field import Expression
    from counterpoint.model import Model

__all__ = [
    "AUTO_MODEL",
    "BACKEND",
    "CACHED_QUERIES",
    "DEFAULT_MODEL",
    "AddOptions",
    "Backend",
    "BuildOptions",
    "ExportOptions",
    "SearchOptions",
]

DEFAULT_MODEL = "minilm"
AUTO_MODEL = "auto"
"""The default: of an exported index its own model, of anything else `DEFAULT_MODEL`."""

Backend = Literal["auto", "onnx", "torch"]
"""What encodes queries. auto: the graph that was exported with the index; where there is none, the model with
torch. onnx: the graph, or an error. torch: the model."""
BACKEND: Backend = "auto"

CACHED_QUERIES = 256
"""How many queries' vectors an open index keeps; 30 kB each for the default model's median query."""


@final
@dataclass(frozen=True)
class BuildOptions:
    """How an index is built, as `counterpoint index` and `counterpoint.index` take it.

    Of an exported index, what is None is as that index had it.

    Attributes:
        model: name of a preset, folder, hub id, or a model; None or "none" for BM25 alone. "auto" takes the
            model of an exported index, and minilm for anything else.
        codec: how vectors are stored; the model's own choice where None. "auto" takes the codec of fewest
            bytes that hardly changes the ranking of a sample (`counterpoint.index.auto_codec`).
        gate: leave out rows that the model's gate or router weighs at or below this.
        ann: find documents by one vector a text along a graph, instead of looking at all of them.
        lexical: keep BM25 postings. Where None, as an exported index has it, and otherwise yes.
        analyzer: how BM25 cuts text into terms; the model's own choice where None, "english" without a model.
        identifiers: BM25 sees names such as `is_empty` and `checkIfEmpty` as one word and as several;
            yes where None.
        k1: how late further occurrences of a term stop to count in BM25; 0.9 where None.
        b: how much a document's length counts in BM25, from 0 to 1; 0.4 where None.
        passage_words: cut documents into passages of at most so many words; 0 keeps them whole. Where None,
            files are cut and documents of a collection are not.
        lenient: skip what cannot be read instead of stopping. Where None, files of a folder are skipped, and
            anything else stops.
        overwrite: replace an index that is there.
        resume: go on with an unfinished build in the same folder, of the same documents, model and codec:
            what it encoded is kept. Where there is none, build from the start.
        processes: how many encode; each loads the model, and has a share of the threads.
        vectors: take the vectors of an exported index in place of encoding its documents. Where None, if it
            has some, and they were not stored in 1, 2 or 4 bits, which lose more when they are coded again.
        id: the column or key of the id, in CSV, TSV, JSON, JSON Lines, dicts and frames; guessed where None,
            as are title and text.
        title: that of the title.
        text: that of the text.
        metadata: those that are kept as metadata; all others where None. "year:int" gives one a type
            (int, float, str or bool) and an index for conditions; where all have types, others are kept, too.
        include: of a folder, read only files that match one of these patterns, which are as in `.gitignore`.
        exclude: of a folder, leave out files and folders that match one of these.
        gitignore: leave out what the `.gitignore` files of a folder name.
    """

    model: str | Path | Model | None = AUTO_MODEL
    codec: CodecChoice | None = None
    gate: float | None = None
    ann: Literal["hnsw"] | None = None
    lexical: bool | None = None
    analyzer: Literal["english", "english-long", "simple", "none"] | None = None
    identifiers: bool | None = None
    k1: float | None = None
    b: float | None = None
    passage_words: int | None = None
    lenient: bool | None = None
    overwrite: bool = False
    resume: bool = False
    processes: int = 1
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
    """How documents are added to an index, as `counterpoint add` and `OpenIndex.add` take it.

    Attributes:
        replace: a document whose id is there takes the other's place; otherwise that is an error.
        passage_words: as for `BuildOptions`; where None, as the index was built.
        lenient: as for `BuildOptions`, and so are all others.
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
    """How an index is exported, as `counterpoint export` and `OpenIndex.export` take it.

    Attributes:
        vectors: write vectors, too, decoded to float32.
        where: a condition on metadata, as for `SearchOptions`; only documents that meet it are exported.
        overwrite: replace an export that is there.
    """

    vectors: bool = False
    where: str | None = None
    overwrite: bool = False


@final
@dataclass(frozen=True)
class SearchOptions:
    """How an index is searched, as `counterpoint search` and `OpenIndex.search` take it.

    Attributes:
        k: how many documents.
        workflow: hybrid, lexical, dense, words, dense-words or words-dense.
        weights: of the hybrid's parts, as a table or as "lexical=1 mean=1"; the index's own where None.
        adapt: let weights follow the query; where None, as the index says, and not if weights are given.
        fusion: how parts are made comparable: ceiling, min-max, z-score, rrf or none.
        feedback: what the best documents count for, and of how many, as 0.1, (0.1, 5) or "0.1,5"; 0 for none.
        exhaustive: look at every vector even where the index has a sketch, a graph or lists.
        probes: lists looked at for each of the query's vectors, where token sets have lists of centroids; as
            the index says where None.
        where: a condition on metadata, as "year >= 2020 and lang in ('en', 'de') and not draft", or one made
            by `counterpoint.field`; only documents that meet it are looked for.
        explain: say which words matched what, and for how much.
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
