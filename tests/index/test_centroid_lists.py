"""The lists of centroids, against loops over all rows."""

import numpy as np
import pytest

from counterpoint.errors import ArtifactError
from counterpoint.index import centroid_lists as lists_module
from counterpoint.index.centroid_lists import CentroidLists, write_lists
from counterpoint.index.checked import CheckedFolder


def written(folder, clusters, lengths, centroids):
    folder.mkdir(exist_ok=True)
    np.save(folder / "v.centroids.npy", np.zeros((centroids, 1), np.uint8))
    np.save(folder / "v.clusters.npy", np.asarray(clusters, np.uint16))
    np.save(folder / "v.lengths.npy", np.asarray(lengths, np.uint32))
    write_lists(folder, "v")
    return CentroidLists(CheckedFolder(folder), "v", centroids)


@pytest.mark.parametrize("held", [2**24, 40, 1])
def test_a_list_has_the_documents_with_a_row_of_its_cluster_once_and_rising(tmp_path, monkeypatch, held):
    monkeypatch.setattr(lists_module, "HELD", held)
    monkeypatch.setattr(lists_module, "CHUNK", 50)
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, 60)
    clusters = rng.integers(0, 30, lengths.sum())
    clusters[clusters == 7] = 8  # a centroid that no row is nearest to
    lists = written(tmp_path, clusters, lengths, 30)
    owners = np.repeat(np.arange(60), lengths)
    for centroid in range(30):
        wanted = sorted({int(d) for d, c in zip(owners, clusters, strict=True) if c == centroid})
        assert lists.documents(centroid).tolist() == wanted
    assert lists.documents(7).tolist() == []


def test_far_apart_documents(tmp_path):
    lengths = np.zeros(200_000, np.int64)
    lengths[[0, 3, 70_000, 199_999]] = 1
    lists = written(tmp_path, [0, 1, 1, 1], lengths, 2)
    assert lists.documents(0).tolist() == [0]
    assert lists.documents(1).tolist() == [3, 70_000, 199_999]


def test_lists_that_do_not_fit_are_told(tmp_path):
    written(tmp_path, [0, 1, 1], [1, 2], 2)
    with pytest.raises(ArtifactError, match="do not fit its centroids"):
        CentroidLists(CheckedFolder(tmp_path), "v", 3)
    np.save(tmp_path / "v.list_ends.npy", np.array([1, 90], np.uint32))
    with pytest.raises(ArtifactError, match="do not fit their lengths"):
        CentroidLists(CheckedFolder(tmp_path), "v", 2).documents(0)
