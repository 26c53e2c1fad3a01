"""Input-level orthogonality: hide some words that a document shares with its query, in training only.

Lee et al. 2023, "On Complementarity Objectives for Hybrid Retrieval", equation 10. The model need not learn
what BM25 finds. Without the shared words it must use the rest of the document. The equation removes tokens,
the paper's text replaces them by [MASK]. A stage chooses one of the two.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, TypeVar, final

import numpy as np
from jaxtyping import Int

from counterpoint.encode import Kind, Tokenizer
from counterpoint.encode.interactive import PairRow
from counterpoint.encode.tokens import Row
from counterpoint.errors import ConfigError
from counterpoint.learn.batches import Batch, own_places
from counterpoint.learn.gradient_cache import Alter
from counterpoint.learn.seeds import seed_of

__all__ = ["NO_MASK", "MatchMasks", "exact_matches"]

NO_MASK = (
    "mask_matches replaces matches by a mask token, and this vocabulary has none; remove matches with "
    "hide='drop', or use a backbone that was trained with a mask token, such as BERT"
)

Maskable = TypeVar("Maskable", Row, PairRow)


def exact_matches(
    query: Collection[int], document: Int[np.ndarray, " t"], special: Collection[int]
) -> Int[np.ndarray, " n"]:
    """X_EM: positions of a document's word-pieces that the query contains, too, without special tokens.

    All arguments are vocabulary ids.
    """
    return np.flatnonzero(np.isin(document, sorted({*query} - {*special})))


@final
class MatchMasks:
    """Draws which exact matches to hide, each with the same probability.

    A draw depends on the seed, the number of the batch, the query's position in it and the document's id.

    Args:
        tokenizer: the documents' tokenizer. Queries are compared by its word-pieces, without prompts and
            markers.
        share: the probability.
        seed: first parts of the seed of every draw.
        hide: "mask" replaces a match by a mask token, "drop" removes it from the row.

    Raises:
        ConfigError: a mask token is needed and the vocabulary has none.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        share: float,
        seed: Sequence[object],
        hide: Literal["mask", "drop"] = "mask",
    ):
        if hide == "mask" and tokenizer.mask_id is None:
            raise ConfigError(NO_MASK)
        self._tokenizer, self._share, self._seed = tokenizer, share, tuple(seed)
        self._mask = tokenizer.mask_id if hide == "mask" else None
        self._special = tokenizer.special_ids

    def documents(self, batch: Batch, owners: Sequence[int], number: int) -> Alter:
        """Hide matches in a batch's documents, each compared with its own query only.

        Args: batch and owners from `one_owner_each`, and the number of the batch in its stage.
        """
        asked = [encoding.ids for encoding in self._tokenizer.encode(batch.queries)]

        def alter(at: int, row: Row) -> Row:
            found = exact_matches(asked[owners[at]], row.ids, self._special)
            found = found[row.kinds[found] == Kind.TEXT]
            return self._hide(row, found, number, owners[at], batch.document_ids[at])

        return alter

    def pairs(self, batch: Batch, number: int) -> Alter:
        """Hide matches in a batch's pairs, in the order of `own_pairs`. `number` is that of the batch."""
        places = own_places(batch.targets)

        def alter(at: int, row: PairRow) -> PairRow:
            found = exact_matches(row.ids[row.texts == 0].tolist(), row.ids, self._special)
            query, document = places[at]
            found = found[row.texts[found] == 1]
            return self._hide(row, found, number, query, batch.document_ids[document])

        return alter

    def _hide(self, row: Maskable, matches: Int[np.ndarray, " n"], *place: object) -> Maskable:
        draws = np.random.default_rng(seed_of(*self._seed, "mask", *place)).random(len(matches))
        hidden = matches[draws < self._share]
        return row.without(hidden) if self._mask is None else row.masked(hidden, self._mask)
