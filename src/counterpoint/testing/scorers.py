"""The contract of scorers, and random texts as sets of rows to check it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isclose
from random import Random

import torch
from torch.testing import assert_close

from counterpoint.score import Scorer
from counterpoint.testing.rules import making, try_rules
from counterpoint.types import Explanation
from counterpoint.vectors import Vectors

__all__ = ["DIM", "RULES", "check_scorer", "vectors"]

DIM = 3
Text = Sequence[tuple[Sequence[int], int]]
"""A text's rows with their ids. Products and sums of small whole numbers are exact in any order."""


def check_scorer(declare: Callable[[], Scorer], draws: int = 12) -> None:
    """Check a scorer of the sets `words` (row ids 1 to 4) and `cls` (one row per text), of 3 components.

    Args:
        declare: makes a scorer that is ready to score.
        draws: random inputs per rule.

    Raises:
        AssertionError: naming the broken rule.

    Example:
        >>> from counterpoint.score import MaxSim
        >>> check_scorer(lambda: MaxSim("words"))
    """
    making(declare, 'lambda: MaxSim("words")')
    try_rules(RULES, lambda: declare().setup(), draws)


def ignores_padding(scorer: Scorer, random: Random) -> None:
    """Padding never changes a score."""
    q, d, extra, holes = some_texts(random), some_texts(random), random.randint(0, 3), random.random() < 0.5
    plain = scorer(representation(q, filler=0.0), representation(d, filler=0.0))
    padded = scorer(representation(q, extra=extra, holes=holes), representation(d, extra=extra, holes=holes))
    assert_close(plain, padded, atol=1e-6, rtol=0)  # a wider matrix product may round differently


def ignores_the_order_of_rows(scorer: Scorer, random: Random) -> None:
    """The order of a document's rows does not matter."""
    q, d = some_texts(random), some_texts(random)
    # The first row is the pooled one.
    shuffled = [text[:1] + random.sample(text[1:], len(text[1:])) for text in d]
    before = scorer(representation(q), representation(d))
    assert_close(scorer(representation(q), representation(shuffled)), before)


def scores_a_batch_as_its_pairs(scorer: Scorer, random: Random) -> None:
    """A score depends only on its query and its document."""
    q, d = some_texts(random), some_texts(random)
    together = scorer(representation(q), representation(d))
    assert together.shape == (len(q), len(d)), f"scores have the shape {tuple(together.shape)}"
    assert torch.isfinite(together).all(), "a score is not finite"
    for i, query in enumerate(q):
        for j, document in enumerate(d):
            alone = scorer(representation([query]), representation([document]))
            assert_close(alone[0, 0], together[i, j])


def explains_by_leaves_that_sum(scorer: Scorer, random: Random) -> None:
    """The leaves of an explanation sum to the score, and name existing rows."""
    (q,), (d,) = some_texts(random, 1), some_texts(random, 1)
    queries, documents = representation([q], holes=True), representation([d], holes=True)
    explanation, score = scorer.explain(queries, documents), scorer(queries, documents).item()
    kind = type(explanation).__name__
    assert isinstance(explanation, Explanation), f"`explain` returns a {kind}; return an Explanation"
    assert explanation.score == score, f"the explanation says {explanation.score}, the score is {score}"
    total = sum(leaf.score for leaf in explanation.leaves())
    assert isclose(total, score, rel_tol=1e-6, abs_tol=1e-5), f"leaves sum to {total}, the score is {score}"
    for leaf in explanation.leaves():
        if leaf.rows is not None:
            assert leaf.rows[0] < len(q), "a leaf names a query row out of range"
            assert leaf.rows[1] is None or leaf.rows[1] < len(d), "a leaf names a document row out of range"


def scores_empty_texts_zero(scorer: Scorer, random: Random) -> None:
    """A text without rows scores 0."""
    some, empty = representation([[([1, 2, 0], 1)]]), representation([[]])
    for q, d in ((some, empty), (empty, some), (empty, empty)):
        assert scorer(q, d).item() == 0 and scorer.explain(q, d).score == 0


def has_gradients(scorer: Scorer, random: Random) -> None:
    """Gradients reach queries and documents, and never padding."""
    leaves = []

    def learning(texts: list[Text]) -> dict[str, Vectors]:
        found = representation(texts, filler=0.0)
        for name, rows in found.items():
            found[name] = rows.with_values(rows.values.requires_grad_())
            leaves.append(found[name])
        return found

    scores = scorer(learning([[([1, 2, 0], 1)], []]), learning([[([1, 1, 0], 1), ([0, 1, 1], 2)], []]))
    assert scores.requires_grad, "scores have no gradient"
    scores.square().sum().backward()
    reached = [(leaf, leaf.values.grad) for leaf in leaves if leaf.values.grad is not None]
    assert reached, "no gradient reaches the vectors"
    for leaf, gradient in reached:
        assert torch.isfinite(gradient).all() and gradient.any(), "a gradient is 0 or not finite"
        assert not gradient[~leaf.mask].any(), "a gradient reaches padding"


RULES = (
    ignores_padding,
    ignores_the_order_of_rows,
    scores_a_batch_as_its_pairs,
    explains_by_leaves_that_sum,
    scores_empty_texts_zero,
    has_gradients,
)


def some_texts(random: Random, most: int = 3) -> list[list[tuple[list[int], int]]]:
    """One to `most` texts of up to four rows, some of them empty."""

    def row() -> tuple[list[int], int]:
        return [random.randint(-3, 3) for _ in range(DIM)], random.randint(1, 4)

    return [[row() for _ in range(random.randint(0, 4))] for _ in range(random.randint(1, most))]


def vectors(
    texts: Sequence[Text],
    *,
    extra: int = 0,
    filler: float = float("nan"),
    dtype: torch.dtype = torch.float32,
    holes: bool = False,
) -> Vectors:
    """Padded vectors of a batch, with `filler` at padded positions.

    These are `extra` ones after the longest text and, with `holes`, one after each row.
    """
    step = 2 if holes else 1
    width = max([len(text) for text in texts], default=0) * step + extra
    values = torch.full((len(texts), width, DIM), filler, dtype=dtype)
    mask = torch.zeros(len(texts), width, dtype=torch.bool)
    ids = torch.zeros(len(texts), width, dtype=torch.int64)
    for i, text in enumerate(texts):
        for j, (row, id_) in enumerate(text):
            values[i, j * step] = torch.tensor(row, dtype=dtype)
            mask[i, j * step] = True
            ids[i, j * step] = id_
    return Vectors(values, mask, ids)


def representation(
    texts: Sequence[Text], *, extra: int = 0, filler: float = float("nan"), holes: bool = False
) -> dict[str, Vectors]:
    """Both kinds of set: `words`, and `cls`, whose pooled vector is a text's first row."""
    first = vectors([text[:1] for text in texts])
    if not first.mask.shape[1]:
        first = Vectors(torch.zeros(len(texts), 1, DIM), torch.zeros(len(texts), 1, dtype=torch.bool))
    return {"cls": first, "words": vectors(texts, extra=extra, filler=filler, holes=holes)}
