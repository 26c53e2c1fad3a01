"""z-normalised late interaction: by loops, its running statistics, and what the mean cannot do."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.errors import ConfigError
from counterpoint.part import Part
from counterpoint.score import Dot, MaxSim, ZScore
from counterpoint.vectors import Vectors

IDF = {1: 0.0, 2: 0.5, 3: 2.0}
UNSEEN = 3.0


def made(*, idf=False, **more):
    scorer = ZScore(MaxSim("w", idf=float(idf)), **more).setup()
    if idf:
        scorer.of.set_idf(torch.tensor(list(IDF)), torch.tensor(list(IDF.values())), UNSEEN)
    return scorer


def weight(number, idf):
    return IDF.get(number, UNSEEN) if idf else 1.0


def matches_of(query, document, idf):
    """What each query row adds, by loops."""
    return [weight(i, idf) * max((oracle.dot(q, d) for d, _ in document), default=0.0) for q, i in query]


def statistics(q, d, own, idf):
    """Mean and population standard deviation over all query rows and their queries' own documents."""
    seen = [
        x for query, row in zip(q, own, strict=True) for at in row if at >= 0
        for x in matches_of(query, d[at], idf)
    ]  # fmt: skip
    if not seen:
        return None
    mean = sum(seen) / len(seen)
    return mean, max(math.sqrt(sum((x - mean) ** 2 for x in seen) / len(seen)), 1e-6)


@st.composite
def batches(draw):
    q, d = draw(oracle.sets(min_texts=1)), draw(oracle.sets(max_texts=4, min_texts=2))
    column = st.integers(-1, len(d) - 1)
    own = [[draw(st.integers(0, len(d) - 1)), draw(column), draw(column)] for _ in q]
    return q, d, own


@settings(deadline=None, max_examples=60)
@given(batches(), st.booleans(), st.integers(0, 2), st.booleans())
def test_batch_scores_by_loops(batch, idf, extra, holes):
    q, d, own = batch
    padded = [{"w": oracle.vectors(texts, extra=extra, holes=holes)} for texts in (q, d)]
    scorer = made(idf=idf)
    found = scorer.batch_scores(*padded, torch.tensor(own))
    known = statistics(q, d, own, idf)
    if known is None:
        assert not found.any() and scorer.batches_ == 0 and scorer.std_ == 1
        return
    mean, std = known
    if std > 1e-6:  # else rounding is what is left to be divided
        expected = [[sum((m - mean) / std for m in matches_of(x, y, idf)) for y in d] for x in q]
        assert_close(found, torch.tensor(expected), rtol=1e-3, atol=1e-3)
    assert scorer.mean_.item() == pytest.approx(mean, abs=1e-5)
    assert scorer.std_.item() == pytest.approx(std, rel=1e-4, abs=1e-6)
    raw = [[sum(matches_of(x, y, idf)) / scorer.std_.item() for y in d] for x in q]
    assert_close(scorer(*padded), torch.tensor(raw), rtol=1e-4, atol=1e-4)


def random_batch(seed, *, queries=4, grad=False):
    torch.manual_seed(seed)

    def some(texts, rows):
        mask = torch.rand(texts, rows) < 0.8
        mask[:, 0] = True
        values = torch.randn(texts, rows, 3, dtype=torch.float64, requires_grad=grad)
        return {"w": Vectors(values, mask, torch.randint(1, 5, (texts, rows)))}

    own = torch.arange(2 * queries).reshape(queries, 2)
    return some(queries, 3), some(2 * queries, 5), own


@pytest.mark.parametrize("mean", [-7.0, 0.0, 40.0])
def test_the_mean_never_changes_a_ranking_or_a_softmax(mean):
    """For one query every document loses |q|·m/σ (PAPERS, section 1)."""
    q, d, own = random_batch(1)
    scorer = made(idf=True)
    batch = scorer.batch_scores(q, d, own)
    plain = scorer(q, d)  # the batch's σ is the only one seen, so it is the one that is kept
    rows = q["w"].mask.sum(1, keepdim=True)
    shifted = plain - rows * mean / scorer.std_
    for other in (shifted, batch):
        assert torch.equal(other.argsort(1), plain.argsort(1))
        assert_close(other.softmax(1), plain.softmax(1), rtol=1e-5, atol=1e-7)


