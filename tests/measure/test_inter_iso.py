"""InterIso by loops, of one pair and of many."""

import math

import numpy as np
import pytest

from counterpoint.errors import DataError, ShapeError
from counterpoint.measure.inter_iso import (
    all_inter_iso,
    delta_inter_iso,
    inter_iso,
    mean_rows,
    pair_inter_iso,
    split_inter_iso,
)
from counterpoint.types import Ragged


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def unit(row):
    return [value / math.sqrt(dot(row, row)) for value in row]


def test_inter_iso_is_the_mean_over_all_pairs(golden):
    rng = np.random.default_rng(0)
    mask = rng.random((2, 12)) < 0.6
    query, document = rng.normal(size=(2, 12, 5))
    kept = query[mask[0]], document[mask[1]]  # what is padding is not there
    loops = np.mean([dot(unit(a), unit(b)) for a in kept[0] for b in kept[1]])
    assert inter_iso(*kept) == pytest.approx(loops, abs=1e-6)
    raw = np.mean([dot(a, b) for a in kept[0] for b in kept[1]])
    assert inter_iso(*kept, unit=False) == pytest.approx(raw, abs=1e-6)
    case = golden("interiso")
    found = inter_iso(np.array(case["inputs"]["Eq"]), np.array(case["inputs"]["Ed"]))
    assert found == pytest.approx(case["expected"]["interiso"], abs=case["tol"])


def test_inter_iso_of_many_pairs():
    rng = np.random.default_rng(1)
    sides = [[rng.normal(size=(n, 4)) for n in lengths] for lengths in ([3, 0, 1, 5], [2, 4, 0, 1])]
    queries, documents = (Ragged.from_list(rows, dim=4) for rows in sides)
    found = pair_inter_iso(queries, documents)
    assert np.isnan(found[[1, 2]]).all()
    for at in (0, 3):
        loops = np.mean([dot(unit(a), unit(b)) for a in sides[0][at] for b in sides[1][at]])
        assert found[at] == pytest.approx(loops)
    raw = np.mean([dot(a, b) for a in sides[0][0] for b in sides[1][0]])
    assert pair_inter_iso(queries, documents, unit=False)[0] == pytest.approx(raw)
    every = all_inter_iso(queries, documents)
    np.testing.assert_allclose(np.diag(every), found)
    assert every[0, 3] == pytest.approx(inter_iso(sides[0][0], sides[1][3]))
    assert np.isnan(every[1]).all() and np.isnan(every[:, 2]).all() and np.isnan(every).sum() == 7
    own, other = split_inter_iso(every, [(0, 0), (1, 1), (3, 3)])
    assert own == pytest.approx((found[0] + found[3]) / 2)
    rest = [every[q, d] for q in (0, 2, 3) for d in (0, 1, 3) if q != d]
    assert other == pytest.approx(np.mean(rest))
    assert split_inter_iso(every, [])[0] is None and split_inter_iso(every[:1, :1], [(0, 0)])[1] is None
    assert mean_rows(queries).shape == (4, 4) and not mean_rows(queries)[1].any()
    assert delta_inter_iso(found, np.array([0.5, 0.1, 0.1, 0.0])) == pytest.approx(
        (found[0] - 0.5 + found[3]) / 2
    )


def test_bad_input():
    with pytest.raises(ShapeError, match=r"\(2, 3\) and \(2, 4\)"):
        inter_iso(np.ones((2, 3)), np.ones((2, 4)))
    with pytest.raises(ShapeError, match=r"\(0, 3\)"):
        inter_iso(np.ones((0, 3)), np.ones((2, 3)))
    one, two = Ragged.from_list([np.ones((1, 3))], dim=3), Ragged.from_list([], dim=3)
    with pytest.raises(ShapeError, match="found 1 of 3 and 0 of 3"):
        pair_inter_iso(one, two)
    with pytest.raises(ShapeError, match="queries have 3 components, documents 4"):
        all_inter_iso(two, Ragged.from_list([], dim=4))
    with pytest.raises(ShapeError, match="same pairs"):
        delta_inter_iso(np.ones(2), np.ones(3))
    with pytest.raises(DataError, match="no pair of texts"):
        delta_inter_iso(np.array([np.nan]), np.ones(1))
