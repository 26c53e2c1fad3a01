import torch

from counterpoint.transform import Normalise
from counterpoint.vectors import Vectors


def test_rows_have_length_one_and_zero_stays_zero():
    values = torch.tensor([[[3.0, 4.0], [0.0, 0.0], [5.0, 12.0]]])
    mask = torch.tensor([[True, True, False]])
    found = Normalise()(Vectors(values, mask)).values
    torch.testing.assert_close(found, torch.tensor([[[0.6, 0.8], [0.0, 0.0], [0.0, 0.0]]]))


def test_fit_reads_nothing():
    rows = iter([torch.ones(1, 2)])
    Normalise().fit(rows)
    assert len(list(rows)) == 1