def test_running_statistics_are_exponential_averages():
    scorer, shares = made(momentum=0.9), []
    for seed in range(6):
        q, d, own = random_batch(seed)
        scorer.batch_scores(q, d, own)
        matches = scorer.of.matches(q, d)
        of_own = torch.cat([matches[i, q["w"].mask[i]][:, own[i]].reshape(-1) for i in range(len(own))])
        shares.append((of_own.mean().item(), of_own.std(unbiased=False).item()))
    weights = [0.9 ** (5 - at) for at in range(6)]
    for at, kept in enumerate((scorer.mean_, scorer.std_)):
        expected = sum(w * share[at] for w, share in zip(weights, shares, strict=True)) / sum(weights)
        assert kept.item() == pytest.approx(expected, rel=1e-5)
    before = scorer.std_.item()
    scorer(q, d)
    assert scorer.std_.item() == before and scorer.batches_ == 6  # only batches move them


def test_a_batch_counts_once_however_many_losses_share_the_scorer():
    scorer, other = made(), made()
    for seed in range(3):
        batch = random_batch(seed)
        found = [scorer.batch_scores(*batch) for _ in range(3)]
        assert_close(found[0], found[2])
        other.batch_scores(*batch)
    assert scorer.batches_ == 3 and scorer.std_ == other.std_


def test_scores_do_not_depend_on_the_other_candidates():
    scorer = made()
    q, d, own = random_batch(3)
    scorer.batch_scores(q, d, own)
    whole = scorer(q, d)
    few = {"w": d["w"].take(torch.tensor([4, 1]))}
    assert_close(scorer(q, few), whole[:, [4, 1]])


def test_equal_matches_have_no_spread():
    rows = Vectors(torch.ones(2, 2, 3, requires_grad=True), torch.ones(2, 2, dtype=torch.bool))
    scorer = made()
    found = scorer.batch_scores({"w": rows}, {"w": rows}, torch.tensor([[0, 1], [1, 0]]))
    found.sum().backward()
    assert not found.any() and torch.isfinite(rows.values.grad).all()
    assert scorer.std_.item() == pytest.approx(1e-6)


@pytest.mark.parametrize("detach", [False, True])
def test_gradients_flow_through_the_statistics_unless_detached(detach):
    q, d, own = random_batch(5, grad=True)
    scorer = made(detach=detach).double()
    weights = torch.randn(4, 8, dtype=torch.float64)

    def loss(values):
        return (weights * scorer.batch_scores({"w": q["w"].with_values(values)}, d, own)).sum()

    if not detach:
        assert torch.autograd.gradcheck(loss, q["w"].values)
        return
    loss(q["w"].values).backward()
    found = q["w"].values.grad.clone()
    matches = scorer.of.matches(q, d)
    counted = torch.cat([matches[i, q["w"].mask[i]][:, own[i]].reshape(-1) for i in range(4)]).detach()
    plain = ((matches - counted.mean()) / counted.std(unbiased=False)) * q["w"].mask[:, :, None]
    q["w"].values.grad = None
    (weights * plain.sum(1)).sum().backward()
    assert_close(found, q["w"].values.grad)


