"""Abstract classes for engines.

To add an engine, write a module with an `Engine` named `ENGINE`, and add its name to `names`. Import the
engine's client in `connect`: descriptions and queries must work without it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from jaxtyping import Float

from counterpoint.exporters.contents import Contents, Row
from counterpoint.index.lexical import LEXICAL

__all__ = ["Engine", "Kept", "Part", "Place", "Question", "Writer"]


@final
@dataclass(frozen=True)
class Place:
    """Where an engine is.

    Attributes:
        url: its address; None for `folder`.
        folder: the folder or file of an engine that runs in this process, or for the files to write.
        key: what a server wants to see; None for nothing.
        overwrite: replace files written before.
    """

    url: str | None = None
    folder: Path | None = None
    key: str | None = None
    overwrite: bool = False


@final
@dataclass(frozen=True)
class Part:
    """One part of a question.

    Attributes:
        scale: what the part's score is multiplied by in the sum: its weight divided by its ceiling.
        proposes: whether the part is a first stage.
        rows: the query's vectors, with idf applied; empty for BM25.
    """

    scale: float
    proposes: bool
    rows: Float[np.ndarray, "m d"]


@final
@dataclass(frozen=True)
class Question:
    """A query, ready to be written as an engine's request.

    Attributes:
        text: as it was asked.
        k: number of documents.
        candidates: number of documents that each first stage proposes.
        parts: by name.
        terms: idf of each term that the index knows, times its occurrences in the query.
        occurrences: how often each of these terms is in the query.
    """

    text: str
    k: int
    candidates: int
    parts: Mapping[str, Part]
    terms: Mapping[str, float]
    occurrences: Mapping[str, int]

    @property
    def words(self) -> str:
        """The terms with a space between them, each as often as it is in the query."""
        return " ".join(term for term, count in self.occurrences.items() for _ in range(count))

    @property
    def first(self) -> list[str]:
        """The parts that propose documents."""
        return [name for name, part in self.parts.items() if part.proposes]


class Writer(ABC):
    """An open connection to an engine, or files being written.

    Attributes:
        faults: errors of the client that are not our mistakes, such as a lost connection.
    """

    faults: tuple[type[Exception], ...] = ()

    @abstractmethod
    def create(self) -> None:
        """Make the collection, unless there is one of the same shape.

        Raises:
            ConfigError: there is one of another shape.
        """

    @abstractmethod
    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        """The stamps of the documents that the engine has, by id."""

    @abstractmethod
    def write(self, rows: Sequence[Row]) -> None:
        """Write documents, replacing those with the same ids."""

    @abstractmethod
    def count(self) -> int | None:
        """The number of documents in the collection; None if the engine does not say."""

    def finish(self) -> None:  # noqa: B027  # most have nothing to do
        """Called once, after the last document."""

    def notes(self) -> list[str]:
        """What was lost while writing, one sentence each."""
        return []

    @abstractmethod
    def close(self, done: bool) -> None:
        """Close everything.

        Args:
            done: whether all documents were written.
        """


@final
@dataclass(frozen=True, kw_only=True)
class Kept:
    """How an engine keeps each part of an index; see `Engine.kept`."""

    documents: str
    pooled: str
    several: str = ""
    lexical: str
    metadata: str


class Engine(ABC):
    """An engine: what it holds, how it is written, and how it is asked.

    Attributes:
        name: its name on the command line.
        title: its name in texts.
        multi_vectors: it has MaxSim.
        sparse: it keeps BM25 as sparse vectors whose weights are computed here.
        kept: how the engine keeps documents, pooled vectors, multi-vectors, BM25 and metadata. A text about
            vectors has places for `column` and `dim`.
        where: what says where the engine is: options, as in "--url URL, or -o FOLDER".
        writes_files: a folder gets files for the engine, and not its collection.
    """

    name: str
    title: str
    multi_vectors: bool
    sparse: bool
    kept: Kept
    where: str
    writes_files: bool = False

    @final
    def holds(self, contents: Contents) -> dict[str, str]:
        """How each part of the index is kept, by part."""
        columns, held = contents.columns, {"documents": self.kept.documents}
        for sets, text in ((contents.pooled, self.kept.pooled), (contents.several, self.kept.several)):
            held |= {name: text.format(column=columns[name], dim=dim) for name, dim in sets.items()}
        if contents.lexical:
            held[LEXICAL] = self.kept.lexical
        return held | {"metadata": self.kept.metadata}

    @abstractmethod
    def limits(self, contents: Contents) -> list[str]:
        """What this engine does otherwise than the index, one sentence each."""

    @abstractmethod
    def connect(self, contents: Contents, place: Place) -> Writer:
        """Open the engine. The place has either a URL or a folder.

        Raises:
            ConfigError: the index has nothing that the engine can hold.
            MissingExtraError: the client is not installed.
            ArtifactError: the engine cannot be reached, or files cannot be written.
        """

    @abstractmethod
    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """The engine's own request for a question, as plain data."""
