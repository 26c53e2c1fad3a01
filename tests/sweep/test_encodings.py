"""Vectors come back exactly as they were encoded, and no text is encoded twice."""

import random
import sqlite3

import numpy as np
import pytest
from tests.sweep.fake import CountingModel

from counterpoint.errors import ArtifactError
from counterpoint.sweep import CachedModel, encodings

rng = random.Random(3)
WORDS = [f"word{i}" for i in range(60)]
MANY = [" ".join(rng.choices(WORDS, k=rng.randrange(30))) for _ in range(200)] + ["", "ä\ud800 \n"]


def same(found, expected):
    assert list(found) == list(expected)
    for name, packed in expected.items():
        assert found[name].values.dtype == packed.values.dtype
        np.testing.assert_array_equal(found[name].values, packed.values)
        np.testing.assert_array_equal(found[name].offsets, packed.offsets)
        assert (found[name].ids is None) == (packed.ids is None)
        if packed.ids is not None:
            assert found[name].ids.dtype == packed.ids.dtype
            np.testing.assert_array_equal(found[name].ids, packed.ids)


class Replacing(CountingModel):
    """HashModel's words, hashed by a function that takes any character."""

    def encode_document(self, texts):
        return super().encode_document([text.encode("utf-8", "replace").decode() for text in texts])


def test_exactly_what_the_model_makes_first_and_again(tmp_path):
    model, plain = Replacing(), Replacing()
    texts = [*MANY, MANY[5], MANY[0]]
    with CachedModel(model, tmp_path / "e" / "x.sqlite") as cached:
        same(cached.encode_document(texts), plain.encode_document(texts))
        assert len(model.documents) == len(set(texts))
        same(cached.encode_document(texts[::-1]), plain.encode_document(texts[::-1]))
        same(cached.encode_document([]), plain.encode_document([]))
    assert len(model.documents) == len(set(texts))
    with CachedModel(model, tmp_path / "e" / "x.sqlite") as again:
        same(again.encode_document(texts), plain.encode_document(texts))
        assert len(model.documents) == len(set(texts))
        assert again.sets == plain.sets and again.fingerprint() == plain.fingerprint()
        assert again.spans(["a b"], "words", "document") == plain.spans(["a b"], "words", "document")
        (ids,), (wanted,) = (m.row_ids(["a b"], "words", "document") for m in (again, plain))
        assert ids.tolist() == wanted.tolist() and len(ids) == 2


def test_queries_and_documents_are_kept_apart(tmp_path):
    model = CountingModel()
    model.encode_query = lambda texts: CountingModel(seed=9).encode_document(texts)
    with CachedModel(model, tmp_path / "x.sqlite") as cached:
        documents, queries = cached.encode_document(["one text"]), cached.encode_query(["one text"])
        same(cached.encode_document(["one text"]), documents)
        same(cached.encode_query(["one text"]), queries)
    assert not np.array_equal(documents["mean"].values, queries["mean"].values)


def test_batches_of_like_length_each_committed(tmp_path, monkeypatch):
    monkeypatch.setattr(encodings, "BATCH", 10)
    model, path, seen = CountingModel(), tmp_path / "x.sqlite", []
    inner = CountingModel.encode_document

    def watched(texts):
        with sqlite3.connect(path) as other:  # what another process would find
            seen.append((len(texts), other.execute("SELECT count(*) FROM encodings").fetchone()[0]))
        if len(seen) == 4:
            raise KeyboardInterrupt
        return inner(model, texts)

    model.encode_document = watched
    texts = list(dict.fromkeys(MANY[:60]))
    progress = []
    with CachedModel(model, path, progress.append) as cached:
        with pytest.raises(KeyboardInterrupt):
            cached.encode_document(texts)
        assert seen == [(10, 0), (10, 10), (10, 20), (10, 30)] and progress == [10, 10, 10]
        assert [len(text) for text in model.documents] == sorted(map(len, texts))[:30]
        model.encode_document = lambda texts: inner(model, texts)
        same(cached.encode_document(texts), CountingModel().encode_document(texts))
    assert sorted(model.documents) == sorted(texts)


def test_another_models_file_and_a_damaged_one(tmp_path):
    path = tmp_path / "x.sqlite"
    with CachedModel(CountingModel(), path) as cached:
        cached.encode_document(["one text"])
    with pytest.raises(ArtifactError, match="contains encodings of the model hash-16-0"):
        CachedModel(CountingModel(seed=1), path)
    with sqlite3.connect(path) as database:
        database.execute("UPDATE encodings SET value = substr(value, 1, length(value) - 4)")
    with CachedModel(CountingModel(), path) as cached, pytest.raises(ArtifactError, match="damaged"):
        cached.encode_document(["one text"])
    path.write_bytes(b"not a database, but long enough to look like one" * 50)
    with pytest.raises(ArtifactError, match="x.sqlite: cannot store encodings .*not a database"):
        CachedModel(CountingModel(), path)