def test_adds_up_explains_itself_and_is_saved(tmp_path):
    q, d, own = random_batch(7)
    scorer = (ZScore(MaxSim("w", idf=1.0)) + 0.5 * ZScore(MaxSim("w"))).setup()
    scorer.parts[0].of.set_idf(torch.tensor([1, 2]), torch.tensor([0.5, 0.0]), 2.0)
    batch = scorer.batch_scores(q, d, own)
    assert_close(
        batch, scorer.parts[0].batch_scores(q, d, own) + 0.5 * scorer.parts[1].batch_scores(q, d, own)
    )
    one = [{"w": x["w"].take(torch.tensor([0]))} for x in (q, d)]
    tree = scorer.explain(*one)
    assert tree.children[0].label == "z(MaxSim(w))" and tree.children[1].label == "0.5 × z(MaxSim(w))"
    assert sum(leaf.score for leaf in tree.leaves()) == pytest.approx(scorer(*one).item(), rel=1e-5)
    scorer.save(tmp_path / "s")
    again = Part.load(tmp_path / "s")
    assert_close(again(q, d), scorer(q, d))
    assert again.parts[0].std_ == scorer.parts[0].std_ != 1


def test_momentum_is_checked():
    for wrong in (1.0, -0.1):
        with pytest.raises(ConfigError, match="momentum"):
            ZScore(MaxSim("w"), momentum=wrong)


def test_it_standardises_a_maxsim():
    with pytest.raises(ConfigError, match="MaxSim, found Dot"):
        ZScore(Dot("cls"))


def test_before_setup_it_says_what_to_do():
    some = {"w": Vectors(torch.ones(1, 1, 2), torch.ones(1, 1, dtype=torch.bool))}
    with pytest.raises(AttributeError, match=r"ZScore has no std_ before setup\(\); call setup\(\)"):
        ZScore(MaxSim("w"))(some, some)
    assert not hasattr(ZScore(MaxSim("w")), "std_") and hasattr(ZScore(MaxSim("w")).setup(), "std_")


# -- the paper's worked example ----------------------------------------------------------------------------

GOLDEN = Path(__file__).parents[2].parent / "shared" / "golden" / "golden.json"


@pytest.mark.shared
def test_hil_scores():
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["cases"]
    case = next(c for c in cases if c["id"] == "hil_loss")
    inputs, expected = case["inputs"], case["expected"]

    def batch(rows):
        width = max(len(text) for text in rows)
        values = torch.full((len(rows), width, 3), float("nan"), dtype=torch.float64)
        mask = torch.zeros(len(rows), width, dtype=torch.bool)
        for at, text in enumerate(rows):
            values[at, : len(text)], mask[at, : len(text)] = torch.tensor(text, dtype=torch.float64), True
        return Vectors(values, mask, torch.arange(width).expand(len(rows), -1))

    q = {name: batch([inputs[f"{name}_q"]]) for name in "LH"}
    d = {name: batch([inputs[f"{name}_pos"], inputs[f"{name}_neg"]]) for name in "LH"}
    low, high = (ZScore(MaxSim(name, idf=float(name == "L"))).setup().double() for name in "LH")
    low.of.set_idf(torch.arange(2), torch.tensor(inputs["idf"], dtype=torch.float64), 9.0)
    for name, scorer in (("L", low), ("H", high)):
        found = scorer.batch_scores(q, d, torch.tensor([[0, 1]]))[0]
        assert found[0].item() == pytest.approx(expected[f"score_{name}_pos"], abs=1e-6)
        assert found[1].item() == pytest.approx(expected[f"score_{name}_neg"], abs=1e-6)
        assert scorer.mean_.item() == pytest.approx(expected[f"mean_{name}"], abs=1e-6)
        assert scorer.std_.item() == pytest.approx(expected[f"std_{name}"], abs=1e-6)
        loss = -found.log_softmax(0)[0].item()
        assert loss == pytest.approx(expected[f"loss_late_{name}"], abs=1e-6)
        leaves = [
            leaf.score for leaf in scorer.of.explain(q, {name: d[name].take(torch.tensor([0]))}).leaves()
        ]
        assert leaves == pytest.approx(expected[f"S_{name}_pos"], abs=1e-6)
    both = (low + high).batch_scores(q, d, torch.tensor([[0, 1]]))[0]
    assert both.tolist() == pytest.approx([expected["score_sum_pos"], expected["score_sum_neg"]], abs=1e-6)
