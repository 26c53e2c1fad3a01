"""More rows and bytes than 32 bits count: sparse files, of which only the ends are looked at."""

import os

import numpy as np
import pytest

from counterpoint.errors import DataError
from counterpoint.index import build_index
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.kinds import KINDS
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import HEADER_BYTES, NpyWriter, _header, ends_type
from counterpoint.index.paths import Meter
from counterpoint.index.piece import Piece
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.store import Asked
from counterpoint.types import Document, Ragged, rows_of_sets

MANY = 2**32 + 2**31  # rows of the first document
DIM = 8


def sparse(path, like, before):
    """A `.npy` file of `before` rows of zeros that take no room on the disk, and then those of an array."""
    with open(path, "wb") as file:
        file.write(_header(like.dtype, (before + len(like), *like.shape[1:])))
        file.seek(HEADER_BYTES + before * like.dtype.itemsize * int(np.prod(like.shape[1:])))
        file.write(like.tobytes())


def store(folder, codec, vectors, before):
    """A store of one document of `before` empty rows and of the documents of `vectors`."""
    layout, folder = SetLayout(DIM, "several", codec), folder / f"{codec}-{before}"
    with SegmentWriter(folder, {"v": layout}) as writer:
        writer.append([Document(str(i), "") for i in range(len(vectors))], {"v": vectors})
    for path in folder.glob("v.*.npy"):
        if ".raw" in path.name:
            continue
        found = np.load(path)
        if path.name == "v.lengths.npy":
            np.save(path, np.concatenate([[before // 2, before - before // 2], found]).astype(np.uint32))
        elif "centre" in path.name:
            np.save(path, np.concatenate([np.zeros_like(found[:1]), np.zeros_like(found[:1]), found]))
        else:
            sparse(path, found, before)
    return KINDS["several"].open("v", layout, [Piece(CheckedFolder(folder), len(vectors) + 2, layout)])


@pytest.mark.skipif(os.name == "nt", reason="files are not sparse unless asked")
@pytest.mark.parametrize("path", ["compiled", "numpy"])
@pytest.mark.parametrize("codec", ["int8", "1-bit", "4-bit", "float16"])
def test_rows_beyond_32_bits_are_found(tmp_path, monkeypatch, codec, path):
    monkeypatch.setattr("counterpoint.index.paths.WORTH", 0)
    if path == "numpy":
        monkeypatch.setattr(Meter, "kernels", lambda self, products: None)
    rng = np.random.default_rng(0)
    vectors = Ragged.from_list([rng.normal(size=(n, DIM)).astype(np.float32) for n in (3, 0, 5)], dim=DIM)
    small, large = store(tmp_path, codec, vectors, 2), store(tmp_path, codec, vectors, MANY)
    query, some = Asked(rng.normal(size=(4, DIM)).astype(np.float32)), np.array([4, 2, 3])
    assert large.lengths.tolist() == [MANY // 2, MANY - MANY // 2, 3, 0, 5]
    np.testing.assert_array_equal(large.scores(query, some), small.scores(query, some))
    np.testing.assert_array_equal(large.take(some).values, small.take(some).values)
    assert large.scores(query, some).any()
    for row, value in zip(*large.best_rows(query, np.array([4]))[0], strict=True):
        assert 0 <= row < 5 and value


def test_offsets_of_many_rows():
    offsets = np.concatenate([[0], np.cumsum(np.array([2**32 - 1, 2**32 - 1, 7], np.uint32), dtype=np.int64)])
    rows, packed = rows_of_sets(offsets, np.array([2]))
    assert rows.tolist() == [2**33 - 2 + i for i in range(7)] and packed.tolist() == [0, 7]


@pytest.mark.skipif(os.name == "nt", reason="files are not sparse unless asked")
def test_a_file_grows_beyond_32_bits(tmp_path):
    last = np.arange(6, dtype=np.int8).reshape(2, 3)
    with NpyWriter(tmp_path / "x.npy", np.int8, (3,)) as writer:
        writer._file.seek(MANY * 3, os.SEEK_CUR)
        writer.rows = MANY
        writer.append(last)
    array = CheckedFolder(tmp_path).array("x.npy")
    assert len(array) == MANY + 2 and array[np.array([MANY + 1, MANY])].tolist() == last[::-1].tolist()


def test_ends_of_postings_have_64_bits_where_they_need_them():
    assert ends_type(2**32 - 1) is np.uint32 and ends_type(2**32) is np.uint64


def test_documents_beyond_32_bits_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.index.segment.MOST", 2)
    documents = [Document(str(i), "a") for i in range(3)]
    with pytest.raises(DataError, match="at most 2 documents"):
        build_index(documents, None, tmp_path / "i")
    assert not (tmp_path / "i").exists()
