"""`Served`: one index of the server. Reads take the last commit; writes come one at a time."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast, final

import numpy as np

from counterpoint.errors import ArtifactError, DataError
from counterpoint.index import Index
from counterpoint.index.paths import compile_all
from counterpoint.library.opened import OpenIndex
from counterpoint.library.options import BACKEND, Backend, SearchOptions
from counterpoint.search import LEXICAL, Answer, Run, Searcher
from counterpoint.search.settings import SearchSettings
from counterpoint.serve.health import health_of
from counterpoint.serve.problems import Problem
from counterpoint.serve.running import LOGGER

if TYPE_CHECKING:
    from counterpoint.search import Workflow
    from counterpoint.search.fleet import Fleet

__all__ = ["Served"]

CACHED = 1024  # queries whose vectors are kept; each must survive from its encoding to its search


@final
class Served:
    """An index that is searched and changed by requests.

    Two open indexes: one that is read, which follows the commits, and one that writes, which loads the whole
    model when it is first needed.

    Args:
        name: in addresses.
        folder: of the index.
        fleet: searches the shards of the index; None to search it here.
        backend: what encodes queries.

    Raises:
        ArtifactError: there is no such index.
    """

    def __init__(self, name: str, folder: Path, fleet: Fleet | None = None, backend: Backend = BACKEND):
        self.name, self._folder = name, folder
        self._read = OpenIndex(folder, backend=backend, cached=CACHED, fleet=fleet)
        self._write: OpenIndex | None = None
        self._lock = Lock()
        self._named: tuple[Index | None, str] = None, ""
        self._health: dict[str, Any] = {}
        self._batches = False

    @property
    def count(self) -> int:
        """How many documents the open commit has."""
        return len(self._read)

    def refresh(self) -> None:
        """Follow the last commit. An index that is gone, or half replaced, leaves the one that is open."""
        try:
            self._read.refresh()
        except ArtifactError as error:
            if not self._folder.is_dir():
                raise
            LOGGER.warning({"index": self.name, "fault": f"the last commit cannot be read: {error}"})

    def check(self) -> None:
        """Look whether the index is still there, and ask shards elsewhere whether they answer.

        Raises:
            Problem: it is gone, or some do not answer and searches need them.
        """
        if not self._folder.is_dir():
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, f"{self.name}: the index is gone")
        missing, enough = self._read.silent()
        if missing and not enough:
            named = ", ".join(map(str, sorted(missing)))
            detail = f"{self.name}: no answer from shard {named}"
            raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, detail)

    def warm(self) -> None:
        """Load what the first searches would load: the encoder, and compiled kernels."""
        model = self.searcher(SearchOptions()).model
        if model is not None:
            compile_all()
            model.encode_query(["ready"])
            self._batches = getattr(model, "batches", True)

    def commit_of(self, index: Index) -> str:
        """The name of a commit."""
        known, name = self._named
        if known is not index:
            name = index.manifest.commit
            self._named = index, name
        return name

    def searcher(self, options: SearchOptions) -> Searcher:
        """A searcher of the last commit."""
        self.refresh()
        return self._read.searcher(options)

    def search(self, query: str, options: SearchOptions) -> tuple[Answer, str]:
        """The answer to a query, and the commit that it is of."""
        self.refresh()
        answer, index = self._read.answer(query, options)
        return answer, self.commit_of(index)

    def run(self, queries: dict[str, str], options: SearchOptions) -> tuple[Run, str]:
        """Documents ranked for queries (id to text), and the commit that the scores are of."""
        searcher, workflow = self.searcher(options), cast("Workflow", options.workflow)
        with self._read.watched(whole=True):
            return searcher.run(queries, options.k, workflow=workflow), self.commit_of(searcher.index)

    def rerank(
        self, query: str, ids: list[str], options: SearchOptions
    ) -> tuple[list[tuple[str, float]], str]:
        """Given documents by score, and the commit that the scores are of.

        Raises:
            Problem: a document is not in the index.
        """
        searcher, workflow = self.searcher(options), cast("Workflow", options.workflow)
        given = Run({"query": dict.fromkeys(ids, 0.0)})
        try:
            with self._read.watched(whole=True):
                run = searcher.run({"query": query}, options.k, workflow=workflow, candidates=given)
        except DataError as error:
            index, whole = searcher.index, set(searcher.index.parents.values())
            unknown = [id_ for id_ in ids if index.position_of(id_) is None and id_ not in whole]
            detail = f"{self.name} has no document {unknown[0]!r}" if unknown else str(error)
            raise Problem(HTTPStatus.NOT_FOUND, detail) from error
        return list(run["query"]), self.commit_of(searcher.index)

    def score_texts(self, query: str, texts: list[str]) -> tuple[list[float], str]:
        """Scores of texts that need not be in the index, and the commit whose weights they are by."""
        searcher = self.searcher(SearchOptions())
        return searcher.score_texts(query, texts).tolist(), self.commit_of(searcher.index)

    def encode(self, texts: list[str], sets: list[str] | None = None) -> dict[str, list[np.ndarray]]:
        """Vectors of queries, by set.

        Raises:
            Problem: the index has no model, or no such set.
        """
        model = self.searcher(SearchOptions()).model
        if model is None:
            raise Problem(HTTPStatus.BAD_REQUEST, "this index has BM25 only, and no model to encode with")
        known = list(model.sets)
        if unknown := [name for name in sets or () if name not in known]:
            detail = f"there is no vector set {unknown[0]!r}; there are {', '.join(known)}"
            raise Problem(HTTPStatus.BAD_REQUEST, detail)
        made = model.encode_query(texts)
        return {name: [made[name][at] for at in range(len(texts))] for name in sets or known}

    def pooled_set(self) -> str:
        """The set that has one vector per text.

        Raises:
            Problem: there is none.
        """
        for name, layout in self._read.index.layouts.items():
            if layout.pooled:
                return name
        raise Problem(HTTPStatus.BAD_REQUEST, f"{self.name}: no vector set has one vector per text")

    def batches(self, options: SearchOptions) -> bool:
        """Whether searches encode queries, and do it faster together."""
        return self._batches and options.workflow != LEXICAL

    def document(self, name: str) -> tuple[dict[str, Any], str]:
        """A document and the commit that it is of.

        Raises:
            Problem: there is no such document.
        """
        self.refresh()
        index = self._read.index
        position = index.position_of(name)
        if position is None:
            raise Problem(HTTPStatus.NOT_FOUND, f"{self.name} has no document {name!r}")
        document = index.document(position)
        found = {"id": document.id, "title": document.title, "text": document.text}
        return found | {"metadata": dict(document.metadata)}, self.commit_of(index)

    def info(self) -> dict[str, Any]:
        """What the index has, without paths."""
        self.refresh()
        index = self._read.index
        found = index.disk_usage()
        kept = ("documents", "passages", "bytes", "bytes_per_document", "bytes_by_purpose")
        sets = {name: {"components": each.dim, "pooled": each.pooled} for name, each in index.layouts.items()}
        return {
            "name": self.name,
            "commit": self.commit_of(index),
            "created": index.manifest.created,
            **{name: found[name] for name in kept},
            "lexical": index.manifest.has_lexical,
            "sets": sets,
            "weights": dict(SearchSettings.for_index(index).weights),
            "fields": dict(index.fields),
        }

    def health(self) -> dict[str, Any]:
        """The measures of `health_of`, once per commit. Takes seconds; for one caller at a time."""
        searcher = self.searcher(SearchOptions())
        commit = self.commit_of(searcher.index)
        if self._health.get("commit") != commit:
            self._health = {"name": self.name, "commit": commit, **health_of(searcher)}
        return self._health

    def add(self, documents: list[dict[str, Any]], replace: bool) -> tuple[int, str]:
        """Add documents in one commit; how many, and the commit.

        Raises:
            Problem: an id is there already, and `replace` is not asked for.
        """
        with self._lock:
            opened = self._writer()
            taken = [each["id"] for each in documents if isinstance(each.get("id"), str)]
            if not replace and (there := [id_ for id_ in taken if opened.index.position_of(id_) is not None]):
                detail = f"the document {there[0]!r} is there already; add it with replace, or leave it out"
                raise Problem(HTTPStatus.CONFLICT, detail)
            count = opened.add(documents, replace=replace)
            return count, self.commit_of(opened.index)

    def delete(self, ids: list[str] | None, where: str | None, missing_ok: bool) -> tuple[int, str]:
        """Delete documents in one commit; how many, and the commit."""
        with self._lock:
            opened = self._writer()
            count = opened.delete(ids, where=where, missing_ok=missing_ok)
            return count, self.commit_of(opened.index)

    def close(self) -> None:
        """Close the files, once no request uses them."""
        self._read.close()
        if self._write is not None:
            self._write.close()

    def _writer(self) -> OpenIndex:
        if self._write is None:
            self._write = OpenIndex(self._folder)
        self._write.refresh()
        return self._write
