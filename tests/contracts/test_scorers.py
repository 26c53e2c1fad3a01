"""What every scorer promises. A new one joins by its entry in `examples.py`; without one this fails."""

import inspect

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings
from tests.contracts.examples import EXAMPLES
from tests.contracts.test_parts import PARTS
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.score import Scorer
from counterpoint.vectors import Vectors

SCORERS = {cls.__name__: cls for cls in PARTS if issubclass(cls, Scorer) and not inspect.isabstract(cls)}
examples = pytest.mark.parametrize(
    "declare",
    [
        pytest.param(lambda cls=cls, example=example: cls(**example(None)), id=f"{name}-{index}")
        for name, cls in SCORERS.items()
        for index, example in enumerate(EXAMPLES.get(name, ()))
    ],
)
anything = settings(deadline=None, max_examples=12)


def ready(declare):
    """Set up; scorers that weigh by idf are given that of the ids 1 to 3."""
    scorer = declare().setup()
    for part in scorer.modules():
        if getattr(part, "idf", 0):
            part.set_idf(torch.tensor([3, 1, 2]), torch.tensor([0.25, 2.25, 0.0]), 4.0)  # exact square roots
    return scorer


def batch(texts, **padding):
    """A representation with both kinds of set; a text's pooled vector is its first row."""
    first = oracle.vectors([text[:1] for text in texts])
    if not first.mask.shape[1]:
        first = Vectors(torch.zeros(len(texts), 1, oracle.DIM), torch.zeros(len(texts), 1, dtype=torch.bool))
    return {"cls": first, "words": oracle.vectors(texts, **padding)}


@pytest.mark.parametrize("name", SCORERS)
def test_has_an_example(name):
    assert EXAMPLES.get(name), f"add an example of {name} to tests/contracts/examples.py"


@examples
@anything
@given(oracle.sets(), oracle.sets(), st.integers(0, 3), st.booleans())
def test_padding_never_changes_a_score(declare, q, d, extra, holes):
    scorer = ready(declare)
    plain = scorer(batch(q, filler=0.0), batch(d, filler=0.0))
    padded = scorer(batch(q, extra=extra, holes=holes), batch(d, extra=extra, holes=holes))
    assert_close(plain, padded, atol=1e-6, rtol=0)  # a wider matrix product may round its last bit otherwise


@examples
@anything
@given(oracle.sets(), oracle.sets(), st.randoms(use_true_random=False))
def test_the_order_of_document_rows_does_not_matter(declare, q, d, random):
    scorer = ready(declare)
    shuffled = [
        text[:1] + random.sample(text[1:], len(text[1:])) for text in d
    ]  # the first is the pooled one
    assert_close(scorer(batch(q), batch(d)), scorer(batch(q), batch(shuffled)))


@examples
@anything
@given(oracle.sets(), oracle.sets())
def test_a_batch_is_its_pairs(declare, q, d):
    scorer = ready(declare)
    together = scorer(batch(q), batch(d))
    assert together.shape == (len(q), len(d)) and torch.isfinite(together).all()
    for i, query in enumerate(q):
        for j, document in enumerate(d):
            assert_close(scorer(batch([query]), batch([document]))[0, 0], together[i, j])


@examples
@anything
@given(oracle.sets(max_texts=1), oracle.sets(max_texts=1))
def test_leaves_sum_to_the_score(declare, q, d):
    scorer = ready(declare)
    queries, documents = batch(q, holes=True), batch(d, holes=True)
    explanation = scorer.explain(queries, documents)
    assert explanation.score == scorer(queries, documents).item()
    assert sum(leaf.score for leaf in explanation.leaves()) == pytest.approx(explanation.score, abs=1e-5)
    for leaf in explanation.leaves():
        if leaf.rows is not None:
            assert leaf.rows[0] < len(q[0]) and (leaf.rows[1] is None or leaf.rows[1] < len(d[0]))


@examples
def test_empty_texts_score_zero(declare):
    scorer = ready(declare)
    some, empty = batch([[([1, 2, 0], 1)]]), batch([[]])
    for q, d in ((some, empty), (empty, some), (empty, empty)):
        assert scorer(q, d).item() == 0
        assert scorer.explain(q, d).score == 0


@examples
def test_gradients_reach_queries_and_documents(declare):
    scorer = ready(declare)
    leaves = []

    def learning(texts):
        found = batch(texts, filler=0.0)
        for name, vectors in found.items():
            found[name] = vectors.with_values(vectors.values.requires_grad_())
            leaves.append(found[name])
        return found

    scores = scorer(learning([[([1, 2, 0], 1)], []]), learning([[([1, 1, 0], 1), ([0, 1, 1], 2)], []]))
    scores.square().sum().backward()
    used = [leaf for leaf in leaves if leaf.values.grad is not None]
    assert used and all(torch.isfinite(leaf.values.grad).all() for leaf in used)
    assert all(leaf.values.grad.any() and not leaf.values.grad[~leaf.mask].any() for leaf in used)
