"""`MaxSim`: late interaction.

Khattab and Zaharia 2020 (ColBERT): s(q, d) = Σ_i max_j q_i·d_j. Exact matching is that of COIL and
Uni-ColBERTer (Hofstätter et al. 2022): a similarity counts only if both rows belong to the same word. Idf is
HIL's (Kim et al. 2024): s(q, d) = Σ_i idf(q_i)·max_j q_i·d_j.
"""

from __future__ import annotations

from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from counterpoint.errors import NotFittedError, ShapeError
from counterpoint.score.scorer import Scorer, one_pair, vector_sets
from counterpoint.types import Explanation
from counterpoint.vectors import Representation, Vectors

__all__ = ["MaxSim"]

BLOCK = 2**25
"""Similarities held at a time: 128 MiB of float32."""
MATCHING = "exact matching"


@final
class MaxSim(Scorer):
    """The sum over query rows of the best similarity with a document row.

    An empty query or document scores 0. Among equal similarities the first row wins.

    Args:
        on: name of the vector set.
        exact: match only rows with the same id. Different ids have similarity 0 (not −∞), so a negative match
            counts only if every document row has the query row's id.
        floor0: raise a negative best similarity to 0. A search with exact matching always does.
        normalise: divide every row by its length first (cosine). A zero row stays zero.
        idf: power of the idf that multiplies a query row's match, like the search setting of that name. 0 for
            no idf. Set the values with `set_idf` or with a stage `Fit(on, what="idf")`.
    """

    sized_by_data = frozenset({"words_", "idf_"})
    words_: Int[Tensor, " w"]
    idf_: Float[Tensor, " w"]
    unseen_: Float[Tensor, ""]

    def __init__(
        self, on: str, exact: bool = False, floor0: bool = False, normalise: bool = False, idf: float = 0.0
    ):
        super().__init__()
        self.on, self.exact, self.floor0, self.normalise, self.idf = on, exact, floor0, normalise, idf

    def _allocate(self) -> None:
        if self.idf:
            self.register_buffer("words_", torch.tensor([-1]))
            self.register_buffer("idf_", torch.zeros(1))
            self.register_buffer("unseen_", torch.tensor(-1.0))  # not set yet: no idf is negative

    def set_idf(self, words: Int[Tensor, " w"], idf: Float[Tensor, " w"], unseen: float) -> None:
        """Set the idf of some ids, and that of all others (before the power is applied)."""
        order = words.argsort()
        self.words_ = words[order].to(self.words_.device)
        self.idf_ = idf[order].to(self.idf_)
        self.unseen_.fill_(unseen)

    def forward(self, q: Representation, d: Representation) -> Float[Tensor, "q d"]:
        """Every query against every document, in blocks of bounded memory."""
        return self._in_blocks(*vector_sets(q, d, self.on), BLOCK)

    def matches(self, q: Representation, d: Representation) -> Float[Tensor, "q tq d"]:
        """What each query row adds to the score of each document, 0 for padding."""
        return self._in_blocks(*vector_sets(q, d, self.on), BLOCK, rows=True)

    def explain(self, q: Representation, d: Representation) -> Explanation:
        """One leaf per query row: its best similarity, the matching document row and, if used, idf."""
        queries, documents = one_pair(q, d, self.on)
        score = self(q, d).item()
        best, rows = self._weighted(queries, documents)
        weights = self._idf_of(queries)[0].tolist() if self.idf else [None] * best.shape[1]
        matches = zip(best[0, :, 0].tolist(), rows[0, :, 0].tolist(), weights, strict=True)
        leaves = [
            Explanation(f"row {row}", value, rows=(row, None if match < 0 else match), idf=weight)
            for row, (value, match, weight) in enumerate(matches)
        ]
        return Explanation(f"MaxSim({self.on})", score, tuple(leaves))

    def _in_blocks(self, q: Vectors, d: Vectors, block: int, *, rows: bool = False) -> Tensor:
        """All scores (q, d), or with `rows` their summands (q, tq, d).

        At most `block` similarities are held at a time (or those of one pair, if more). With gradients and
        more than one block, blocks are computed again in the backward pass.
        """
        pair = max(1, q.mask.shape[1] * d.mask.shape[1])
        q_step = min(max(1, block // pair), max(1, len(q)))
        d_step = max(1, block // (pair * q_step))
        learning = torch.is_grad_enabled() and (q.values.requires_grad or d.values.requires_grad)
        again = learning and (q_step < len(q) or d_step < len(d))

        def make(some: Vectors, others: Vectors) -> Tensor:
            matches, _ = self._weighted(some, others)
            return matches if rows else matches.sum(1)

        def score(some: Vectors, others: Vectors) -> Tensor:
            if again:
                return checkpoint(make, some, others, use_reentrant=False, preserve_rng_state=False)
            return make(some, others)

        lines = [[score(some, others) for others in _split(d, d_step)] for some in _split(q, q_step)]
        return torch.cat([torch.cat(line, -1) for line in lines])

    def _weighted(self, q: Vectors, d: Vectors) -> tuple[Float[Tensor, "q tq d"], Int[Tensor, "q tq d"]]:
        best, rows = self._best(q, d)
        return (best * self._idf_of(q)[:, :, None] if self.idf else best), rows

    def _idf_of(self, q: Vectors) -> Float[Tensor, "q tq"]:
        if not self.is_set_up or self.unseen_ < 0:
            raise NotFittedError(
                f"MaxSim({self.on}): the document frequencies of the words are unknown; count them with a "
                f'stage Fit("{self.on}", what="idf") before, or pass them to set_idf'
            )
        ids = _ids(q, "idf")
        at = torch.searchsorted(self.words_, ids).clamp(max=len(self.words_) - 1)
        found = self.idf_[at].where(self.words_[at] == ids, self.unseen_)
        return found**self.idf

    def _best(self, q: Vectors, d: Vectors) -> tuple[Float[Tensor, "q tq d"], Int[Tensor, "q tq d"]]:
        """Best similarity of every query row in every document, and the matching row (−1 for none)."""
        if d.mask.shape[1] == 0:  # a maximum over an empty dimension fails
            d = _one_padding_row(d)
        # Autocast would reduce the product to half precision.
        with torch.autocast(q.values.device.type, enabled=False):
            left, right = self._rows(q), self._rows(d)
            dtype = torch.promote_types(left.dtype, right.dtype)
            similarity = torch.einsum("atn,bsn->atbs", left.to(dtype), right.to(dtype))
        if self.exact:
            similarity.masked_fill_(_ids(q, MATCHING)[:, :, None, None] != _ids(d, MATCHING), 0)
        # Padding is excluded before the maximum. Texts without real rows get 0 after it.
        best, rows = similarity.masked_fill_(~d.mask, -torch.inf).max(-1)
        unmatched = ~(q.mask[:, :, None] & d.mask.any(1))
        best = best.masked_fill(unmatched, 0)
        if self.exact:
            found = _ids(d, MATCHING)[torch.arange(len(d), device=rows.device), rows]
            unmatched = unmatched | (found != _ids(q, MATCHING)[:, :, None])
        if self.floor0:
            unmatched = unmatched | (best < 0)
            best = best.clamp(min=0)
        return best, rows.masked_fill(unmatched, -1)

    def _rows(self, vectors: Vectors) -> Float[Tensor, "b t d"]:
        """Rows in at least float32. Padding, which may hold anything, even NaN, becomes zero."""
        rows = vectors.values.masked_fill(~vectors.mask[:, :, None], 0)
        rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
        return functional.normalize(rows, dim=-1) if self.normalise else rows


def _ids(vectors: Vectors, purpose: str) -> Int[Tensor, "b t"]:
    if vectors.ids is None:
        raise ShapeError(f"{purpose} needs vectors with ids, and one side has none; omit it")
    return vectors.ids


def _split(vectors: Vectors, step: int) -> list[Vectors]:
    """Consecutive groups of at most `step` texts. One empty group if there is no text."""
    values, masks = vectors.values.split(step), vectors.mask.split(step)
    ids = [None] * len(masks) if vectors.ids is None else vectors.ids.split(step)
    return [Vectors(*group) for group in zip(values, masks, ids, strict=True)]


def _one_padding_row(vectors: Vectors) -> Vectors:
    ids = None if vectors.ids is None else functional.pad(vectors.ids, (0, 1))
    return Vectors(functional.pad(vectors.values, (0, 0, 0, 1)), functional.pad(vectors.mask, (0, 1)), ids)
