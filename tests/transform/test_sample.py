import numpy as np
import pytest
import torch

from counterpoint.errors import DataError, ShapeError
from counterpoint.transform.sample import sample_rows


def numbered(n):
    return torch.arange(n, dtype=torch.float32)[:, None].repeat(1, 2)


def test_few_rows_are_all_kept_in_their_order():
    found, count = sample_rows([numbered(5).numpy(), numbered(0), numbered(3)], 2, 8, 0)
    assert found[:, 0].tolist() == [0, 1, 2, 3, 4, 0, 1, 2] and count == 8 and found.dtype == torch.float32


@pytest.mark.parametrize("piece", [1, 7, 100, 1000])
def test_of_many_the_same_are_kept_whatever_pieces_they_come_in(piece):
    found, count = sample_rows(iter(numbered(1000).split(piece)), 2, 50, 3)
    assert count == 1000 and found.shape == (50, 2)
    # By hand: the 50 rows that drew the smallest numbers.
    drawn = np.random.default_rng(3).random(1000)
    assert found[:, 0].tolist() == sorted(np.argsort(drawn)[:50].tolist())


def test_every_row_has_the_same_chance():
    kept = torch.cat([sample_rows(numbered(300).split(60), 2, 30, seed)[0] for seed in range(100)])
    thirds = torch.bincount((kept[:, 0] // 100).long(), minlength=3) / len(kept)
    assert (thirds - 1 / 3).abs().max() < 0.04  # standard error .0086
    assert not torch.equal(
        sample_rows([numbered(300)], 2, 30, 0)[0], sample_rows([numbered(300)], 2, 30, 1)[0]
    )


def test_what_is_wrong_is_named():
    with pytest.raises(ShapeError, match=r"rows of 2 components, found shape \(3, 4\)"):
        sample_rows([torch.ones(3, 4)], 2, 5, 0)
    with pytest.raises(DataError, match="NaN or infinite"):
        sample_rows([torch.full((3, 2), torch.inf)], 2, 5, 0)
