"""`--codec auto`: the smallest codec that nearly keeps the ranking of a sample.

Some of the first documents are held back. Their titles become queries; for a document without a title, its
first sentence does. The other documents are stored in float32 and in every codec. A codec passes if, in every
vector set, its best documents overlap enough with those of float32, on average over the queries. The passing
codec with the fewest bytes is chosen.

Only words in several documents get a mean (see `counterpoint.index.means`). So codecs of few bits do better
in the whole collection than in a sample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import numpy as np
from jaxtyping import Float

from counterpoint.index.best import best_of
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS, CodecName
from counterpoint.index.kinds import KINDS
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NOTHING
from counterpoint.index.ours import is_of_index, made
from counterpoint.index.piece import Piece
from counterpoint.index.settings import IndexSettings, TextModel
from counterpoint.index.store import Asked, VectorStore
from counterpoint.types import Document, Ragged

__all__ = ["SAMPLE", "AutoCodec", "Measured", "choose_codec"]

OVERLAP = 0.85
"""The bound: the share of float32's ten best documents that a codec must have among its own ten best.

On seven collections used for the choice, 1 bit for the words of `minilm` keeps .79 (squad11-dev), .85, .89
and four times over .9. Only squad11-dev then loses more than .002 nDCG@10 (docs/design.md); its 2 bits keep
.90.
"""
DEPTH = 10
SAMPLE = 1024  # documents, in whole batches
QUERIES = 64  # documents of the sample held back as queries
FEWEST = 256  # a sample of fewer documents says too little about the collection
SAFE: CodecName = "int8"


@final
@dataclass(frozen=True)
class Measured:
    """How a codec did on the sample.

    Attributes:
        codec: its name.
        bytes: average per document, over all vector sets.
        overlap: by vector set, the share of the best documents that it keeps, averaged over queries.
    """

    codec: CodecName
    bytes: float
    overlap: Mapping[str, float]


@final
@dataclass(frozen=True)
class AutoCodec:
    """A choice of codec.

    Attributes:
        codec: the chosen one.
        documents: number in the sample, without those held back.
        queries: number of documents held back; 0 if nothing was compared, because the sample was too small or
            no vector is stored.
        bound: the smallest accepted overlap.
        measured: every codec, the one with the fewest bytes first.
    """

    codec: CodecName
    documents: int
    queries: int
    bound: float
    measured: tuple[Measured, ...] = ()


def choose_codec(
    documents: Sequence[Document], vectors: Mapping[str, Ragged], model: TextModel, settings: IndexSettings
) -> AutoCodec:
    """Choose by the first documents of a collection; deterministic for the same documents."""
    layouts: dict[CodecName, Mapping[str, SetLayout]] = {
        name: replace(settings, codec=name).layouts(model) for name in CODECS
    }
    coded = [name for name, layout in layouts[SAFE].items() if layout.kind != "static"]
    if len(documents) < FEWEST or not coded:
        return AutoCodec(SAFE, len(documents), 0, OVERLAP)
    held = np.arange(0, len(documents), -(-len(documents) // QUERIES))
    kept = np.setdiff1d(np.arange(len(documents)), held)
    asked = model.encode_query([_question(documents[int(at)]) for at in held])
    some = [documents[int(at)] for at in kept]
    sample = _Sample(some, {name: vectors[name].take(kept) for name in coded}, asked)
    truth, _ = sample.scores(layouts["float32"])
    measured = []
    for codec, sets in layouts.items():
        scores, size = sample.scores(sets)
        overlap = {name: _overlap(truth[name], scores[name]) for name in coded}
        measured.append(Measured(codec, round(size / len(some), 1), overlap))
    measured.sort(key=lambda one: one.bytes)
    chosen = next(one for one in measured if all(share >= OVERLAP for share in one.overlap.values()))
    return AutoCodec(chosen.codec, len(some), len(held), OVERLAP, tuple(measured))


def _question(document: Document) -> str:
    """The query made of a held-back document."""
    if title := document.title.strip():
        return title
    from counterpoint.data.sentences import sentences  # imports the readers of all formats

    first = next(iter(sentences(document.text)), None)
    return document.text if first is None else document.text[first.start : first.end]


def _overlap(truth: Float[np.ndarray, "q n"], scores: Float[np.ndarray, "q n"]) -> float:
    """The share of the best documents by `truth` that are also among the best by `scores`."""
    common = 0
    for wanted, found in zip(truth, scores, strict=True):
        best = [best_of(row, DEPTH, matching=False) for row in (wanted, found)]
        common += len(np.intersect1d(best[0], best[1]))
    return round(common / (DEPTH * len(truth)), 4)


@final
@dataclass(frozen=True)
class _Sample:
    documents: Sequence[Document]
    vectors: Mapping[str, Ragged]
    asked: Mapping[str, Ragged]

    def scores(self, layouts: Mapping[str, SetLayout]) -> tuple[dict[str, np.ndarray], int]:
        """By vector set, the scores of all documents in these layouts; and the total number of bytes."""
        found, size = {}, 0
        with TemporaryDirectory(prefix="counterpoint-") as temporary:
            for name in self.vectors:
                folder, layout = Path(temporary, name), layouts[name]
                folder.mkdir()
                rows, exact = self.asked[name], layout.kind == "exact"
                asked = [Asked(rows[i], rows.ids_of(i) if exact else None, exact) for i in range(len(rows))]
                found[name] = self._stored(folder, name, layout).all_scores(asked)
                size += sum(path.stat().st_size for path in made(folder) if is_of_index(path))
        return found, size

    def _stored(self, folder: Path, name: str, layout: SetLayout) -> VectorStore:
        """One set, written and opened as in an index."""
        writer = KINDS[layout.kind].write(folder, name, layout, NOTHING)
        try:
            writer.append(self.vectors[name], self.documents)
            writer.close()
        finally:
            writer.abandon()
        piece = Piece(CheckedFolder(folder), len(self.documents), layout)
        return KINDS[layout.kind].open(name, layout, [piece])
