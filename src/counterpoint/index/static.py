"""Static vector sets: a row is decided by its id, so documents keep ids and the vectors stay with the model.

    <set>.ranks.npy   each document's distinct ids as places in <set>.vocabulary.npy, rising

Every occurrence of an id has the same vector (L of Hybrid Isotropy Learning, Kim et al. 2024, section 3.3):
an id that stands twice in a document changes no maximum, and similarities are computed once for each distinct
id of the collection. Who can encode a query has the table (`TextModel.table`), so none is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Float, Int, Shaped

from counterpoint.errors import ArtifactError, ShapeError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.types import Ragged, rows_of_sets

__all__ = ["StaticIds", "StaticSet", "write_ranks"]

CHUNK = 2**22  # ids looked up at a time; bounds the memory of a build
BLOCK = 2**16  # documents whose postings lie together; their numbers fit two bytes, their maxima a cache
VISITS = 4  # postings followed for each document and query row before what is left is looked up forward


def write_ranks(folder: Path, name: str) -> None:
    """Replace a set's complete ids by their places in its vocabulary, in two bytes where these fit."""
    ids = open_npy(folder / f"{name}.ids.npy")
    vocabulary = np.asarray(open_npy(folder / f"{name}.vocabulary.npy"))
    dtype = np.uint16 if len(vocabulary) <= 2**16 else np.uint32
    with NpyWriter(folder / f"{name}.ranks.npy", dtype) as ranks:
        for at in range(0, len(ids), CHUNK):
            ranks.append(np.searchsorted(vocabulary, ids[at : at + CHUNK]).astype(dtype))
    (folder / f"{name}.ids.npy").unlink()


@final
class StaticIds:
    """The distinct ids of the documents of a segment in one static set, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, offsets: Int[np.ndarray, " b1"]):
        self.offsets = offsets
        self._vocabulary = files.array(f"{name}.vocabulary.npy")
        self._frequencies = files.array(f"{name}.frequencies.npy")
        self.ranks = files.array(f"{name}.ranks.npy")
        if self.offsets[-1] != len(self.ranks):
            raise ArtifactError(f"the ids of {name!r} do not fit its lengths", path=files.folder)

    @property
    def vocabulary(self) -> Int[np.ndarray, " v"]:
        """The distinct ids, rising."""
        return self._vocabulary.all()

    @property
    def frequencies(self) -> Int[np.ndarray, " v"]:
        """In how many documents each of them stands."""
        return self._frequencies.all()

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The inverted index, made when it is first asked for: two bytes an id in memory, none on disk."""
        ends = [*range(0, len(self.offsets) - 1, BLOCK), len(self.offsets) - 1]
        return tuple(
            Block(
                self.ranks[self.offsets[start] : self.offsets[end]],
                self.offsets[start : end + 1] - self.offsets[start],
                len(self._vocabulary),
            )
            for start, end in zip(ends, ends[1:], strict=False)
        )


@final
class Block:
    """The postings of some documents: for each id, the documents that have it.

    Args:
        ranks: of their ids, one document after the other.
        offsets: where each document's begin.
        size: number of ids in the vocabulary.
    """

    def __init__(self, ranks: Int[np.ndarray, " n"], offsets: Int[np.ndarray, " b1"], size: int):
        self.ranks, self.offsets = ranks, offsets
        self.frequencies = np.bincount(ranks, minlength=size)
        self._starts = np.cumsum(self.frequencies) - self.frequencies
        owners = np.repeat(np.arange(len(offsets) - 1, dtype=np.uint16), np.diff(offsets))
        self._postings = owners[np.argsort(ranks, kind="stable")]

    def best(
        self, similarity: Float[np.ndarray, " v"], visited: Int[np.ndarray, " k"], left: float | None
    ) -> Float[np.ndarray, " b"]:
        """The highest similarity of each document's ids; −inf for a document without any.

        Args:
            similarity: of each id of the vocabulary.
            visited: the ids that are highest in it; their postings are followed.
            left: the similarity of all other ids where they have only one; None to look them up.
        """
        best = np.full(len(self.offsets) - 1, -np.inf, np.float32)
        counts = self.frequencies[visited]
        ends = np.cumsum(counts)
        where = np.arange(counts.sum()) + np.repeat(self._starts[visited] - (ends - counts), counts)
        np.maximum.at(best, self._postings[where], np.repeat(similarity[visited], counts))
        missed = np.flatnonzero(np.isneginf(best) & (np.diff(self.offsets) > 0))
        best[missed] = self._looked_up(similarity, missed) if left is None else left
        return best

    def _looked_up(
        self, similarity: Float[np.ndarray, " v"], documents: Int[np.ndarray, " m"]
    ) -> Float[np.ndarray, " m"]:
        where, offsets = rows_of_sets(self.offsets, documents)
        if not len(documents):
            return np.zeros(0, np.float32)
        return np.maximum.reduceat(similarity[self.ranks[where]], offsets[:-1])


