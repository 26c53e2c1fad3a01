"""`Loss` and `Objective`: names, weights, and whose scores count."""

import pytest
import torch
from tests.learn.losses.steps import triple

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn import Contrastive, Loss, MarginMSE, NegativeLogLikelihood, Objective, Step
from counterpoint.part import Part
from counterpoint.score import Dot, MaxSim, Mix
from counterpoint.vectors import Vectors

LN2, LN3 = 0.6931472, 1.0986123


def even(documents):
    """All scores equal, so a softmax loss is the logarithm of how many there are."""
    return triple([[0.0] * documents])


def pooled(step, q, d):
    """The step with vector sets whose dot products are q · d."""
    one = {"cls": Vectors(torch.tensor([[q]]), torch.ones(1, 1, dtype=torch.bool))}
    many = {"cls": Vectors(torch.tensor([[row] for row in d]), torch.ones(len(d), 1, dtype=torch.bool))}
    return Step(one, many, step.scores, step.targets)


def test_a_sum_is_flat_and_weighted():
    objective = 2.0 * (Contrastive() + 0.5 * NegativeLogLikelihood()) + MarginMSE()
    assert isinstance(objective, Objective)
    assert objective.weights == [2.0, 1.0, 1.0]
    assert objective.names == ("contrastive", "negative_log_likelihood", "margin_mse")


def test_terms_sum_to_the_loss_and_carry_their_weights():
    objective = Contrastive() + 0.5 * NegativeLogLikelihood(name="own")
    terms = objective.terms(even(3))
    assert {name: term.item() for name, term in terms.items()} == pytest.approx(
        {"contrastive": LN3, "own": LN3 / 2}
    )
    assert objective(even(3)).item() == pytest.approx(1.5 * LN3)


def test_names_that_repeat_are_numbered():
    assert (MarginMSE() + MarginMSE(name="cls") + MarginMSE()).names == (
        "margin_mse_1",
        "cls",
        "margin_mse_2",
    )


def test_a_loss_with_a_scorer_goes_by_its_scores():
    step = pooled(even(2), [1.0, 0.0], [[3.0, 0.0], [1.0, 0.0]])
    assert NegativeLogLikelihood()(step).item() == pytest.approx(LN2)
    found = NegativeLogLikelihood(scorer=Dot("cls"))(step).item()
    assert found == pytest.approx(0.1269280)  # ln(1 + e^-2)


def test_a_losss_scorer_is_a_part_of_it():
    objective = MarginMSE(scorer=Mix([Dot("cls"), MaxSim("words")])) + Contrastive()
    assert [name for name, _ in objective.setup().named_parameters()] == ["losses.0.scorer.gamma_"]


def test_a_saved_loss_keeps_its_scorer(tmp_path):
    (0.5 * Contrastive("dense", Dot("cls"), scale=20.0)).save(tmp_path / "loss")
    again = Part.load(tmp_path / "loss")
    assert isinstance(again, Objective) and again.names == ("dense",)
    step = pooled(even(2), [0.1, 0.0], [[3.0, 0.0], [2.0, 0.0]])
    assert again(step).item() == pytest.approx(0.1269280 / 2)  # 20 · 0.1 · (3 − 2) = 2


def test_a_misspelt_need_is_refused():
    with pytest.raises(ConfigError, match="Odd.needs: unknown negativs; there are batch, negatives, teacher"):

        class Odd(Loss):
            needs = frozenset({"negativs"})


def test_your_own_loss_needs_forward_and_nothing_else():
    class Largest(Loss):
        def __init__(self, factor: float = 1.0):
            super().__init__()
            self.factor = factor

        def forward(self, step):
            return self.factor * self.scores(step).max()

    objective = Contrastive() + Largest(2.0)
    assert objective.names == ("contrastive", "largest")
    assert objective.terms(triple([[1.0, 4.0]]))["largest"].item() == 8


def test_the_worked_sum_of_colberter(golden):
    class Constant(Loss):
        def __init__(self, value: float):
            super().__init__()
            self.value = value

        def forward(self, step):
            return torch.tensor(self.value, dtype=torch.float64)

    case = golden("colberter_total_loss")
    given = case["inputs"]
    objective = Objective([Constant(value) for value in given["losses"]], given["alphas"])
    assert objective(even(2)).item() == pytest.approx(case["expected"]["total"], abs=case["tol"])


def test_what_is_no_loss_or_no_number_does_not_add_up():
    with pytest.raises(TypeError):
        MarginMSE() + 1  # type: ignore[operator]
    with pytest.raises(TypeError):
        True * MarginMSE()  # type: ignore[operator]
    with pytest.raises(ConfigError, match="one weight for each loss, found 1 of them, 2 weights"):
        Objective([MarginMSE()], [1.0, 2.0])


class Returns(Loss):
    """Return something that may be no loss."""

    def __init__(self, what: str):
        super().__init__()
        self.what = what

    def forward(self, step):
        return {"none": None, "number": 1.0, "each": step.scores.mean(1)}[self.what]


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("none", "the loss Returns returned a NoneType; return a tensor"),
        ("number", "the loss Returns returned a float; return a tensor, not a number of Python"),
        ("each", r"the loss Returns returned a tensor of shape \(1,\); return the mean over the queries"),
    ],
)
def test_what_is_no_loss_is_told_with_the_class(what, words):
    with pytest.raises(ShapeError, match=words):
        (0.5 * Returns(what) + Contrastive()).terms(even(4))
