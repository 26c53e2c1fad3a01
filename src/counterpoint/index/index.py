"""`Index`: a committed index, open for reading."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from jaxtyping import Float, Int

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index.accounts import account_of
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kernels import dot_scores, idf_of, maxsim_scores, maxsim_table
from counterpoint.index.lexical import Lexical, LexicalSettings
from counterpoint.index.manifest import Manifest
from counterpoint.index.segment import Segment
from counterpoint.index.static import StaticSet
from counterpoint.index.store import SetLayout
from counterpoint.types import Document, Ragged

if TYPE_CHECKING:
    from counterpoint.index.settings import TextModel

__all__ = ["Index"]

OPENINGS = 10  # of an index that is replaced again each time
BLOCK = 2**22  # bytes of decoded vectors held at a time when all documents are scored: a cache's size


@final
class Index:
    """Documents, their vectors and their postings, by position and by id.

    Positions run from 0 over all segments. Opening maps files and reads no vectors. It checks the manifest,
    sizes and headers. Everything else is checked before its first use (see `counterpoint.index.checked`).

    An open index is not affected by a rebuild: it keeps answering from the files that it opened. Windows does
    not delete open files; the next build removes them.

    Args:
        folder: an index built by `build_index`.

    Raises:
        ArtifactError: no index there, an unfinished or damaged one, or another version's. Every other method
            raises it, too, where what it reads is damaged.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self.manifest, self.layouts, self.segments, self._lexical_files = _opened(self.folder)
        self._starts = np.cumsum([0] + [segment.documents for segment in self.segments])
        self._model: TextModel | None = None
        self._static_cache: dict[str, StaticSet] = {}

    def __len__(self) -> int:
        """Number of documents (passages, where documents were cut)."""
        return int(self._starts[-1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the databases."""
        for segment in self.segments:
            segment.close()

    def bound(self, model: TextModel) -> Index:
        """The same index with the model that it was built with, which has the vectors of static sets.

        It shares all files with this one, so closing either closes both.

        Raises:
            ArtifactError: another model.
        """
        self.check_model(model.fingerprint())
        bound = copy.copy(self)
        bound._model, bound._static_cache = model, {}
        return bound

    # -- documents -------------------------------------------------------------------------------------

    def document(self, position: int) -> Document:
        """The document at a position."""
        segment, row = self._locate(position)
        return segment.document(row)

    def position_of(self, document_id: str) -> int | None:
        """The position of a document, or None."""
        for segment, start in zip(self.segments, self._starts, strict=False):
            row = segment.row_of(document_id)
            if row is not None:
                return int(start) + row
        return None

    def name_of(self, position: int) -> str:
        """The id of the document at a position."""
        segment, row = self._locate(position)
        return segment.name_of(row)

    @cached_property
    def parents(self) -> dict[str, str]:
        """For passages: the document that each was cut from."""
        return {name: parent for segment in self.segments for name, parent in segment.passages()}

    # -- parts of a score ------------------------------------------------------------------------------

    @cached_property
    def lexical(self) -> Lexical | None:
        """The BM25 part, if the index has one."""
        if self._lexical_files is None:
            return None
        return Lexical(self._lexical_files, LexicalSettings.from_dict(self.manifest.settings["lexical"]))

    def take(self, name: str, positions: Int[np.ndarray, " k"]) -> Ragged:
        """One vector set of some documents, decoded to float32.

        Of a static set a document has one row for each distinct id, in rising order of ids.

        Raises:
            ConfigError: the set is static, and this index is not bound to its model.
        """
        if self.layouts[name].static:
            return self._static_set(name).take(positions)
        if len(self.segments) == 1:
            return self.segments[0].stores[name].take(positions)
        owner = np.searchsorted(self._starts, positions, side="right") - 1
        parts, order = [], []
        for i, segment in enumerate(self.segments):
            where = np.flatnonzero(owner == i)
            parts.append(segment.stores[name].take(positions[where] - self._starts[i]))
            order.append(where)
        return Ragged.concatenate(parts).take(np.argsort(np.concatenate(order)))

    def mean_rows(self, name: str, positions: Int[np.ndarray, " k"]) -> float:
        """How many vectors of a set the documents at some positions have on average; 0 without documents."""
        return float(self._rows(name)[positions].mean()) if len(positions) else 0.0

    def pooled_scores(self, name: str, queries: Float[np.ndarray, "q d"]) -> Float[np.ndarray, "q n"]:
        """Inner product of queries with a pooled set, for every document."""
        return np.concatenate([dot_scores(queries, block.values) for block in self._blocks(name)], axis=1)

    def nearest(self, name: str, queries: Float[np.ndarray, "q d"], k: int) -> list[Int[np.ndarray, " c"]]:
        """For each query about the `k` documents of highest inner product with a pooled set, from its graph.

        In no order, and up to `k` from each segment.

        Raises:
            ArtifactError: the index was built without a graph.
            MissingExtraError: faiss is not installed.
        """
        if self.layouts[name].ann is None:
            raise ArtifactError(f"there is no graph of {name!r}", path=self.folder)
        found = [
            [rows + start for rows in segment.graphs[name].nearest(queries, k)]
            for segment, start in zip(self.segments, self._starts, strict=False)
        ]
        return [np.concatenate(of_query) for of_query in zip(*found, strict=True)]

    def maxsim_scores(
        self,
        name: str,
        query: Float[np.ndarray, "m d"],
        positions: Int[np.ndarray, " k"],
        ids: Int[np.ndarray, " m"] | None = None,
        floor: bool = False,
    ) -> Float[np.ndarray, " k"]:
        """MaxSim of a query with a set of some documents; with a pooled set, its inner product.

        `ids` and `floor` are those of `counterpoint.index.kernels.maxsim_scores`.
        """
        if self.layouts[name].static:
            return self._static_set(name).scores(query, positions, ids, floor)
        return maxsim_scores(query, self.take(name, positions), ids, floor)

    def all_maxsim_scores(
        self,
        name: str,
        queries: Sequence[Float[np.ndarray, "m d"]],
        ids: Sequence[Int[np.ndarray, " m"]] | None = None,
        floor: bool = False,
    ) -> Float[np.ndarray, "q n"]:
        """MaxSim of queries with a multi-vector set, for every document; vectors are decoded once for all.

        A static set is scored from its ids and the model's table.
        """
        if self.layouts[name].static:
            static = self._static_set(name)
            of_rows = [None] * len(queries) if ids is None else ids
            return np.stack([static.all_scores(*pair, floor) for pair in zip(queries, of_rows, strict=True)])
        asked = Ragged.from_list(queries, ids, dim=queries[0].shape[1])
        exact = ids is not None
        blocks = [maxsim_table(asked, block, exact=exact, floor=floor) for block in self._blocks(name)]
        return np.concatenate(blocks, axis=1)

    def inverted_scores(
        self, name: str, query: Float[np.ndarray, "m d"], ids: Int[np.ndarray, " m"]
    ) -> Float[np.ndarray, " n"]:
        """MaxSim with exact matches and a floor of 0, for every document, from the set's inverted index.

        Raises:
            ArtifactError: the index was built without one.
        """
        if not self.layouts[name].inverted:
            raise ArtifactError(f"there is no inverted index of {name!r}", path=self.folder)
        return np.concatenate([segment.postings[name].scores(query, ids) for segment in self.segments])

    def idf(self, name: str, ids: Int[np.ndarray, " m"]) -> Float[np.ndarray, " m"]:
        """ln(1 + (N - df + ½) / (df + ½)) of ids over this index's documents; df = 0 for an unseen one."""
        known, counts = self._frequencies(name)
        at = np.minimum(np.searchsorted(known, ids), max(len(known) - 1, 0))
        df = (
            np.where(known[at] == ids, counts[at], 0).astype(np.float64) if len(known) else np.zeros(len(ids))
        )
        return idf_of(df, len(self))

    def distinct_ids(self, name: str) -> int:
        """How many different ids the vectors of a set have."""
        return len(self._frequencies(name)[0])

    def _rows(self, name: str) -> Int[np.ndarray, " n"]:
        """How many vectors of a set each document has."""
        if name not in self._row_cache:
            kind = "static" if self.layouts[name].static else "stores"
            offsets = [getattr(segment, kind)[name].offsets for segment in self.segments]
            self._row_cache[name] = np.concatenate([np.diff(of_segment) for of_segment in offsets])
        return self._row_cache[name]

    @cached_property
    def _row_cache(self) -> dict[str, Int[np.ndarray, " n"]]:
        return {}

    def _frequencies(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        if name not in self._frequency_cache:
            tables = [segment.frequencies(name) for segment in self.segments]
            ids = np.concatenate([ids for ids, _ in tables])
            known, where = np.unique(ids, return_inverse=True)
            counts = np.bincount(where, weights=np.concatenate([n for _, n in tables]), minlength=len(known))
            self._frequency_cache[name] = (known, counts)
        return self._frequency_cache[name]

    @cached_property
    def _frequency_cache(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {}

    def _static_set(self, name: str) -> StaticSet:
        if self._model is None:
            raise ConfigError(
                f"the vectors of the static set {name!r} are not in the index, but its model's; "
                "use Index.bound(model)"
            )
        if name not in self._static_cache:
            parts = [segment.static[name] for segment in self.segments]
            self._static_cache[name] = StaticSet(parts, self._model.table(name))
        return self._static_cache[name]

    def _blocks(self, name: str) -> Iterator[Ragged]:
        """The whole set, as many documents at a time as fit in `BLOCK` decoded bytes (one at least)."""
        rows = max(1, BLOCK // (4 * self.layouts[name].dim))
        for segment in self.segments:
            offsets = segment.stores[name].offsets
            start = 0
            while start < segment.documents:
                end = int(np.searchsorted(offsets, offsets[start] + rows, side="right")) - 1
                end = min(max(end, start + 1), segment.documents)
                yield segment.stores[name].rows(start, end)
                start = end

    def _locate(self, position: int) -> tuple[Segment, int]:
        if not 0 <= position < len(self):
            raise DataError(f"there is no document at position {position}; the index has {len(self)}")
        i = int(np.searchsorted(self._starts, position, side="right")) - 1
        return self.segments[i], position - int(self._starts[i])

    # -- accounts --------------------------------------------------------------------------------------

    def info(self) -> dict[str, Any]:
        """Sizes by purpose and by set, and over the plain text; see `counterpoint.index.accounts`."""
        return account_of(self)

    def check_model(self, fingerprint: str) -> None:
        """Refuse a model that is not the one this index was built with.

        Raises:
            ArtifactError: saying both fingerprints.
        """
        built_with = (self.manifest.model or {}).get("fingerprint")
        if fingerprint != built_with:
            raise ArtifactError(
                f"built with the model {str(built_with)[:12]}, this one is {fingerprint[:12]}; "
                "search with the model that it was built with, or build it again with this one",
                path=self.folder,
            )


Opened = tuple[Manifest, Mapping[str, SetLayout], tuple[Segment, ...], CheckedFolder | None]


def _opened(folder: Path) -> Opened:
    """What an index is made of, all of it open; tried again where a rebuild replaced it meanwhile."""
    left = OPENINGS
    while True:
        manifest, left = Manifest.read(folder), left - 1
        try:
            return _open(folder, manifest)
        except ArtifactError:
            if not left or Manifest.read(folder) == manifest:
                raise


def _open(folder: Path, manifest: Manifest) -> Opened:
    layouts = {name: SetLayout(**x) for name, x in manifest.settings["layouts"].items()}

    def files(name: str) -> CheckedFolder:
        listed = {
            path.removeprefix(f"{name}/"): entry
            for path, entry in manifest.files.items()
            if path.startswith(f"{name}/")
        }
        return CheckedFolder(folder / name, listed)

    lexical = None if manifest.lexical is None else files(manifest.lexical)
    segments = tuple(
        Segment(files(f"segments/{entry.name}"), layouts, entry.documents) for entry in manifest.segments
    )
    return manifest, layouts, segments, lexical
