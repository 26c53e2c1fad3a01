"""Random steps with every kind of mask, for the losses' tests."""

from random import Random

import hypothesis.strategies as st
import torch

from counterpoint.learn import Step, Targets
from counterpoint.vectors import Vectors

NAN, INF = float("nan"), float("inf")


@st.composite
def steps(draw, size=3.0):
    """A step whose scores are about `size`.

    Queries share documents, some have a positive only, some documents must not be negatives, a teacher does
    not know all, and some cached candidates do not count. The first query has everything.
    """
    random = Random(draw(st.integers(0, 2**20)))
    queries, documents, width = random.randint(1, 4), random.randint(4, 8), random.randint(2, 4)
    own = [
        random.sample(range(documents), width if i == 0 else random.randint(1, width)) for i in range(queries)
    ]
    teacher = [
        [NAN if i and random.random() < 0.3 else random.gauss(0, size) for _ in row]
        for i, row in enumerate(own)
    ]
    cached = [[-INF if random.random() < 0.3 else random.gauss(0, size) for _ in range(3)] for _ in own]
    candidates = torch.rand(queries, documents, generator=_generator(random)) < 0.7
    for row, columns in enumerate(own):
        candidates[row, columns[0]] = True
    return Step(
        q={
            "cls": vectors(random, queries, 1),
            "words": vectors(random, queries, 3),
            "words.load": loads(random, queries),
            "lexical": terms(random, queries),
        },
        d={
            "cls": vectors(random, documents, 1),
            "words": vectors(random, documents, 3),
            "words.gate": gates(random, documents, 3),
            "words.load": loads(random, documents),
            "lexical": terms(random, documents),
        },
        scores=torch.randn(queries, documents, generator=_generator(random)) * size,
        targets=Targets(
            own=torch.tensor([row + [-1] * (width - len(row)) for row in own]),
            candidates=candidates,
            teacher=torch.tensor([row + [NAN] * (width - len(row)) for row in teacher]),
            cached=torch.tensor(cached),
        ),
    )


def vectors(random, texts, rows):
    mask = torch.rand(texts, rows, generator=_generator(random)) < 0.7
    mask[:, 0] = True
    return Vectors(torch.randn(texts, rows, 3, generator=_generator(random)), mask)


def gates(random, texts, rows):
    """One component a row, some of them 0, some texts without a row."""
    mask = torch.rand(texts, rows, generator=_generator(random)) < 0.7
    return Vectors(torch.randn(texts, rows, 1, generator=_generator(random)).clamp(min=0), mask)


def terms(random, texts, known=6):
    """BM25's vectors: a weight for each of some terms, different ones in a text; some texts have none."""
    found = [random.sample(range(1, known + 1), random.randint(0, 4)) for _ in range(texts)]
    ids = torch.tensor([row + [0] * (4 - len(row)) for row in found])
    return Vectors(torch.rand(texts, 4, 1, generator=_generator(random)) * 4, ids > 0, ids * 1_000_003)


def loads(random, texts, keys=5):
    """What a router says of each text by key: tokens sent to it, and the sum of their softmax."""
    generator = _generator(random)
    sent = torch.randint(0, 4, (texts, keys), generator=generator).float()
    shares = torch.randn(texts, keys, generator=generator).softmax(1) * 3
    return Vectors(torch.stack([sent, shares], 1), torch.ones(texts, 2, dtype=torch.bool))


def triple(scores, *, own=None, candidates=None, **targets):
    """A step of given scores, each query's own documents in the order of the columns unless said."""
    scores = torch.tensor(scores)
    queries, documents = scores.shape
    own = [list(range(documents))] * queries if own is None else own
    mask = (
        torch.ones(queries, documents, dtype=torch.bool) if candidates is None else torch.tensor(candidates)
    )
    more = {name: torch.tensor(value) for name, value in targets.items()}
    return Step({}, {}, scores, Targets(torch.tensor(own), mask, **more))


def _generator(random):
    return torch.Generator().manual_seed(random.randrange(2**31))
