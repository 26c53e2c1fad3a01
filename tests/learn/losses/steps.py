"""Random steps with every kind of mask, for the losses' tests."""

from random import Random

import hypothesis.strategies as st
import torch

from counterpoint.learn import Step, Targets
from counterpoint.testing.losses import some_step

NAN, INF = float("nan"), float("inf")


@st.composite
def steps(draw, size=3.0):
    """See `some_step`."""
    return some_step(Random(draw(st.integers(0, 2**20))), size)


def triple(scores, *, own=None, allowed=None, **targets):
    """A step of given scores, each query's own documents in the order of the columns unless said."""
    scores = torch.tensor(scores)
    queries, documents = scores.shape
    own = [list(range(documents))] * queries if own is None else own
    mask = torch.ones(queries, documents, dtype=torch.bool) if allowed is None else torch.tensor(allowed)
    more = {name: torch.tensor(value) for name, value in targets.items()}
    return Step({}, {}, scores, Targets(torch.tensor(own), mask, **more))
