import numpy as np
import pytest

from counterpoint.errors import ArtifactError, ShapeError
from counterpoint.index.npy import NpyWriter, open_npy


def test_rows_written_in_batches_read_back_as_numpy_reads_them(tmp_path):
    rows = np.arange(12, dtype=np.float16).reshape(4, 3)
    with NpyWriter(tmp_path / "x.npy", np.float16, (3,)) as writer:
        writer.append(rows[:1])
        writer.append(rows[1:])
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), rows)
    np.testing.assert_array_equal(open_npy(tmp_path / "x.npy"), rows)


def test_an_empty_array_is_readable(tmp_path):
    NpyWriter(tmp_path / "x.npy", np.int8, (5,)).close()
    assert open_npy(tmp_path / "x.npy").shape == (0, 5)


def test_a_writer_that_failed_leaves_no_rows(tmp_path):
    with pytest.raises(RuntimeError), NpyWriter(tmp_path / "x.npy", np.int8, (2,)) as writer:
        writer.append(np.ones((3, 2), np.int8))
        raise RuntimeError
    assert len(np.load(tmp_path / "x.npy")) == 0


def test_rows_of_another_kind_are_refused(tmp_path):
    with NpyWriter(tmp_path / "x.npy", np.int8, (2,)) as writer:
        with pytest.raises(ShapeError, match="declared int8"):
            writer.append(np.ones((3, 2), np.float32))
        with pytest.raises(ShapeError):
            writer.append(np.ones((3, 3), np.int8))


@pytest.mark.parametrize(
    "damage", [lambda b: b"", lambda b: b[:40], lambda b: b[:-3], lambda b: b"x" * len(b)]
)
def test_a_damaged_file_is_an_artifact_error(tmp_path, damage):
    path = tmp_path / "x.npy"
    np.save(path, np.arange(10))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ArtifactError, match="x.npy"):
        open_npy(path)


def test_a_pickle_is_never_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ArtifactError):
        open_npy(tmp_path / "x.npy")
