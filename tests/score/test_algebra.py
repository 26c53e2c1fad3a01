import math

import pytest
import torch
from tests.score import oracle
from torch.testing import assert_close

from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.part import Part
from counterpoint.score import Dot, MaxSim, Mix, Sum

A, B, C = Dot("cls"), MaxSim("words"), MaxSim("words", exact=True)
Q = {
    "cls": oracle.vectors([[([1, 0, 2], 1)], [([0, 1, 0], 1)]]),
    "words": oracle.vectors([[([1, 0, 0], 5), ([0, 1, 0], 6)], [([1, 1, 1], 7)]]),
}
D = {
    "cls": oracle.vectors([[([3, 1, 1], 1)], [([1, 1, 1], 1)], [([0, 0, 2], 1)]]),
    "words": oracle.vectors([[([2, 0, 0], 5)], [], [([0, 3, 0], 6), ([1, 0, 1], 5)]]),
}


def one(representation, index):
    def pick(v):
        return type(v)(v.values[[index]], v.mask[[index]], v.ids[[index]])

    return {name: pick(v) for name, v in representation.items()}


def test_sums_and_multiples_are_flat():
    scorer = 2 * (0.5 * A + (B + 0.1 * C)) + A
    assert isinstance(scorer, Sum)
    assert list(scorer.parts) == [A, B, C, A] and scorer.weights == [1.0, 2.0, 0.2, 1.0]
    assert_close(scorer(Q, D), 2 * A(Q, D) + 2 * B(Q, D) + 0.2 * C(Q, D))
    assert torch.equal((A * 3)(Q, D), (3 * A)(Q, D))


def test_only_scorers_are_added_and_only_numbers_multiply():
    for wrong in (lambda: A + 1, lambda: A * B, lambda: "2" * A, lambda: True * A):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ConfigError, match="2 of them, 1 weights"):
        Sum([A, B], [0.1])
    with pytest.raises(ConfigError, match="found 0"):
        Sum([])


def test_a_sum_survives_a_round_trip():
    scorer = 0.3 * A + Mix([B, C])
    again = Part.from_dict(scorer.to_dict())
    assert again.to_dict() == scorer.to_dict()
    assert torch.equal(again.setup()(Q, D), scorer.setup()(Q, D))


def test_mix_starts_even_and_learns():
    mix = Mix([A, B]).setup()
    assert_close(mix(Q, D), 0.5 * A(Q, D) + 0.5 * B(Q, D))
    with torch.no_grad():
        mix.gamma_.fill_(0.4)
    sigma = 1 / (1 + math.exp(-0.4))
    assert_close(mix(Q, D), sigma * A(Q, D) + (1 - sigma) * B(Q, D))
    mix(Q, D).sum().backward()
    expected = sigma * (1 - sigma) * (A(Q, D) - B(Q, D)).sum()
    assert mix.gamma_.grad is not None
    assert_close(mix.gamma_.grad[0], expected)


def test_mix_of_three_is_convex():
    mix = Mix([A, B, C]).setup()
    with torch.no_grad():
        mix.gamma_.copy_(torch.tensor([1.0, -2.0]))
    raw = [math.exp(1), math.exp(-2), 1]
    assert_close(mix.weights.detach(), torch.tensor([x / sum(raw) for x in raw]))


def test_mix_before_setup_and_with_one_part():
    with pytest.raises(NotFittedError, match="setup"):
        Mix([A, B])(Q, D)
    with pytest.raises(ConfigError, match="at least two"):
        Mix([A])


def test_mix_is_saved_with_its_weights(tmp_path):
    mix = Mix([A, B]).setup()
    with torch.no_grad():
        mix.gamma_.fill_(-1.5)
    mix.save(tmp_path / "mix")
    assert torch.equal(Part.load(tmp_path / "mix")(Q, D), mix(Q, D))


def test_explanations_carry_every_weight_above_them():
    mix = Mix([A, B]).setup()
    scorer = 0.3 * A + 2 * mix
    found = scorer.explain(one(Q, 0), one(D, 2))
    assert [child.label for child in found.children] == ["0.3 × Dot(cls)", "2 × mix"]
    assert [child.label for child in found.children[1].children] == ["0.5 × Dot(cls)", "0.5 × MaxSim(words)"]
    assert [leaf.rows for leaf in found.leaves()] == [None, None, (0, 1), (1, 0)]
    # Dot 4, MaxSim rows 1 and 3: 0.3·4, 2·0.5·4, 2·0.5·1, 2·0.5·3
    assert [leaf.score for leaf in found.leaves()] == pytest.approx([1.2, 4.0, 1.0, 3.0])
    assert found.score == scorer(Q, D)[0, 2].item() == pytest.approx(9.2)
