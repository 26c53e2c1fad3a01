"""Sparsity of terms by loops: FLOPS and L1, of queries and documents."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn import Step, Targets, TermSparsity
from counterpoint.vectors import Vectors


def side(seed, texts, rows=4, vocabulary=6):
    """Texts of some distinct terms each; what padding holds is not to be looked at."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.stack([torch.randperm(vocabulary, generator=generator)[:rows] for _ in range(texts)])
    mask = torch.rand(texts, rows, generator=generator) < 0.7
    values = torch.rand(texts, rows, 1, generator=generator)
    return Vectors(values.masked_fill(~mask[:, :, None], float("nan")), mask, ids)


def by_loops(vectors, texts, norm, vocabulary=6):
    weights = [[0.0] * vocabulary for _ in texts]
    for place, text in enumerate(texts):
        for row in range(vectors.mask.shape[1]):
            if vectors.mask[text, row]:
                weights[place][vectors.ids[text, row]] += vectors.values[text, row, 0].item()
    if norm == "l1":
        return sum(map(sum, weights)) / len(texts)
    return sum((sum(line[term] for line in weights) / len(texts)) ** 2 for term in range(vocabulary))


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 999), norm=st.sampled_from(["flops", "l1"]))
def test_size_of_the_terms_by_loops(seed, norm):
    q, d = side(seed, 3), side(seed + 1000, 5)
    own = torch.tensor([[0, 3], [3, -1], [1, 4]])  # document 2 is nobody's own, 3 is two queries'
    step = Step({"t": q}, {"t": d}, torch.zeros(3, 5), Targets(own, torch.ones(3, 5, dtype=torch.bool)))
    queries, documents = by_loops(q, [0, 1, 2], norm), by_loops(d, [0, 1, 3, 4], norm)
    assert TermSparsity("t", norm)(step).item() == pytest.approx(queries + documents, rel=1e-4)
    assert TermSparsity("t", norm, ("query",))(step).item() == pytest.approx(queries, rel=1e-4)
    assert TermSparsity("t", norm, ("document",))(step).item() == pytest.approx(documents, rel=1e-4)


def test_flops_presses_on_what_many_texts_have():
    """Of one weight of 1 in each of two texts: 2 · ½² under two terms, 1 under the same."""

    def size(ids, norm):
        vectors = Vectors(torch.ones(2, 1, 1), torch.ones(2, 1, dtype=torch.bool), torch.tensor(ids)[:, None])
        targets = Targets(torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool))
        step = Step({"t": vectors}, {}, torch.zeros(1, 1), targets)
        return TermSparsity("t", norm, ("query",))(step).item()

    assert (size([3, 7], "flops"), size([3, 3], "flops")) == (0.5, 1.0)
    assert size([3, 7], "l1") == size([3, 3], "l1") == 1


def test_what_is_refused():
    with pytest.raises(ConfigError, match="norm must be 'flops' or 'l1', found 'l2'"):
        TermSparsity("t", "l2")
    with pytest.raises(ConfigError, match="sides are 'query', 'document' or both"):
        TermSparsity("t", sides=("queries",))
    bare = Vectors(torch.ones(1, 1, 1), torch.ones(1, 1, dtype=torch.bool))
    targets = Targets(torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.bool))
    with pytest.raises(ShapeError, match="the rows of 't' have no ids"):
        TermSparsity("t")(Step({"t": bare}, {"t": bare}, torch.zeros(1, 1), targets))
    with pytest.raises(ConfigError, match="no vector set 'u'; there are t"):
        TermSparsity("u")(Step({"t": bare}, {"t": bare}, torch.zeros(1, 1), targets))
