"""Random steps with all kinds of masks, for checks of losses."""

from __future__ import annotations

from random import Random

import torch

from counterpoint.learn import Step, Targets
from counterpoint.vectors import Vectors

__all__ = ["some_step"]

NAN, INF = float("nan"), float("inf")


def some_step(random: Random, size: float = 3.0) -> Step:
    """Make a step whose scores are about `size`.

    Queries share documents, some have only a positive, some documents must not be negatives, some teacher's
    scores are unknown, and some cached allowed are excluded. The first query has everything. The sets are
    `cls` and `words` of 3 components, and the outputs of gates, routers and BM25.
    """
    queries, documents, width = random.randint(1, 4), random.randint(4, 8), random.randint(2, 4)
    own = [
        random.sample(range(documents), width if i == 0 else random.randint(1, width)) for i in range(queries)
    ]
    teacher = [
        [NAN if i and random.random() < 0.3 else random.gauss(0, size) for _ in row]
        for i, row in enumerate(own)
    ]
    cached = [[-INF if random.random() < 0.3 else random.gauss(0, size) for _ in range(3)] for _ in own]
    allowed = torch.rand(queries, documents, generator=_generator(random)) < 0.7
    for row, columns in enumerate(own):
        allowed[row, columns[0]] = True
    return Step(
        q={
            "cls": _vectors(random, queries, 1),
            "words": _vectors(random, queries, 3),
            "words.load": _loads(random, queries),
            "lexical": _terms(random, queries),
        },
        d={
            "cls": _vectors(random, documents, 1),
            "words": _vectors(random, documents, 3),
            "words.gate": _gates(random, documents, 3),
            "words.load": _loads(random, documents),
            "lexical": _terms(random, documents),
        },
        scores=torch.randn(queries, documents, generator=_generator(random)) * size,
        targets=Targets(
            own=torch.tensor([row + [-1] * (width - len(row)) for row in own]),
            allowed=allowed,
            teacher=torch.tensor([row + [NAN] * (width - len(row)) for row in teacher]),
            cached=torch.tensor(cached),
        ),
    )


def _vectors(random: Random, texts: int, rows: int) -> Vectors:
    mask = torch.rand(texts, rows, generator=_generator(random)) < 0.7
    mask[:, 0] = True
    return Vectors(torch.randn(texts, rows, 3, generator=_generator(random)), mask)


def _gates(random: Random, texts: int, rows: int) -> Vectors:
    """One component per row, some of them 0, some texts without a row."""
    mask = torch.rand(texts, rows, generator=_generator(random)) < 0.7
    return Vectors(torch.randn(texts, rows, 1, generator=_generator(random)).clamp(min=0), mask)


def _terms(random: Random, texts: int, known: int = 6) -> Vectors:
    """BM25 vectors: weights of some distinct terms per text. Some texts have none."""
    found = [random.sample(range(1, known + 1), random.randint(0, 4)) for _ in range(texts)]
    ids = torch.tensor([row + [0] * (4 - len(row)) for row in found])
    return Vectors(torch.rand(texts, 4, 1, generator=_generator(random)) * 4, ids > 0, ids * 1_000_003)


def _loads(random: Random, texts: int, keys: int = 5) -> Vectors:
    """A router's load per text and key: tokens sent to the key, and the sum of their softmax."""
    generator = _generator(random)
    sent = torch.randint(0, 4, (texts, keys), generator=generator).float()
    shares = torch.randn(texts, keys, generator=generator).softmax(1) * 3
    return Vectors(torch.stack([sent, shares], 1), torch.ones(texts, 2, dtype=torch.bool))


def _generator(random: Random) -> torch.Generator:
    return torch.Generator().manual_seed(random.randrange(2**31))
