"""InterIso, CosReg and I-STAR by loops, the papers' worked examples, and which way their signs push."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.learn.losses.steps import NAN, steps
from torch.nn import functional
from torch.testing import assert_close

from counterpoint.errors import ConfigError, ShapeError
from counterpoint.learn import CosReg, InterIso, IStar, Step, Targets
from counterpoint.vectors import Vectors

GOLDEN = Path(__file__).parents[3].parent / "shared" / "golden" / "golden.json"
anything = settings(deadline=None, max_examples=40)


def rows_of(vectors, at):
    return [vectors.values[at, i].tolist() for i in range(vectors.mask.shape[1]) if vectors.mask[at, i]]


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def step_of(q, d, own):
    """One query a list of rows; padding holds NaN."""

    def packed(texts):
        width = max(map(len, texts)) + 1
        values = torch.full((len(texts), width, len(texts[0][0])), NAN)
        mask = torch.zeros(len(texts), width, dtype=torch.bool)
        for at, text in enumerate(texts):
            values[at, : len(text)], mask[at, : len(text)] = torch.tensor(text), True
        return Vectors(values, mask)

    targets = Targets(torch.tensor(own), torch.ones(len(q), len(d), dtype=torch.bool))
    return Step({"w": packed(q)}, {"w": packed(d)}, torch.zeros(len(q), len(d)), targets)


# -- by loops ----------------------------------------------------------------------------------------------


@anything
@given(step=steps(), weight=st.sampled_from([-0.3, 0.4]), absolute=st.sampled_from([None, True, False]))
def test_inter_iso(step, weight, absolute):
    """Eq. 2 over all pairs of rows of each query and each of its own documents, then means."""

    def inter(query, document):
        pairs = [
            dot(a, b) for a in rows_of(step.q["words"], query) for b in rows_of(step.d["words"], document)
        ]
        mean = sum(pairs) / len(pairs)
        return abs(mean) if (weight > 0 if absolute is None else absolute) else mean

    queries = []
    for query, own in enumerate(step.targets.own.tolist()):
        found = [inter(query, at) for at in own if at >= 0]
        queries.append(sum(found) / len(found))
    expected = weight * sum(queries) / len(queries)
    assert InterIso("words", weight, absolute)(step).item() == pytest.approx(expected, abs=1e-5)


def all_rows(vectors):
    return [row for at in range(len(vectors)) for row in rows_of(vectors, at)]


@anything
@given(step=steps())
def test_cos_reg(step):
    """1/M² over ordered pairs of different rows, each side by itself."""
    total = 0.0
    for side in (step.q["words"], step.d["words"]):
        rows = [[x / math.sqrt(dot(row, row)) for x in row] for row in all_rows(side)]
        pairs = [dot(a, b) for i, a in enumerate(rows) for j, b in enumerate(rows) if i != j]
        total += sum(pairs) / len(rows) ** 2
    assert CosReg("words", -0.1)(step).item() == pytest.approx(-0.05 * total, abs=1e-5)


@anything
@given(step=steps(), zeta=st.sampled_from([0.2, 1.0]))
def test_i_star(step, zeta):
    """1 − IsoScore* by its original definition over the variances along the axes of the shrunk covariance."""
    total = 0.0
    for side in (step.q["words"], step.d["words"]):
        rows = torch.tensor(all_rows(side), dtype=torch.float64)
        covariance = torch.zeros(3, 3, dtype=torch.float64)
        for row in rows:
            covariance += torch.outer(row - rows.mean(0), row - rows.mean(0)) / max(len(rows) - 1, 1)
        values = torch.linalg.eigvalsh((1 - zeta) * covariance + zeta * torch.eye(3)).tolist()
        total += 1 - iso_score(values)
    assert IStar("words", 0.6, zeta)(step).item() == pytest.approx(0.3 * total, abs=1e-5)


def iso_score(variances):
    """Rudman et al. 2022, as PAPERS corrects the print: λ̂, defect, φ, ι."""
    n = len(variances)
    length = math.sqrt(sum(x * x for x in variances))
    scaled = [math.sqrt(n) * x / length for x in variances]
    defect = math.sqrt(sum((x - 1) ** 2 for x in scaled)) / math.sqrt(2 * (n - math.sqrt(n)))
    phi = (n - defect**2 * (n - math.sqrt(n))) ** 2 / n**2
    return (n * phi - 1) / (n - 1)


# -- the papers' worked examples ---------------------------------------------------------------------------


def case(name):
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    found = next(c for c in cases if c["id"] == name)
    return found["inputs"], found["expected"]


@pytest.mark.shared
def test_golden_inter_iso():
    inputs, expected = case("interiso")
    step = step_of([inputs["Eq"]], [inputs["Ed"]], [[0]])
    assert InterIso("w")(step).item() == pytest.approx(expected["interiso"], abs=1e-6)


@pytest.mark.shared
def test_golden_signs():
    inputs, expected = case("hil_regulariser_signs")
    step = step_of([[[1.0, 0.0]]], [[[inputs["interiso"], 0.0]]], [[0]])
    found = [InterIso("w", weight)(step).item() for weight in inputs["lams"]]
    assert found == pytest.approx(expected["term"], abs=1e-6)


@pytest.mark.shared
def test_golden_hil_regularisers():
    inputs, expected = case("hil_loss")
    total = expected["loss_late_L"] + expected["loss_late_H"]
    lam = inputs["lam"]
    for name, weight, absolute in (("L", -lam, True), ("H", lam, False)):
        step = step_of([inputs[f"{name}_q"]], [inputs[f"{name}_pos"], inputs[f"{name}_neg"]], [[0, 1]])
        found = InterIso("w", weight, absolute)(step)
        assert found.item() == pytest.approx(weight * expected[f"interiso_{name}"], abs=1e-6)
        assert_close(found, InterIso("w", weight)(step))  # the sign alone says the same
        total += found.item()
    assert total == pytest.approx(expected["loss_total"], abs=1e-6)


@pytest.mark.shared
def test_golden_cos_reg():
    inputs, expected = case("cosreg")
    step = step_of([inputs["X"]], [inputs["X"]], [[0]])
    assert CosReg("w", 1.0)(step).item() == pytest.approx(expected["cosreg"], abs=1e-6)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["isoscore_identity", "isoscore_line", "isoscore_k_of_n"])
def test_golden_iso_score(name):
    inputs, expected = case(name)
    variances = inputs["pca_variances"]
    assert iso_score(variances) == pytest.approx(expected["isoscore"], abs=1e-6)
    axes = [
        [sign * math.sqrt(v * (2 * len(variances) - 1) / 2) * (i == j) for j in range(4)]
        for i, v in enumerate(variances) for sign in (1, -1)
    ]  # fmt: skip
    step = step_of([axes], [axes], [[0]])
    assert 1 - IStar("w", 1.0, zeta=1e-7)(step).item() == pytest.approx(expected["isoscore"], abs=1e-6)


# -- what they do ------------------------------------------------------------------------------------------


def trained(declare, weight, steps=60):
    """Free unit rows of eight queries and sixteen documents, moved by the term alone."""
    generator = torch.Generator().manual_seed(3)
    cone = torch.tensor([1.0] + [0.0] * 7)
    free = [(torch.randn(n, 4, 8, generator=generator) + cone).requires_grad_() for n in (8, 16)]
    optimiser = torch.optim.Adam(free, lr=0.05)

    def step():
        q, d = (functional.normalize(x, dim=-1) for x in free)
        own = torch.arange(16).reshape(8, 2)
        targets = Targets(own, torch.ones(8, 16, dtype=torch.bool))
        every = [{"w": Vectors(x, torch.ones(x.shape[:2], dtype=torch.bool))} for x in (q, d)]
        return Step(*every, torch.zeros(8, 16), targets)

    for _ in range(steps):
        optimiser.zero_grad()
        declare(weight)(step()).backward()
        optimiser.step()
    return step()


@pytest.mark.parametrize(
    ("declare", "low", "high"),
    [
        (lambda w: InterIso("w", w), 0.03, 0.9),
        (lambda w: CosReg("w", w), 0.0, 0.9),  # rows of a side among themselves
        (lambda w: IStar("w", w), 0.001, 0.4),
    ],
    ids=["InterIso", "CosReg", "IStar"],
)
def test_the_sign_decides_the_direction(declare, low, high):
    """λ > 0 brings R towards 0, λ < 0 raises it, against λ = 0 (PAPERS, acceptance c)."""
    measure = declare(1.0)
    before = measure(trained(declare, 0.0, steps=0)).item()
    down, up = measure(trained(declare, 0.4)).item(), measure(trained(declare, -0.3)).item()
    assert down < low < before < high < up


def test_the_hil_terms_part_two_sets():
    """−|InterIso_L| + InterIso_H under λ < 0: L to 0 and not below, H to 1 (acceptance d)."""
    measure = InterIso("w", absolute=False)
    low = measure(trained(lambda w: InterIso("w", -w), -0.3)).item()
    high = measure(trained(lambda w: InterIso("w", w), -0.3)).item()
    assert abs(low) < 0.02 and high > 0.95


# -- odd cases ---------------------------------------------------------------------------------------------


def test_texts_without_rows_count_as_zero():
    step = step_of([[[1.0, 0.0]]], [[[1.0, 0.0]], [[0.5, 0.0]]], [[0, 1]])
    empty = Vectors(step.d["w"].values, step.d["w"].mask & torch.tensor([[True], [False]]))
    found = InterIso("w")(Step(step.q, {"w": empty}, step.scores, step.targets))
    assert found.item() == pytest.approx(0.5)
    none = {"w": Vectors(empty.values, torch.zeros_like(empty.mask))}
    for loss in (InterIso("w"), CosReg("w"), IStar("w")):
        found = loss(Step(step.q, none, step.scores, step.targets))
        assert found.item() == pytest.approx(0.0, abs=1e-6)  # one row has no covariance, and no pair


def test_what_cannot_be_is_refused():
    for zeta in (0.0, 1.5):
        with pytest.raises(ConfigError, match="zeta"):
            IStar("w", zeta=zeta)
    with pytest.raises(ShapeError, match="2 components"):
        IStar("w")(step_of([[[1.0]]], [[[1.0]]], [[0]]))
    with pytest.raises(ConfigError, match="no vector set 'x'"):
        InterIso("x")(step_of([[[1.0]]], [[[1.0]]], [[0]]))
