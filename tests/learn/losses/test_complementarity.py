"""Orthogonality to BM25, and CLEAR's residual margin: by loops, worked examples, signs and edges."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learn.losses import loops
from tests.learn.losses.steps import steps

from counterpoint.errors import ConfigError
from counterpoint.index import term_signs
from counterpoint.learn import (
    BM25Terms,
    Contrastive,
    Orthogonality,
    ResidualMargin,
    Step,
    Targets,
    bm25_scores,
    squared_cosines,
)
from counterpoint.vectors import Vectors

SOME = settings(deadline=None, max_examples=40)
TEXTS = ["red cat", "blue dog house", "red red house", "a dog and a cat"]


def step_of(queries, documents, semantic, scores=None, own=None):
    """A step of real texts, with the vectors `cls` of both sides given."""
    terms = BM25Terms().start(TEXTS, lambda done: None)
    sides = [
        {"lexical": terms.of(texts, side, "cpu"), "cls": vectors(rows)}
        for texts, side, rows in zip((queries, documents), ("query", "document"), semantic, strict=True)
    ]
    shape = len(queries), len(documents)
    own = torch.tensor(own or [list(range(len(documents)))] * len(queries))
    scores = torch.zeros(shape) if scores is None else torch.tensor(scores)
    return Step(*sides, scores, Targets(own, torch.ones(shape, dtype=torch.bool)))


def vectors(rows):
    values = torch.tensor(rows, dtype=torch.float32)[:, None]
    return Vectors(values, torch.ones(len(rows), 1, dtype=torch.bool))


def lexical(lead):
    """A step's sets for which BM25 gives a positive and a negative the scores of `lead`."""
    ids = torch.ones(1, 1, dtype=torch.int64)
    query = Vectors(torch.ones(1, 1, 1), ids > 0, ids)
    documents = Vectors(torch.tensor(lead)[:, None, None], ids.expand(2, 1) > 0, ids.expand(2, 1))
    return {"lexical": query}, {"lexical": documents}


# -- orthogonality ---------------------------------------------------------------------------------------


@SOME
@given(step=steps(), seed=st.integers(0, 5))
def test_orthogonality_by_loops(step, seed):
    def signs(term):
        return term_signs(torch.tensor([term]).numpy(), 3, seed)[0].tolist()

    expected = loops.orthogonality(step, "cls", signs)
    assert Orthogonality("cls", seed)(step).item() == pytest.approx(expected, rel=1e-4, abs=1e-6)


def test_the_worked_orthogonality(golden):
    case = golden("ortho_loss")
    given = {name: torch.tensor([value]) for name, value in case["inputs"].items()}
    found = squared_cosines(given["q_lex"], given["q_sem"]) + squared_cosines(given["d_lex"], given["d_sem"])
    assert found.item() == pytest.approx(case["expected"]["loss"], abs=case["tol"])


def test_texts_without_a_term_and_vectors_of_0_count_0_without_a_gradient():
    empty = step_of(["", "unknownword"], ["", "the"], ([[1.0, 2, 3]] * 2, [[1.0, 2, 3]] * 2))
    zero = step_of(["red"], ["dog"], ([[0.0, 0, 0]], [[0.0, 0, 0]]))
    for step in (empty, zero):
        leaf = step.q["cls"].values.requires_grad_()
        loss = Orthogonality("cls")(step)
        loss.backward()
        assert loss.item() == 0 and leaf.grad is not None and not leaf.grad.any()


def test_a_text_without_a_term_is_in_the_mean():
    both = step_of(["red cat"], ["red cat", ""], ([[1.0, 2, 3]], [[1.0, 2, 3]] * 2))
    one = step_of(["red cat"], ["red cat"], ([[1.0, 2, 3]], [[1.0, 2, 3]]))
    query = step_of(["red cat"], [""], ([[1.0, 2, 3]], [[1.0, 2, 3]]))
    of = Orthogonality("cls")
    assert (of(both) - of(query)).item() == pytest.approx((of(one) - of(query)).item() / 2)
    assert of(one) > of(query) > 0


def test_a_vector_that_is_the_projection_has_cosine_1():
    step = step_of(["red cat"], ["red cat"], ([[1.0] * 8], [[1.0] * 8]))
    from counterpoint.index import project_terms

    same = [torch.from_numpy(project_terms(side["lexical"].ragged(), 8)) for side in (step.q, step.d)]
    step = step_of(["red cat"], ["red cat"], [(3 * rows).tolist() for rows in same])
    assert Orthogonality("cls")(step).item() == pytest.approx(2, abs=1e-5)
    assert Orthogonality("cls", seed=1)(step).item() < 1.9


def test_it_has_no_gradient_into_the_lexical_vectors_and_its_gradient_turns_away():
    step = step_of(["red cat"], ["blue dog house"], ([[1.0, 2, 3, 4]], [[4.0, 1, 2, 0]]))
    leaves = [
        found.values.requires_grad_() for side in (step.q, step.d) for found in side.values()
    ]  # lexical, cls, lexical, cls
    before = Orthogonality("cls")(step)
    before.backward()
    assert leaves[0].grad is None and leaves[2].grad is None
    with torch.no_grad():
        for leaf in leaves[1::2]:
            leaf -= 0.1 * leaf.grad
    assert Orthogonality("cls")(step) < before


def test_unrelated_directions_are_near_the_floor_of_2_over_k():
    """1/k a side on average, for any distribution of the semantic vectors, by the projection alone."""
    k, seeds = 64, 300
    step = step_of(["red cat dog"], ["blue dog house"], ([[1.0] * k], [[1.0] + [0.0] * (k - 1)]))
    found = torch.stack([Orthogonality("cls", seed)(step) for seed in range(seeds)])
    assert abs(found.mean().item() - 2 / k) < 5 * found.std().item() / seeds**0.5


