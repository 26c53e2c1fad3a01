"""k-means on two levels, against full comparisons."""

import numpy as np
import pytest

from counterpoint.index import clusters as clusters_module
from counterpoint.index.clusters import Clusters, clusters_of, in_cells


def around(rng, count, dim, places, spread=0.05):
    """Rows near a few places."""
    centres = rng.normal(size=(places, dim))
    return (centres[rng.integers(0, places, count)] + spread * rng.normal(size=(count, dim))).astype(
        np.float32
    )


def error(rows, clusters):
    return ((rows - clusters.centroids[clusters.nearest(rows)]) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("count", [1, 2, 3, 16, 100])
def test_there_are_about_as_many_as_asked_for_and_each_cell_has_some(count):
    rows = np.random.default_rng(0).normal(size=(3000, 6)).astype(np.float32)
    found = clusters_of(rows, count)
    assert found.starts[0] == 0 and found.starts[-1] == len(found.centroids)
    assert (np.diff(found.starts) > 0).all() and len(found.cells) == len(found.starts) - 1
    assert abs(len(found.centroids) - count) <= max(1, len(found.cells))


def test_every_cell_looked_into_gives_the_nearest_of_all(monkeypatch):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(500, 5)).astype(np.float32)
    found = clusters_of(rows, 40)
    distances = ((rows[:, None].astype(np.float64) - found.centroids) ** 2).sum(axis=2)
    near = distances[np.arange(500), found.nearest(rows)]
    assert (near < distances.min(axis=1) * 1.001 + 1e-6).mean() > 0.8  # of two cells
    monkeypatch.setattr(clusters_module, "PROBED", len(found.cells))
    near = distances[np.arange(500), found.nearest(rows)]
    np.testing.assert_allclose(near, distances.min(axis=1), rtol=1e-4, atol=1e-5)


def test_rows_around_a_few_places_are_near_their_centroids():
    rows = around(np.random.default_rng(2), 4000, 8, 20)
    assert error(rows, clusters_of(rows, 64)) < 8 * 0.05**2 * 1.05


def test_one_machine_gives_the_same_every_time_and_pieces_do_not_matter(monkeypatch):
    rows = np.random.default_rng(3).normal(size=(2000, 7)).astype(np.float16)
    first, second = clusters_of(rows, 32), clusters_of(rows, 32)
    assert first.centroids.tobytes() == second.centroids.tobytes()
    whole = first.nearest(rows.astype(np.float32))
    monkeypatch.setattr(clusters_module, "BLOCK", 300)
    pieces = first.nearest(rows.astype(np.float32))
    assert (whole == pieces).mean() > 0.999  # BLAS may round a product of other shapes in another way


def test_rows_that_are_all_alike_or_one_or_none():
    same = np.ones((50, 3), np.float32)
    found = clusters_of(same, 8)
    assert error(same, found) == 0
    one = clusters_of(same[:1], 8)
    assert len(one.centroids) == 1 and one.nearest(same).tolist() == [0] * 50
    assert one.nearest(same[:0]).tolist() == []


def test_of_equal_centroids_the_first_is_taken():
    twice = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    found = Clusters(np.zeros((1, 2), np.float32), twice, np.array([0, 3]))
    assert found.nearest(np.array([[2, 0], [0, 3]], np.float32)).tolist() == [0, 2]


@pytest.mark.parametrize("count", [1, 2, 40])
def test_centroids_that_are_there_are_found_through_cells(monkeypatch, count):
    rng = np.random.default_rng(4)
    rows, centroids = (rng.normal(size=(n, 5)).astype(np.float32) for n in (500, count))
    found, places = in_cells(centroids)
    assert sorted(places.tolist()) == list(range(count)) and (np.diff(found.starts) > 0).all()
    assert np.array_equal(found.centroids, centroids[places])
    distances = ((rows[:, None].astype(np.float64) - centroids) ** 2).sum(axis=2)
    near = distances[np.arange(500), places[found.nearest(rows)]]
    assert (near < distances.min(axis=1) * 1.001 + 1e-6).mean() > 0.8  # of two cells
    monkeypatch.setattr(clusters_module, "PROBED", len(found.cells))
    near = distances[np.arange(500), places[found.nearest(rows)]]
    np.testing.assert_allclose(near, distances.min(axis=1), rtol=1e-4, atol=1e-5)