@final
class StaticSet:
    """A static set of an index with its table.

    Args:
        parts: the documents' ids, by segment.
        table: the vector of every id.

    Raises:
        ShapeError: an id that the table does not have.
    """

    def __init__(self, parts: Sequence[StaticIds], table: Float[np.ndarray, "v d"]):
        highest = max((int(part.vocabulary[-1]) for part in parts if len(part.vocabulary)), default=-1)
        if highest >= len(table):
            raise ShapeError(
                f"the documents have the id {highest}, the model's table ends at {len(table) - 1}"
            )
        self._parts = parts
        self._rows = [table[part.vocabulary] for part in parts]
        self._starts = np.cumsum([0] + [len(part.offsets) - 1 for part in parts])

    def take(self, positions: Int[np.ndarray, " k"]) -> Ragged:
        """Some documents' vectors: a row for each distinct id, in rising order of ids."""
        found: list[Ragged] = []
        owners = np.searchsorted(self._starts, positions, side="right") - 1
        for position, i in zip(np.asarray(positions).tolist(), owners.tolist(), strict=True):
            part, document = self._parts[i], position - int(self._starts[i])
            ranks = part.ranks[part.offsets[document] : part.offsets[document + 1]]
            ids = part.vocabulary[ranks].astype(np.int64)
            found.append(Ragged(self._rows[i][ranks], np.array([0, len(ranks)]), ids))
        return Ragged.concatenate(found)

    def all_scores(
        self, query: Float[np.ndarray, "m d"], ids: Int[np.ndarray, " m"] | None = None, floor: bool = False
    ) -> Float[np.ndarray, " n"]:
        """MaxSim of a query with every document, exactly, from the inverted index.

        For each query row the ids are taken in falling order of similarity and their postings followed. A
        document that has been met has its maximum. Those that few frequent ids leave over are looked up by
        their own ids, unless all that is left has one similarity (0, where matches are exact or floored).

        Bit for bit the maxima over one product of table and query, summed in the order of its rows. A
        product with each document's own vectors agrees up to the rounding of BLAS, which depends on shapes.

        Args:
            query: its rows.
            ids: as for `counterpoint.index.kernels.maxsim_scores`.
            floor: as there.
        """
        scores = []
        for part, rows in zip(self._parts, self._rows, strict=True):
            similarity = _similarity(query, rows, part.vocabulary, ids, floor)
            plans = [_visits(row, part) for row in similarity]
            for block in part.blocks:
                best = [block.best(row, *plan) for row, plan in zip(similarity, plans, strict=True)]
                scores.append(_summed(best, np.diff(block.offsets)))
        return np.concatenate(scores)

    def scores(
        self,
        query: Float[np.ndarray, "m d"],
        positions: Int[np.ndarray, " k"],
        ids: Int[np.ndarray, " m"] | None = None,
        floor: bool = False,
    ) -> Float[np.ndarray, " k"]:
        """MaxSim of a query with some documents, from their ids; the very numbers of `all_scores`."""
        scores = np.zeros(len(positions), np.float32)
        owners = np.searchsorted(self._starts, positions, side="right") - 1
        for i, part in enumerate(self._parts):
            mine = np.flatnonzero(owners == i)
            similarity = _similarity(query, self._rows[i], part.vocabulary, ids, floor)
            where, offsets = rows_of_sets(part.offsets, positions[mine] - self._starts[i])
            filled = np.flatnonzero(np.diff(offsets) > 0)  # reduceat needs strictly increasing starts
            if len(filled):
                found = similarity[:, part.ranks[where]]
                best = np.maximum.reduceat(found, offsets[:-1][filled], axis=1)
                scores[mine[filled]] = _summed(list(best), np.ones(len(filled)))
        return scores


def _similarity(
    query: Float[np.ndarray, "m d"],
    rows: Float[np.ndarray, "v d"],
    vocabulary: Int[np.ndarray, " v"],
    ids: Int[np.ndarray, " m"] | None,
    floor: bool,
) -> Float[np.ndarray, "m v"]:
    """Inner products of all query rows with all ids' vectors; 0 where `ids` say that they may not match."""
    if query.shape[1] != rows.shape[1]:
        raise ShapeError(f"query vectors of {query.shape[1]} dimensions, a table of {rows.shape[1]}")
    similarity = (rows @ query.T).T.copy()
    if ids is not None:
        similarity[np.asarray(vocabulary) != ids[:, None]] = 0
    return np.maximum(similarity, 0) if floor else similarity


def _visits(
    similarity: Float[np.ndarray, " v"], part: StaticIds
) -> tuple[Int[np.ndarray, " k"], float | None]:
    """The ids whose postings are followed, and the similarity of the others where they have only one."""
    if not len(similarity):
        return np.zeros(0, np.int64), 0.0
    order = np.argsort(-similarity)
    followed = np.cumsum(part.frequencies[order], dtype=np.int64)
    enough = int(np.searchsorted(followed, VISITS * (len(part.offsets) - 1))) + 1
    lowest = float(similarity[order[-1]])
    above = int(np.count_nonzero(similarity > lowest))
    return order[: min(enough, above)], lowest if above <= enough else None


def _summed(
    best: Sequence[Float[np.ndarray, " b"]], filled: Shaped[np.ndarray, " b"]
) -> Float[np.ndarray, " b"]:
    """The sum over query rows, one after the other whatever the number of documents; 0 for an empty one.

    numpy's own sum takes another order for a single column than for many.
    """
    total = np.zeros(len(filled), np.float32)
    for row in best:
        total += row
    return np.where(filled > 0, total, np.float32(0))