def test_what_orthogonality_cannot_use_is_refused():
    step = step_of(["red"], ["dog"], ([[1.0]], [[1.0]]))
    several = Vectors(torch.ones(1, 2, 3), torch.ones(1, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match="takes one vector per text"):
        Orthogonality("cls")(replace(step, q={**step.q, "cls": several}))
    with pytest.raises(ConfigError, match=r"no lexical vectors; give the stage lexical=BM25Terms"):
        Orthogonality("cls")(replace(step, q={"cls": step.q["cls"]}))
    with pytest.raises(ConfigError, match="seed must be at least 0"):
        Orthogonality("cls", seed=-1)


# -- the residual margin ---------------------------------------------------------------------------------


@SOME
@given(step=steps(), xi=st.sampled_from([0.0, 1.0, 3.0]), lam=st.sampled_from([0.0, 0.1, 2.0]))
def test_residual_margin_by_loops(step, xi, lam):
    expected = loops.residual_margin(step, xi, lam)
    assert ResidualMargin(xi=xi, lam=lam)(step).item() == pytest.approx(expected, rel=1e-4, abs=1e-5)


def test_the_worked_margins(golden):
    case = golden("clear_margin")
    loss = ResidualMargin(xi=case["inputs"]["xi"], lam=case["inputs"]["lam"])
    for found, margin, expected in zip(
        case["inputs"]["cases"], case["expected"]["margins"], case["expected"]["losses"], strict=True
    ):
        targets = Targets(torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
        step = Step(*lexical(found["lex"]), torch.tensor([found["emb"]]), targets)
        assert loss(step).item() == pytest.approx(expected, abs=case["tol"])
        level = replace(step, scores=torch.full((1, 2), 0.5))  # then the loss is the margin, where above 0
        assert loss(level).item() == pytest.approx(max(0.0, margin), abs=case["tol"])


def test_the_sign_of_the_residual():
    """Where BM25 errs there is more to learn, where it leads by more than ξ/λ nothing; not the other way."""
    targets = Targets(torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
    level = torch.zeros(1, 2)

    def loss(lead, **settings):
        return ResidualMargin(**settings)(Step(*lexical(lead), level, targets)).item()

    assert loss([2.0, 8.0]) > loss([5.0, 5.0]) > loss([8.0, 2.0]) > 0
    assert loss([13.0, 2.0]) == 0 and loss([11.9, 2.0]) > 0  # ξ/λ = 10
    assert loss([13.0, 2.0], lam=0.0) == loss([2.0, 13.0], lam=0.0) == 1
    assert loss([12.0, 0.0], xi=0.0) == 0


def test_a_negatives_score_is_real():
    """Its BM25 score, not 0: a negative that shares the query's words leaves the margin at ξ."""
    step = step_of(["red cat"], ["red cat", "red cat"], ([[1.0]], [[1.0]] * 2))
    found = bm25_scores(step, "test")
    assert found[0, 0] == found[0, 1] > 0.5
    assert ResidualMargin()(step).item() == pytest.approx(1)


def test_a_document_equal_to_the_query():
    """Its BM25 stays below the sum of idf, and its cosine is that of any other pair of directions."""
    step = step_of(["red cat"], ["red cat", "dog"], ([[1.0, 2, 3]], [[1.0, 2, 3]] * 2))
    ceiling = step.q["lexical"].values.sum()
    assert 0 < bm25_scores(step, "test")[0, 0] < ceiling
    assert 0 <= Orthogonality("cls")(step) <= 2
    assert ResidualMargin()(step).item() == pytest.approx(
        1 - 0.1 * bm25_scores(step, "test")[0, 0].item(), rel=1e-5
    )


def test_queries_without_a_term_have_the_plain_hinge():
    step = step_of(["", "unknownword"], ["red cat", "dog"], ([[1.0]] * 2, [[1.0]] * 2), [[0.5, 0.0], [3, 0]])
    assert ResidualMargin()(step).item() == pytest.approx((0.5 + 0) / 2)


def test_a_query_without_negatives_has_loss_0():
    step = step_of(["red"], ["dog", "cat"], ([[1.0]], [[1.0]] * 2), [[0.0, 9.0]], own=[[0, -1]])
    assert ResidualMargin()(step).item() == 0


def test_what_the_margin_cannot_use_is_refused():
    with pytest.raises(ConfigError, match="xi must be at least 0") as caught:
        ResidualMargin(xi=-1, lam=-0.1)
    assert len(caught.value.faults) == 2
    with pytest.raises(ConfigError, match="no lexical vectors"):
        ResidualMargin()(
            Step({}, {}, torch.zeros(1, 2), Targets(torch.tensor([[0, 1]]), torch.ones(1, 2) > 0))
        )


# -- NLL -------------------------------------------------------------------------------------------------


@SOME
@given(step=steps())
def test_equation_7_is_contrastive(step):
    """The positive against its hard negatives and the other queries' passages, none of them relevant."""
    s, t = step.scores.double().tolist(), step.targets
    expected = loops.mean(
        loops.softmax_loss(
            s[i][own[0]],
            [s[i][j] for j in range(len(s[i])) if j != own[0] and bool(t.allowed[i, j])],
        )
        for i, own in enumerate(t.own.tolist())
    )
    assert Contrastive()(step).item() == pytest.approx(expected, rel=1e-4, abs=1e-5)
