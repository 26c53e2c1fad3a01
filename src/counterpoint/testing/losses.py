"""The contract of losses, and random steps with all kinds of masks to check it with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random

import torch
from torch import Tensor
from torch.nn import functional
from torch.testing import assert_close

from counterpoint.config import restore
from counterpoint.learn import Loss, Step, Targets
from counterpoint.testing.rules import making, try_rules
from counterpoint.vectors import Vectors

__all__ = ["RULES", "check_loss", "some_step"]

NAN, INF = float("nan"), float("inf")


def check_loss(declare: Callable[[], Loss], draws: int = 12) -> None:
    """Check a loss that uses the sets `cls` (one row per text) and `words`, of 3 components.

    Args:
        declare: makes a loss.
        draws: random steps per rule.

    Raises:
        AssertionError: naming the broken rule.

    Example:
        >>> from counterpoint.learn import MarginMSE
        >>> check_loss(MarginMSE, draws=2)
    """
    making(declare, "lambda: MarginMSE()")
    try_rules(RULES, lambda: declare().setup(), draws)


def is_a_finite_scalar(loss: Loss, random: Random) -> None:
    """The loss is one finite number with a finite gradient, for scores of any size."""
    step = some_step(random, 1.0)
    step, leaves = _learning(replace(step, scores=step.scores * random.choice([1.0, 1e4])))
    found = loss(step)
    assert isinstance(found, Tensor), f"the loss is a {type(found).__name__}, not a tensor"
    assert found.shape == () and torch.isfinite(found), f"the loss is {found}"
    assert found.requires_grad, "the loss has no gradient"
    found.backward()
    reached = [leaf.grad for leaf in leaves if leaf.grad is not None]
    assert reached, "no gradient reaches scores or vectors"
    assert all(torch.isfinite(gradient).all() for gradient in reached), "a gradient is not finite"


def ignores_the_order_of_documents(loss: Loss, random: Random) -> None:
    """The order of a batch's documents does not matter."""
    step = some_step(random)
    order = torch.arange(len(step.d["cls"])).roll(2).flip(0)
    own = step.targets.own
    moved = order.argsort()[own.clamp(min=0)].masked_fill(own < 0, -1)
    targets = replace(step.targets, own=moved, allowed=step.targets.allowed[:, order])
    d = {name: found.take(order) for name, found in step.d.items()}
    again = loss(replace(step, d=d, scores=step.scores[:, order], targets=targets))
    assert_close(again, loss(step), rtol=1e-4, atol=1e-4)


def ignores_padding(loss: Loss, random: Random) -> None:
    """Rows that a mask hides do not matter, whatever their values."""
    step = some_step(random)
    q, d = (
        {name: found if name == "cls" else _padded(found) for name, found in side.items()}
        for side in (step.q, step.d)
    )
    assert_close(loss(replace(step, q=q, d=d)), loss(step))


def ignores_own_documents_that_are_not_there(loss: Loss, random: Random) -> None:
    """The -1 entries of a query with fewer own documents have no effect."""
    step = some_step(random)
    own, teacher = functional.pad(step.targets.own, (0, 1), value=-1), step.targets.teacher
    assert teacher is not None
    targets = replace(step.targets, own=own, teacher=functional.pad(teacher, (0, 1), value=NAN))
    assert_close(loss(replace(step, targets=targets)), loss(step))


def ignores_padded_documents(loss: Loss, random: Random) -> None:
    """A document without rows that no query may use has no effect, however high its score."""
    step = some_step(random)
    d = {
        name: Vectors(
            functional.pad(found.values, (0, 0, 0, 0, 0, 1)),
            functional.pad(found.mask, (0, 0, 0, 1)),
            None if found.ids is None else functional.pad(found.ids, (0, 0, 0, 1)),
        )
        for name, found in step.d.items()
    }
    scores = functional.pad(step.scores, (0, 1), value=1e4)
    targets = replace(step.targets, allowed=functional.pad(step.targets.allowed, (0, 1)))
    assert_close(loss(replace(step, d=d, scores=scores, targets=targets)), loss(step))


def has_no_gradient_without_weight(loss: Loss, random: Random) -> None:
    """With weight 0, the loss and its gradients are 0."""
    step, leaves = _learning(some_step(random))
    found = (0.0 * loss)(step)
    found.backward()
    assert found.item() == 0
    assert not any(leaf.grad.any() for leaf in leaves if leaf.grad is not None)


def is_multiplied_by_its_weight(loss: Loss, random: Random) -> None:
    """With weight 3, the loss is three times as large."""
    step = some_step(random)
    assert_close((3.0 * loss)(step), 3 * loss(step))


def survives_the_trip_through_plain_data(loss: Loss, random: Random) -> None:
    """A loss restored from `to_dict` gives the same number."""
    step = some_step(random)
    again = restore(loss.to_dict()).setup()
    assert type(again) is type(loss) and again.to_dict() == loss.to_dict()
    assert torch.equal(again(step), loss(step))


RULES = (
    is_a_finite_scalar,
    ignores_the_order_of_documents,
    ignores_padding,
    ignores_own_documents_that_are_not_there,
    ignores_padded_documents,
    has_no_gradient_without_weight,
    is_multiplied_by_its_weight,
    survives_the_trip_through_plain_data,
)


def _learning(step: Step) -> tuple[Step, list[Tensor]]:
    """Make a step's scores and vectors leaves that require gradients. Returns the step and the leaves."""
    step = replace(
        step,
        scores=step.scores.clone().requires_grad_(),
        q={name: found.with_values(found.values.clone().requires_grad_()) for name, found in step.q.items()},
        d={name: found.with_values(found.values.clone().requires_grad_()) for name, found in step.d.items()},
    )
    sets = [*step.q.values(), *step.d.values()]
    return step, [step.scores, *(found.values for found in sets)]


def _padded(rows: Vectors) -> Vectors:
    values = functional.pad(rows.values, (0, 0, 0, 2), value=NAN)
    ids = None if rows.ids is None else functional.pad(rows.ids, (0, 2), value=7)
    return Vectors(values, functional.pad(rows.mask, (0, 2)), ids)


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
