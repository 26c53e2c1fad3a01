"""Scores of texts that need not be in an index, by its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from counterpoint.index import Index, TextModel
from counterpoint.index.kernels import maxsim_scores
from counterpoint.index.token_pooling import token_pooled
from counterpoint.search.prepared import PreparedQuery
from counterpoint.search.settings import LEXICAL, Plan

if TYPE_CHECKING:
    from counterpoint.types import Ragged

__all__ = ["table_of_texts"]


def table_of_texts(
    query: PreparedQuery, plan: Plan, searched: tuple[Index, TextModel | None], texts: Sequence[str]
) -> Float[np.ndarray, "texts parts"]:
    """The texts' scores by each part, divided by its ceiling.

    Args:
        query: prepared for the plan.
        plan: which parts score.
        searched: the index and its model.
        texts: at least one.
    """
    index, model = searched
    encoded: Mapping[str, Ragged] = {}
    if model is not None and any(part != LEXICAL for part in plan.weights):
        encoded = model.encode_document(texts)
    columns = []
    for part in plan.weights:
        if part == LEXICAL:
            assert index.lexical is not None, "the plan has BM25 only if the index has it"
            scores = index.lexical.scores_of_texts(query.text, texts)
        else:
            asked, rows = query.asked(part), token_pooled(encoded[part], index.layouts[part].pool)
            scores = maxsim_scores(asked.rows, rows, asked.ids, asked.floor)
        columns.append(scores / query.ceilings[part])
    return np.stack(columns, axis=1).astype(np.float64)
