"""RepBERT's margin over the batch: by loops, by PyTorch's own loss, and by hand."""

import pytest
import torch
from hypothesis import given, settings
from tests.learn.losses import loops
from tests.learn.losses.steps import steps, triple
from torch.nn import functional

from counterpoint.errors import ConfigError
from counterpoint.learn import MultiLabelMargin


@settings(deadline=None, max_examples=40)
@given(step=steps())
def test_by_loops(step):
    for margin in (1.0, 0.3):
        expected = loops.multi_label_margin(step, margin)
        assert MultiLabelMargin(margin=margin)(step).item() == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_is_the_loss_that_repbert_takes():
    """Where every query has one document of its own in the batch, PyTorch's to the last digits."""
    scores = torch.randn(6, 12, generator=torch.Generator().manual_seed(0)) * 2
    labels = torch.full((6, 12), -1)
    labels[:, 0] = torch.arange(6) * 2
    step = triple(scores.tolist(), own=[[2 * i, 2 * i + 1] for i in range(6)])
    expected = functional.multilabel_margin_loss(scores, labels)
    assert MultiLabelMargin()(step).item() == pytest.approx(expected.item(), rel=1e-6)


def test_by_hand():
    # Query 0: (1 - 3 + 2.5) + max(0, 1 - 3 + 1) = 0.5; query 1: (1 - 0 + 0) + (1 - 0 + 1) = 3; each by 3.
    step = triple([[3.0, 2.5, 1.0], [0.0, 0.0, 1.0]], own=[[0, 1], [0, 2]])
    assert MultiLabelMargin()(step).item() == pytest.approx((0.5 / 3 + (1 + 2) / 3) / 2, abs=1e-6)


def test_a_document_known_to_be_relevant_does_not_count():
    step = triple([[3.0, 9.0, 2.5]], own=[[0]], allowed=[[True, False, True]])
    assert MultiLabelMargin()(step).item() == pytest.approx(0.5 / 2)


def test_a_query_with_nothing_but_its_positive_has_loss_0():
    assert MultiLabelMargin()(triple([[0.0, 5.0]], own=[[0, -1]], allowed=[[True, False]])).item() == 0


def test_a_margin_below_0_is_refused():
    with pytest.raises(ConfigError, match="margin must be at least 0, found -1"):
        MultiLabelMargin(margin=-1)
