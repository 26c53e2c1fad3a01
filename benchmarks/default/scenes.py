"""What a small part learns from and is measured on: queries, their candidates, and the parts of their scores.

A scene is made from an index of a training collection and its model. Every figure of step 0 is that of the
untrained default: candidates, BM25's scores, weights and idf are the engine's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, cast, final

import numpy as np
import torch
from benchmarks.default.states import Drawn
from torch import Tensor
from torch.nn import functional

from counterpoint.index import Index
from counterpoint.search import Searcher, SearchSettings
from counterpoint.search.adapt import adapted
from counterpoint.search.feedback import likeness
from counterpoint.types import Ragged

PARTS = ("lexical", "mean", "words")
HYBRID, ALONE = 30, 15  # best documents of a query that are kept: of the hybrid, and of each kind of vectors
NEAR = 2  # most similar words of a document that are kept for each word of the query
FEEDBACK, FED = 0.1, 5
DISCOUNTS = torch.from_numpy(1 / np.log2(np.arange(10) + 2)).float()
NOTHING = -9.0  # the score of no candidate


@final
@dataclass
class Scene:
    """A collection's queries with their candidates, padded to the most words and candidates.

    Attributes:
        words: (q, t, d), vectors of the queries' words after the map.
        importance: (q, t), √idf of each; 0 for padding.
        mean: (q, m), pooled vectors of the queries.
        documents: (q, c), number of each candidate among `pooled`.
        rows: (n, d), vectors of the documents' words; the last is zero.
        near: (q, c, t, k), rows of the most similar words of each candidate.
        pooled: (documents, m), pooled vectors.
        lexical: (q, c), BM25's scores over their ceilings.
        known: (q, c), True for a candidate of the hybrid; False for one of the words alone, or padding.
        real: (q, c), True for a candidate of either.
        weights: (q, parts), the hybrid's weights.
        gains: (q, c), grades.
        ideal: (q,), the best DCG@10 that there is.
    """

    words: Tensor
    importance: Tensor
    mean: Tensor
    documents: Tensor
    rows: Tensor
    near: Tensor
    pooled: Tensor
    lexical: Tensor
    known: Tensor
    real: Tensor
    weights: Tensor
    gains: Tensor
    ideal: Tensor

    def __len__(self) -> int:
        """Number of queries."""
        return len(self.ideal)

    def similar(self, queries: Tensor, candidates: Tensor, words: Tensor, most: int | None = None) -> Tensor:
        """How similar each word of some queries is to its best match in some candidates (b, n, t).

        Args:
            queries: (b,), which.
            candidates: (b, n), which of each.
            words: (b, t, d), the vectors of the queries' words.
            most: how many of the rows in `near` are looked at; None for all.
        """
        longest = max(1, int((self.importance[queries] > 0).sum(1).max()))
        near = self.near[queries[:, None], candidates, :longest, :most].long()
        rows = self.rows[near].float()
        best = torch.einsum("btd,bntkd->bntk", words[:, :longest], rows).amax(-1)
        return functional.pad(best, (0, words.shape[1] - longest))

    def summed(self, queries: Tensor, similar: Tensor, scale: Tensor | None) -> Tensor:
        """Scores by words over their ceilings (b, n), from the similarities (b, n, t).

        `scale` holds factors of the words' importance (b, t); None for 1.
        """
        importance = self.importance[queries]
        importance = importance if scale is None else importance * scale
        return (similar * importance[:, None]).sum(-1) / importance.sum(-1)[:, None].clamp(min=1e-9)

    def cosine(self, queries: Tensor, candidates: Tensor, mean: Tensor) -> Tensor:
        """Cosines of some candidates of some queries (b, n), by the queries' pooled vectors (b, m)."""
        return torch.einsum("bm,bnm->bn", mean, self.pooled[self.documents[queries[:, None], candidates]])

    def values(self, scores: Tensor, known: Tensor) -> np.ndarray:
        """nDCG@10 of every query by the scores (q, c) of its candidates."""
        order = scores.masked_fill(~known, NOTHING).argsort(dim=1, descending=True, stable=True)[:, :10]
        gains = self.gains.gather(1, order) * known.gather(1, order)
        return (gains @ DISCOUNTS[: gains.shape[1]] / self.ideal).numpy()

    def fed(self, scores: Tensor) -> Tensor:
        """The hybrid's scores with feedback, as the engine adds it."""
        found = torch.full_like(scores, NOTHING)
        for at, known in enumerate(self.known):
            own = scores[at, known].double().numpy()
            vectors = self.pooled[self.documents[at, known]].numpy()
            added = own + FEEDBACK * likeness([vectors], own, FED).scores
            found[at, known] = torch.from_numpy(added).float()
        return found


