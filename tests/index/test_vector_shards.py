"""Vectors of documents in safetensors files: written in bounded pieces, read from anywhere, checked."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from counterpoint.errors import DataError
from counterpoint.files import sha256_file
from counterpoint.index import vector_shards
from counterpoint.index.vector_shards import ExportedSet, Shard, ShardWriter, VectorShards, shard_name
from counterpoint.types import Document, Ragged

DOCUMENTS = [Document(f"d{i}", f"text {i}") for i in range(7)]
SETS = {
    "mean": ExportedSet(3, True, False, False, "int8"),
    "words": ExportedSet(2, False, True, False, "int8"),
    "l": ExportedSet(4, False, True, True, "float32"),
}


def rows(first, last):
    """Vectors of documents `first` to `last`; document i has i words."""
    lengths = np.arange(first, last)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.arange(offsets[-1]) + 2**32 - 1 - offsets[-1]
    some = np.arange(first, last, dtype=np.float32)
    return {
        "mean": Ragged(np.repeat(some[:, None], 3, 1), np.arange(last - first + 1)),
        "words": Ragged(np.repeat(np.repeat(some, lengths)[:, None], 2, 1), offsets, ids),
        "l": Ragged(np.zeros((offsets[-1], 0), np.float32), offsets, ids),
    }


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Seven documents in batches of two and one, in files of about two documents."""
    monkeypatch.setattr(vector_shards, "BYTES", 60)
    writer = ShardWriter(tmp_path, SETS)
    for first, last in ((0, 2), (2, 4), (4, 5), (5, 7)):
        writer.append(DOCUMENTS[first:last], rows(first, last))
    writer.close()
    assert len(writer.shards) > 1
    return writer.shards


def opened(folder, shards, wanted=tuple(SETS)):
    return VectorShards(folder, SETS, shards, wanted, {})


def tampered(folder, shards, number, change):
    """The shards after a change to the arrays of one, whose checksum is made to fit."""
    path = folder / shard_name(number)
    arrays = load_file(path)
    change(arrays)
    save_file(arrays, path)
    return [Shard(one.documents, sha256_file(path)) if i == number else one for i, one in enumerate(shards)]


@pytest.mark.parametrize("batch", [1, 2, 3, 7])
@pytest.mark.parametrize("first", [0, 3])
def test_any_range_of_documents_comes_back(written, tmp_path, batch, first):
    shards = opened(tmp_path, written)
    for at in range(first, 7, batch):
        end = min(7, at + batch)
        found, expected = shards.of(DOCUMENTS[at:end], at), rows(at, end)
        for name in ("mean", "words"):
            np.testing.assert_array_equal(found[name].values, expected[name].values)
        for name in SETS:
            np.testing.assert_array_equal(found[name].offsets, expected[name].offsets)
        assert found["l"].values.shape[1] == 4 and found["mean"].ids is None
        whole = np.concatenate([rows(0, 2)["words"].ids, rows(2, 4)["words"].ids, rows(4, 5)["words"].ids])
        whole = np.concatenate([whole, rows(5, 7)["words"].ids])
        start = sum(range(at))
        np.testing.assert_array_equal(found["words"].ids, whole[start : start + sum(range(at, end))])


def test_only_wanted_sets_are_read(written, tmp_path):
    assert opened(tmp_path, written, ("mean",)).of(DOCUMENTS[:2], 0).keys() == {"mean"}


def test_more_documents_than_there_are_vectors_of_are_refused(written, tmp_path):
    with pytest.raises(DataError, match="vectors of 7 documents, and the corpus has more, such as 'new'"):
        opened(tmp_path, written).of([*DOCUMENTS[5:], Document("new", "")], 5)


@pytest.mark.parametrize(
    "other",
    [Document("d3", "text 3!"), Document("x", "text 3"), Document("d3", "3", "text"), DOCUMENTS[4]],
    ids=["text", "id", "title", "order"],
)
def test_vectors_of_other_documents_are_refused(written, tmp_path, other):
    with pytest.raises(DataError, match=f"not those of '{other.id}': the corpus was changed"):
        opened(tmp_path, written).of([*DOCUMENTS[:3], other], 0)


def put(key, value):
    def change(arrays):
        arrays[key] = value(arrays[key]) if callable(value) else value

    return change


FAULTS = {
    "missing array": (lambda arrays: arrays.pop("mean.values"), "'mean.values' is missing"),
    "another array": (put("more.values", np.zeros(1)), "'more.values' is in none of the sets"),
    "static values": (put("l.values", np.zeros((1, 4), np.float32)), "'l.values' is in none of the sets"),
    "shape": (put("mean.values", lambda x: x[:, :2].copy()), r"'mean' has values of shape \(3, 2\)"),
    "a row less": (put("mean.values", lambda x: x[:-1]), r"'mean' has values of shape \(2, 3\)"),
    "one dimension": (put("mean.values", lambda x: x.ravel()), r"'mean' has values of shape \(9,\)"),
    "no dimension": (put("words.offsets", np.array(0)), r"'words.offsets' has shape \(\)"),
    "type": (put("mean.values", lambda x: x.astype(np.float64)), "values of type float64, expected float32"),
    "type of ids": (put("words.ids", lambda x: x.astype(np.int32)), "'words.ids' has type int32"),
    "type of offsets": (put("words.offsets", lambda x: x.astype(float)), "'words.offsets' has type float64"),
    "falling": (put("words.offsets", lambda x: np.array([0, 99, 9, x[-1]])), "do not rise from 0"),
    "beginning": (put("words.offsets", lambda x: np.array([1, 1, 2, x[-1]])), "do not rise from 0"),
    "huge": (put("words.offsets", np.array([0, 1, 2, 2**62])), r"'words' has values of shape"),
    "two of pooled": (put("mean.offsets", np.array([0, 0, 1, 3])), "rise from 0 by 1"),
    "documents": (put("documents", lambda x: x[:1]), r"'documents' has shape \(1,\)"),
    "ids": (put("words.ids", lambda x: x[:-1]), "'words.ids' has shape"),
    "NaN": (put("mean.values", lambda x: x * np.nan), "a vector of 'd4' in 'mean' is NaN or infinite"),
    "infinite": (put("words.values", lambda x: x + np.inf), "a vector of 'd4' in 'words' is NaN or infinite"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_not_as_described_is_refused(written, tmp_path, fault):
    change, message = FAULTS[fault]
    shards = tampered(tmp_path, written, 1, change)
    with pytest.raises(DataError, match=message) as raised:
        opened(tmp_path, shards).of(DOCUMENTS, 0)
    assert "00002.safetensors" in str(raised.value) and "--no-vectors" in str(raised.value)


def test_files_that_are_missing_or_damaged_are_refused(written, tmp_path):
    path = tmp_path / shard_name(1)
    raw = path.read_bytes()
    for bad, fits, message in [
        (raw[:-1] + b"?", False, "does not match the checksum"),
        (raw[:-1], True, "cannot be read as safetensors"),
        (b"", True, "cannot be read as safetensors"),
        (b"\xff" * 64, True, "cannot be read as safetensors"),
    ]:
        path.write_bytes(bad)
        shards = list(written)
        shards[1] = Shard(written[1].documents, sha256_file(path) if fits else written[1].sha256)
        with pytest.raises(DataError, match=message):
            opened(tmp_path, shards).of(DOCUMENTS, 0)
    path.unlink()
    with pytest.raises(DataError, match="missing"):
        opened(tmp_path, written).of(DOCUMENTS, 0)
