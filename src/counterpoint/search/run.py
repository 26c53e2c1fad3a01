"""`Run`: ranked document ids and scores for each query."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, final

import numpy as np
from jaxtyping import Float, Int, Shaped

from counterpoint.errors import ConfigError, DataError
from counterpoint.frames import frame

if TYPE_CHECKING:
    import pandas

__all__ = ["Run", "trec_order"]

DEFAULT_TAG = "counterpoint"
COLUMNS = MappingProxyType(
    {"query": ("query", "qid", "query_id"), "document": ("document", "docno", "doc_id"), "score": ("score",)}
)
"""Columns of a frame, with their names in PyTerrier and ir_measures."""
Ranking = tuple[Shaped[np.ndarray, " n"], Float[np.ndarray, " n"]]


@final
class Run:
    """Ranked documents for each query; immutable.

    Documents are in trec_eval's order: by descending score, and by descending id for equal scores. trec_eval
    keeps scores in single precision, so scores that agree in it count as equal here, too. What is shown is
    therefore what is evaluated. Two runs are equal if their documents and scores are; provenance is not
    compared.

    Args:
        results: query id to document id to score; a query may have no documents.
        provenance: JSON values on the origin of the run (tag, model, index, command).

    Raises:
        DataError: a score is not a finite number.

    Example:
        >>> run = Run({"q1": {"a": 0.5, "b": 2.0, "c": 0.5}})
        >>> run["q1"]
        [('b', 2.0), ('c', 0.5), ('a', 0.5)]
    """

    def __init__(
        self, results: Mapping[str, Mapping[str, float]], *, provenance: Mapping[str, Any] | None = None
    ):
        self._rankings = {
            query: _ranked(query, list(found), list(found.values())) for query, found in results.items()
        }
        self.provenance: Mapping[str, Any] = MappingProxyType(dict(provenance or {}))

    def __reduce__(self) -> tuple[Callable[..., Run], tuple[dict[str, dict[str, float]]]]:
        """A copy, or what is sent to another process, is made again; a read-only mapping cannot be copied."""
        results = {query: self.scores(query) for query in self}
        return partial(Run, provenance=dict(self.provenance)), (results,)

    @staticmethod
    def from_arrays(
        results: Mapping[str, tuple[Sequence[str], Sequence[float] | Float[np.ndarray, " n"]]],
        *,
        provenance: Mapping[str, Any] | None = None,
    ) -> Run:
        """Make a run from parallel document ids and scores, in any order.

        Raises:
            DataError: a query has a document twice, or a score is not a finite number.
        """
        for query, (ids, scores) in results.items():
            if len(ids) != len(scores):
                raise DataError(f"query {query!r}: {len(ids)} documents but {len(scores)} scores")
            if len(set(ids)) != len(ids):
                twice = next(name for at, name in enumerate(ids) if name in ids[:at])
                raise DataError(f"query {query!r}: document {twice!r} is ranked twice")
        pairs = {query: dict(zip(ids, scores, strict=True)) for query, (ids, scores) in results.items()}
        return Run(pairs, provenance=provenance)

    @staticmethod
    def read(path: str | Path) -> Run:
        """Read TREC's six columns, plain or `.gz`; the tag goes into the provenance.

        Raises:
            DataError: the file is malformed; names the file and the line.
        """
        from counterpoint.data.trec import read_trec_run  # imports the readers of all formats

        scores, tag = read_trec_run(path)
        return Run(scores, provenance={"tag": tag, "file": str(path)})

    def write(self, path: str | Path) -> None:
        """Write TREC's six columns with all digits of the scores; a query without documents gets no line.

        Raises:
            DataError: an id contains white space, which TREC files cannot hold.
        """
        from counterpoint.data.trec import write_trec_run

        scores = {query: self.scores(query) for query in self}
        write_trec_run(scores, path, tag=str(self.provenance.get("tag") or DEFAULT_TAG))

    # -- reading ---------------------------------------------------------------------------------------

    @property
    def queries(self) -> tuple[str, ...]:
        """Ids of all queries, in the order given."""
        return tuple(self._rankings)

    def __getitem__(self, query: str) -> list[tuple[str, float]]:
        """Documents and scores of one query, best first."""
        ids, scores = self._rankings[query]
        return list(zip(ids.tolist(), scores.tolist(), strict=True))

    def scores(self, query: str) -> dict[str, float]:
        """Score of every document of one query, best first."""
        ids, scores = self._rankings[query]
        return dict(zip(ids.tolist(), scores.tolist(), strict=True))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rankings)

    def __contains__(self, query: object) -> bool:
        return query in self._rankings

    def __len__(self) -> int:
        """Number of queries."""
        return len(self._rankings)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Run):
            return NotImplemented
        return self._rankings.keys() == other._rankings.keys() and all(
            all(map(np.array_equal, ranking, other._rankings[query]))
            for query, ranking in self._rankings.items()
        )

    def __repr__(self) -> str:
        rows = sum(len(ids) for ids, _ in self._rankings.values())
        return f"Run({len(self)} queries, {rows} rows, provenance={dict(self.provenance)})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; `Run(**run.to_dict())` equals this run."""
        return {"results": {query: self.scores(query) for query in self}, "provenance": dict(self.provenance)}

    def to_pandas(self) -> pandas.DataFrame:
        """One row per ranked document: `query`, `document`, `rank` (from 1) and `score`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        rows = [
            (query, document, rank, score)
            for query in self
            for rank, (document, score) in enumerate(self[query], start=1)
        ]
        names = ("query", "document", "rank", "score")
        return frame({name: [row[at] for row in rows] for at, name in enumerate(names)})

    @staticmethod
    def from_pandas(rows: pandas.DataFrame, *, provenance: Mapping[str, Any] | None = None) -> Run:
        """Make a run from a frame with columns `query`, `document` and `score`, with rows in any order.

        PyTerrier's `qid` and `docno`, and ir_measures' `query_id` and `doc_id`, are accepted, too. Other
        columns are ignored; documents are ranked by score.

        Raises:
            DataError: a column is missing, a query has a document twice, or a score is not finite.
        """
        found = {}
        for column, names in COLUMNS.items():
            there = [name for name in names if name in rows.columns]
            if not there:
                raise DataError(
                    f"a run from a frame: no column {' or '.join(map(repr, names))}; it has "
                    f"{', '.join(map(repr, rows.columns)) or 'none'}"
                )
            found[column] = rows[there[0]].tolist()
        queries, documents = ([str(value) for value in found[name]] for name in ("query", "document"))
        lists: dict[str, tuple[list[str], list[float]]] = {query: ([], []) for query in queries}
        for query, document, score in zip(queries, documents, found["score"], strict=True):
            lists[query][0].append(document)
            lists[query][1].append(score)
        return Run.from_arrays(lists, provenance=provenance)

    # -- new runs --------------------------------------------------------------------------------------

    def top(self, k: int) -> Run:
        """The best `k` documents of every query.

        Raises:
            ConfigError: `k` is negative.
        """
        if k < 0:
            raise ConfigError(f"k must not be negative, found {k}")
        return self._with({query: (ids[:k], scores[:k]) for query, (ids, scores) in self._rankings.items()})

    def max_passage(self, parent_of: Mapping[str, str]) -> Run:
        """Rank documents by their passages (maxP): the highest passage score is the document's (DAFT).

        Retrieve more passages than the documents wanted, since several may belong to one document.

        Args:
            parent_of: passage id to the id of its document.

        Raises:
            DataError: a passage is not in `parent_of`.
        """
        results: dict[str, dict[str, float]] = {}
        for query in self:
            best = results.setdefault(query, {})
            for passage, score in self[query]:
                if passage not in parent_of:
                    raise DataError(f"query {query!r}: no document is known for passage {passage!r}")
                best[parent_of[passage]] = max(score, best.get(parent_of[passage], score))
        return Run(results, provenance=self.provenance)

    def _with(self, rankings: dict[str, Ranking]) -> Run:
        run = Run({}, provenance=self.provenance)
        run._rankings = rankings
        return run


def _ranked(query: str, names: list[str], values: list[float]) -> Ranking:
    """Ids and scores in trec_eval's order, read-only."""
    try:
        scores = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"query {query!r}: a score is not a number ({error})") from error
    if not np.isfinite(scores).all():
        wrong = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise DataError(
            f"query {query!r}: document {names[wrong]!r} has score {scores[wrong]}; it must be finite"
        )
    ids = np.empty(len(names), dtype=object)
    ids[:] = names
    order = trec_order(names, scores)
    ids, scores = ids[order], scores[order]
    ids.flags.writeable = scores.flags.writeable = False
    return ids, scores


def trec_order(names: Sequence[str], scores: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Order rows by descending score; scores equal in single precision by descending name."""
    with np.errstate(over="ignore"):  # beyond single precision is infinite for trec_eval too
        keys = scores.astype(np.float32)
    order = np.argsort(-keys, kind="stable")
    ranked = keys[order]
    # Few scores are equal, so visit only the stretches that are.
    equal = np.concatenate([[False], ranked[1:] == ranked[:-1], [False]])
    starts, ends = np.flatnonzero(~equal[:-1] & equal[1:]), np.flatnonzero(equal[:-1] & ~equal[1:])
    for start, end in zip(starts, ends, strict=True):
        stretch = order[start : end + 1]
        order[start : end + 1] = sorted(stretch, key=names.__getitem__, reverse=True)
    return order
