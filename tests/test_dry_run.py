"""Modules without memory: shapes are there, counts are bounded, and nothing stays behind."""

import pytest
import torch
from torch import nn

from counterpoint.dry_run import dry_run
from counterpoint.errors import ArtifactError


def test_shapes_without_values():
    with dry_run(2):
        made = nn.Linear(10**6, 10**6)
    assert made.weight.shape == (10**6, 10**6) and made.weight.is_meta
    assert not nn.Linear(2, 2).weight.is_meta


def test_far_more_layers_than_tensors():
    with pytest.raises(ArtifactError, match="than the weights file has tensors \\(3\\)"), dry_run(3):
        nn.ModuleList(nn.Linear(1, 1) for _ in range(10**9))
    assert len(nn.ModuleList(nn.Linear(1, 1) for _ in range(2000))) == 2000  # the count has ended


def test_a_size_of_nothing_warns_of_nothing(recwarn):
    with dry_run(1):
        assert nn.Linear(3, 0).weight.numel() == 0
    assert not recwarn.list


def test_random_numbers_are_not_used_up():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    with dry_run(10):
        nn.Linear(8, 8)
    assert torch.equal(torch.rand(4), expected)