def scene_of(path: Path, index: Path, model: Any, drawn: Drawn) -> Scene:
    """A scene, from its file or from an index."""
    if not path.is_file():
        made = path.with_suffix(".partial")
        scene = _made(index, model, drawn)
        torch.save({each.name: getattr(scene, each.name) for each in fields(Scene)}, made)
        made.rename(path)
    return Scene(**torch.load(path, weights_only=True))


def _made(folder: Path, model: Any, drawn: Drawn) -> Scene:
    with Index(folder) as index:
        settings = SearchSettings.for_index(index)
        searcher = Searcher(index, model, settings)
        runs = [searcher.run(drawn.queries, HYBRID)]
        runs += [searcher.run(drawn.queries, ALONE, workflow=each) for each in ("words", "dense")]
        found = dict(searcher.candidates(drawn.queries, HYBRID))
        every = np.arange(len(index))
        names = index.names_of(every)
        packed = cast(Ragged, index.take("words", every))
        pooled = torch.from_numpy(index.take("mean", every).values.astype(np.float32))
        asked = model.encode_query(list(drawn.queries.values()))
        idf = index.idf("words", asked["words"].ids)
    place = {name: at for at, name in enumerate(names)}
    chosen = [
        list(dict.fromkeys(place[name] for run in runs for name, _ in (run[query] if query in run else ())))
        for query in drawn.queries
    ]
    width, length = max(map(len, chosen)), int(asked["words"].lengths.max())
    shape, dim = (len(chosen), width), packed.dim
    words, importance = torch.zeros(len(chosen), length, dim), torch.zeros(len(chosen), length)
    documents, real = torch.zeros(shape, dtype=torch.long), torch.zeros(shape, dtype=torch.bool)
    lexical, known = torch.zeros(shape), torch.zeros(shape, dtype=torch.bool)
    gains, ideal, weights = torch.zeros(shape), torch.zeros(len(chosen)), torch.zeros(len(chosen), len(PARTS))
    rows = np.concatenate([packed.values, np.zeros((1, dim), np.float32)]).astype(np.float16)
    near = torch.full((*shape, length, NEAR), len(rows) - 1, dtype=torch.int32)
    for at, (query, some) in enumerate(zip(drawn.queries, chosen, strict=True)):
        own, count = asked["words"][at], len(some)
        start, end = asked["words"].offsets[at : at + 2]
        words[at, : len(own)] = torch.from_numpy(own)
        importance[at, : len(own)] = torch.from_numpy(idf[start:end]) ** settings.idf["words"]
        documents[at, :count], real[at, :count] = torch.tensor(some), True
        column = dict(zip(found[query].positions.tolist(), found[query].table, strict=True))
        known[at, :count] = torch.tensor([each in column for each in some])
        lexical[at, :count] = torch.tensor([column[each][0] if each in column else 0.0 for each in some])
        used = adapted(settings.weights, settings.adapt, found[query].evidence)
        weights[at] = torch.tensor([used[part] for part in PARTS])
        grades = {name: max(0, grade) for name, grade in drawn.qrels[query].items()}
        gains[at, :count] = torch.tensor([float(grades.get(names[each], 0)) for each in some])
        best = torch.tensor(sorted(grades.values(), reverse=True)[:10], dtype=torch.float)
        ideal[at] = best @ DISCOUNTS[: len(best)]
        near[at, :count, : len(own)] = _nearest(own, packed, some, len(rows) - 1)
    mean = torch.from_numpy(asked["mean"].values.astype(np.float32))
    return Scene(
        words, importance, mean, documents, torch.from_numpy(rows), near, pooled, lexical, known, real,
        weights, gains, ideal,
    )  # fmt: skip


def _nearest(own: np.ndarray, packed: Ragged, some: list[int], nothing: int) -> Tensor:
    """For each document and each word of the query, the rows of the document that are most similar."""
    found = np.full((len(some), len(own), NEAR), nothing, np.int32)
    for at, document in enumerate(some):
        start, end = packed.offsets[document : document + 2]
        if start == end:
            continue
        similar = own @ packed.values[start:end].T
        order = np.argsort(-similar, axis=1)[:, :NEAR]
        found[at, :, : order.shape[1]] = start + order
        found[at, :, order.shape[1] :] = start + order[:, :1]
    return torch.from_numpy(found)


def weighed(scene: Scene, queries: Tensor, columns: Mapping[str, Tensor]) -> Tensor:
    """The hybrid's scores without feedback, from its parts' scores (b, n)."""
    weights = scene.weights[queries]
    return sum((weights[:, at, None] * columns[part] for at, part in enumerate(PARTS)), torch.zeros(()))
