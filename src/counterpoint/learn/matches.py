"""Input-level orthogonality: in training, some words that a document shares with its query are hidden.

Lee et al. 2023, "On Complementarity Objectives for Hybrid Retrieval", equation 10. What BM25 finds by itself
need not be learnt; without it a model must go by what else the document says. The equation takes tokens out,
the text puts [MASK] in their place; a stage says which.
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
from counterpoint.learn.batches import Batch
from counterpoint.learn.cross import own_places
from counterpoint.learn.gradient_cache import Alter
from counterpoint.learn.seeds import seed_of

__all__ = ["NO_MASK", "MatchMasks", "exact_matches"]

NO_MASK = (
    "mask_matches puts a mask token in the place of matches, and this vocabulary has none; take them out "
    "with hide='drop', or take a backbone that was trained with one, such as BERT"
)

Maskable = TypeVar("Maskable", Row, PairRow)


def exact_matches(
    query: Collection[int], document: Int[np.ndarray, " t"], special: Collection[int]
) -> Int[np.ndarray, " n"]:
    """X_EM: positions of a document whose word-piece the query has, too, special tokens left out.

    Args:
        query: vocabulary ids.
        document: vocabulary ids.
        special: vocabulary ids.
    """
    return np.flatnonzero(np.isin(document, sorted({*query} - {*special})))


@final
class MatchMasks:
    """Draws which exact matches are hidden, each with the same probability.

    A draw is decided by the seed, the number of the batch, the query's place in it and the document's id.

    Args:
        tokenizer: the documents'; queries are compared by its word-pieces, without prompts and markers.
        share: the probability.
        seed: what draws begin with.
        hide: "mask" puts a mask token in a match's place, "drop" takes it out of the row.

    Raises:
        ConfigError: there is no mask token in the vocabulary, and one is needed.
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
        """For the documents of a batch, each with its own query only.

        Args:
            batch: what `one_owner_each` gave.
            owners: the query of each document.
            number: of the batch in its stage.
        """
        asked = [encoding.ids for encoding in self._tokenizer.encode(batch.queries)]

        def alter(at: int, row: Row) -> Row:
            found = exact_matches(asked[owners[at]], row.ids, self._special)
            found = found[row.kinds[found] == Kind.TEXT]
            return self._hide(row, found, number, owners[at], batch.document_ids[at])

        return alter

    def pairs(self, batch: Batch, number: int) -> Alter:
        """For the pairs of a batch, as `own_pairs` gives them.

        Args:
            batch: queries and documents.
            number: of the batch in its stage.
        """
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
