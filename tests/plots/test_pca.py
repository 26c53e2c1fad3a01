"""The plane of the first two components is the best one, and every group is drawn in it."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from counterpoint.errors import ConfigError
from counterpoint.plots.pca import POINTS, pca_plot, principal_plane


@pytest.mark.parametrize("shape", [(40, 7), (6, 20)])
def test_equals_scikit_learns(shape):
    rows = 3 + np.random.default_rng(0).normal(size=shape) * np.arange(1, shape[1] + 1)
    theirs = PCA(2, svd_solver="full").fit(rows)
    places, shares = principal_plane(rows.astype(np.float32))
    np.testing.assert_allclose(np.abs(places), np.abs(theirs.transform(rows)), rtol=1e-4, atol=1e-4)
    assert shares == pytest.approx(theirs.explained_variance_ratio_, rel=1e-4)
    assert (places[np.abs(places).argmax(0), [0, 1]] > 0).all()  # so that signs are those of the data


def test_vectors_that_are_one_point_are_drawn_there():
    places, shares = principal_plane(np.ones((4, 3)))
    assert not places.any() and shares == (0, 0)


def drawn(axes):
    """Numbers of points by label, and labels from the lowest layer to the highest."""
    layers = sorted(axes.collections, key=lambda points: points.get_zorder())
    return {points.get_label(): len(points.get_offsets()) for points in layers}


def test_every_group_and_the_narrowest_on_top():
    rng = np.random.default_rng(0)
    groups = {
        "queries": 0.01 * rng.normal(size=(5, 4)),
        "relevant documents": rng.normal(size=(3, 4)),
        "other documents": 9 * rng.normal(size=(2 * POINTS + 2, 4)),
    }
    axes = pca_plot(groups, "a title").axes
    assert list(drawn(axes)) == [
        f"other documents ({2 * (POINTS + 1) // 3 + 1:,})",
        "relevant documents (3)",
        "queries (5)",
    ]
    assert list(drawn(axes).values()) == [2 * (POINTS + 1) // 3 + 1, 3, 5]
    assert axes.get_title() == "a title" and "% of the variance" in axes.get_xlabel()
    del groups["relevant documents"]
    assert len(drawn(pca_plot(groups).axes)) == 2


def test_what_cannot_be_drawn():
    with pytest.raises(ConfigError, match="unknown group 'passages'; it must be one of queries"):
        pca_plot({"passages": np.eye(3)})
    with pytest.raises(ConfigError, match=r"three vectors of two components, found an array of \(2, 3\)"):
        pca_plot({"queries": np.eye(3)[:2]})
