"""How much means and centroids explain of the vectors of documents added later, against loops."""

import json
import zlib

import numpy as np
import pytest
from tests.fakes import HashModel
from tests.index.test_changing import as_format

from counterpoint.cli.main import main
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, IndexSettings, VectorSet, build_index, centroids, merge_rule
from counterpoint.index import checked as checked_module
from counterpoint.index import drift as drift_module
from counterpoint.index.changing import changing
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.coarse import Table
from counterpoint.index.compacting import compact
from counterpoint.index.disk_usage import drift_texts
from counterpoint.index.rotation import rotation
from counterpoint.index.sharding import divide
from counterpoint.library import OpenIndex
from counterpoint.types import Document, Ragged

HERE = tuple(f"word{i}" for i in range(30))
FOREIGN = tuple(f"other{i}" for i in range(30))


class NoisyModel(HashModel):
    """A word has a vector of its own, and as much again that depends on the text."""

    def __init__(self, dim=32, ids=True):
        super().__init__(dim)
        self.ids = ids

    @property
    def sets(self):
        return {"words": VectorSet(self.dim, False, self.ids)}

    def encode_document(self, texts):
        words = super().encode_document(texts)["words"]
        noise = [
            np.random.default_rng(zlib.crc32(text.encode())).normal(size=(len(words[i]), self.dim))
            for i, text in enumerate(texts)
        ]
        values = words.values + 0.15 * np.concatenate(noise).astype(np.float32)
        return {"words": Ragged(values, words.offsets, words.ids if self.ids else None)}

    encode_query = encode_document


def documents(first, end, words=HERE):
    for i in range(first, end):
        yield Document(f"d{i}", " ".join(np.random.default_rng(i).choice(words, 12, replace=False)))


def built(folder, codec="2-bit", ids=True, count=60):
    """An index, and the model that it keeps the vectors of."""
    model = NoisyModel(ids=ids)
    build_index(documents(0, count), model, folder, IndexSettings(codec=codec, lexical=None))
    return model


def add(folder, model, more, deleted=()):
    with Index(folder) as index, changing(index, model) as change:
        change.add(more)
        change.delete(list(deleted))


def drift(folder):
    with Index(folder) as index:
        found = index.info()["drift"]
    return None if found is None else found["words"]


def counts(folder):
    found = drift(folder)
    return found["seen"]["documents"], found["later"]["documents"]


def shares(folder):
    found = drift(folder)
    return found["seen"]["explained"], found["later"]["explained"]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few documents are enough, and few rows have centroids."""
    monkeypatch.setattr(merge_rule, "ENOUGH", 12)
    monkeypatch.setattr(centroids, "LEAST_ROWS", 64)
    monkeypatch.setattr(centroids, "ROWS", 32)


# -- the share, by loops -----------------------------------------------------------------------------------


def vectors(model, some):
    """The vectors of some documents as the model makes them one by one, with their words."""
    for document in some:
        packed = model.encode_document([document.full_text])["words"]
        ids = [None] * len(packed.values) if packed.ids is None else packed.ids.tolist()
        yield from zip(ids, packed.values.astype(np.float64), strict=True)


def share_of(model, some, base):
    left = whole = 0.0
    for word, vector in vectors(model, some):
        near = base(word, vector)
        for x, y in zip(vector, near, strict=True):
            left, whole = left + (x - y) ** 2, whole + x**2
    return 1 - left / whole


def mean_of_words(model, some):
    """A function from a word to its mean over documents; zero if fewer than four have it."""
    sums, found = {}, {}
    for word, vector in vectors(model, some):
        sums[word] = sums.get(word, 0) + vector
        found[word] = found.get(word, 0) + 1
    return lambda word, vector: sums[word] / found[word] if found.get(word, 0) >= 4 else 0 * vector


def nearest_centroid(folder):
    """A function from a vector to the nearest centroid that is stored."""
    (path,) = folder.glob("segments/*/words.centroids.npy")
    table = Table.read(CheckedFolder(path.parent), "words", "centroid", 32).decoded() @ rotation(32).T
    return lambda word, vector: min(table, key=lambda each: ((each - vector) ** 2).sum())


@pytest.mark.parametrize("ids", [True, False], ids=["means", "centroids"])
@pytest.mark.parametrize("codec", ["1-bit", "2-bit", "4-bit"])
def test_shares_are_those_of_loops(tmp_path, codec, ids):
    model, seen = NoisyModel(ids=ids), list(documents(0, 60))
    later = [*documents(60, 75), *documents(75, 90, HERE[:20] + FOREIGN[:9])]
    build_index(seen, model, tmp_path / "i", IndexSettings(codec=codec, lexical=None))
    base = mean_of_words(model, seen) if ids else nearest_centroid(tmp_path / "i")
    add(tmp_path / "i", model, later)
    found = drift(tmp_path / "i")
    assert found["fit"] == ("means" if ids else "centroids") and counts(tmp_path / "i") == (60, 30)
    old, new = share_of(model, seen, base), share_of(model, later, base)
    assert old > new + 0.05 > 0.2
    assert shares(tmp_path / "i") == (pytest.approx(old, abs=0.02), pytest.approx(new, abs=0.01))


# -- what it tells -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("ids", [True, False], ids=["means", "centroids"])
def test_foreign_documents_are_explained_less(tmp_path, ids):
    model = built(tmp_path / "same", "1-bit", ids)
    add(tmp_path / "same", model, documents(60, 100))
    seen, later = shares(tmp_path / "same")
    assert later == pytest.approx(seen, abs=0.05)
    built(tmp_path / "foreign", "1-bit", ids)
    add(tmp_path / "foreign", model, documents(60, 100, FOREIGN))
    assert shares(tmp_path / "foreign")[0] == seen and shares(tmp_path / "foreign")[1] < seen - 0.2


@pytest.mark.parametrize("ids", [True, False], ids=["means", "centroids"])
def test_later_documents_are_known_after_a_compaction_until_a_refit(tmp_path, ids):
    folder = tmp_path / "i"
    model = built(folder, ids=ids)
    add(folder, model, documents(60, 90, FOREIGN))
    before = shares(folder)
    with Index(folder) as index:
        compact(index, everything=True)
    with Index(folder) as index:
        assert len(index.segments) == 1 and index.info()["fit"]["later"] == 30
    assert counts(folder) == (60, 30) and shares(folder)[0] == before[0]
    assert shares(folder)[1] == pytest.approx(before[1], abs=0.02)
    with OpenIndex(folder, model) as opened:
        opened.compact(refit=True)
        assert opened.info()["drift"] is None and opened.info()["fit"]["later"] == 0


def test_deleted_documents_do_not_count(tmp_path):
    folder = tmp_path / "i"
    model = built(folder)
    add(folder, model, [*documents(60, 70), *documents(70, 90, FOREIGN)])
    mixed = shares(folder)[1]
    add(folder, model, [], [f"d{i}" for i in (*range(0, 60, 2), *range(70, 90))])
    assert counts(folder) == (30, 10) and shares(folder)[1] > mixed + 0.1
    with Index(folder) as index:
        compact(index, everything=True)
    add(folder, model, [], [f"d{i}" for i in range(60, 70)])
    assert drift(folder) is None


def test_without_seen_documents_only_later_ones_are_told(tmp_path):
    folder = tmp_path / "i"
    model = built(folder)
    add(folder, model, documents(60, 90))
    with Index(folder) as index:
        compact(index, everything=True)
    before = shares(folder)[1]
    with Index(folder) as index, changing(index, model) as change:
        change.delete([f"d{i}" for i in range(60)])
    with Index(folder) as index:
        info = index.info()
    found = info["drift"]["words"]
    assert found["seen"] == {"explained": None, "documents": 0}
    assert found["later"] == {"explained": pytest.approx(before), "documents": 30}
    what = "of the energy of vectors in 30 of the documents added later"
    assert drift_texts(info) == [f"words: means explain {100 * before:.0f} % {what}"]
    with Index(folder) as index, changing(index, model) as change:
        change.delete([f"d{i}" for i in range(60, 90)])
    assert drift(folder) is None


@pytest.mark.parametrize("ids", [True, False], ids=["means", "centroids"])
def test_shards_have_the_figures_of_the_whole(tmp_path, ids):
    folder = tmp_path / "i"
    model = built(folder, ids=ids)
    add(folder, model, documents(60, 90, FOREIGN))
    for _ in range(2):  # waiting in 8 bits, then encoded
        whole = drift(folder)
        with Index(folder) as index:
            divide(index, 3)
        now = drift(folder)
        for key in ("seen", "later"):
            assert now[key]["documents"] == whole[key]["documents"]
            assert now[key]["explained"] == pytest.approx(whole[key]["explained"], abs=1e-6)
        with Index(folder) as index:
            assert index.info()["fit"]["later"] == 30
            divide(index, 1)
        with Index(folder) as index:
            compact(index, everything=True)


def test_shards_are_compacted_with_the_last_fit(tmp_path, monkeypatch):
    monkeypatch.setattr(merge_rule, "ENOUGH", 4)
    folder = tmp_path / "i"
    model = built(folder)
    with Index(folder) as index:
        divide(index, 3)
    add(folder, model, documents(60, 90, FOREIGN))
    before = shares(folder)
    with Index(folder) as index:
        compact(index, everything=True)
    with Index(folder) as index:
        assert not any(each.entry.codecs for each in index.segments) and len(index.segments) == 3
    assert counts(folder) == (60, 30) and shares(folder) == pytest.approx(before, abs=0.02)


def test_waiting_documents_are_compared_with_the_last_fit(tmp_path):
    folder = tmp_path / "i"
    model = built(folder, count=13)
    add(folder, model, documents(13, 60, FOREIGN))
    with Index(folder) as index:
        compact(index, everything=True)  # more than the first fit has seen, so they get their own
    assert drift(folder) is None
    add(folder, model, documents(60, 70, FOREIGN))
    seen, later = shares(folder)
    assert counts(folder) == (60, 10) and later == pytest.approx(seen, abs=0.1)


def test_a_sample_is_measured_evenly_spaced(tmp_path, monkeypatch):
    folder = tmp_path / "i"
    model = built(folder)
    add(folder, model, documents(60, 90))
    whole = shares(folder)
    monkeypatch.setattr(drift_module, "VECTORS", 100)  # of 720 and 360
    assert counts(folder) == (60, 30) and whole != shares(folder) == pytest.approx(whole, abs=0.05)
    monkeypatch.setattr(drift_module, "VECTORS", 2**14)
    monkeypatch.setattr(drift_module, "DOCUMENTS", 7)
    few = drift(folder)
    assert counts(folder) == (7, 7)
    kept = {60 * i // 7 for i in range(7)} | {60 + 30 * i // 7 for i in range(7)}
    add(folder, model, [], [f"d{i}" for i in range(90) if i not in kept])
    assert drift(folder) == few


# -- where there is nothing to measure ---------------------------------------------------------------------


def test_without_a_fit_or_later_documents_there_is_none(tmp_path, monkeypatch):
    built(tmp_path / "alone")
    assert drift(tmp_path / "alone") is None
    model = built(tmp_path / "int8", "int8")
    add(tmp_path / "int8", model, documents(60, 70))
    assert drift(tmp_path / "int8") is None
    monkeypatch.setattr(centroids, "LEAST_ROWS", 2**16)
    model = built(tmp_path / "few rows", ids=False)
    add(tmp_path / "few rows", model, documents(60, 70))
    assert drift(tmp_path / "few rows") is None
    add(tmp_path / "alone", NoisyModel(), [Document("empty", "")])
    assert drift(tmp_path / "alone") is None
    with Index(tmp_path / "alone") as index:
        assert drift_texts(index.info()) == []


def test_an_index_of_format_4_names_no_fit(tmp_path):
    folder = tmp_path / "i"
    model = built(folder)
    as_format(folder, 4)
    assert drift(folder) is None
    add(folder, model, documents(60, 65))
    assert drift(folder) is None


@pytest.mark.parametrize("name", ["means", "mean_scales", "values"])
def test_damage_is_an_error_and_the_sizes_are_still_told(tmp_path, monkeypatch, name):
    monkeypatch.setattr(checked_module, "BLOCK", 128)  # so that opening the index does not check all
    folder = tmp_path / "i"
    model = built(folder)
    add(folder, model, documents(60, 70))
    (means,) = folder.glob("segments/*/words.means.npy")
    path = means.with_name(f"words.{name}.npy")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with Index(folder) as index:
        assert index.disk_usage()["fit"]["later"] == 10
        with pytest.raises(ArtifactError, match="damaged"):
            index.info()


# -- the command -------------------------------------------------------------------------------------------


def test_info_tells_it(tmp_path, capsys):
    folder = tmp_path / "i"
    model = built(folder)
    assert main(["info", str(folder)]) == 0 and "explain" not in capsys.readouterr().out
    add(folder, model, documents(60, 90, FOREIGN))
    seen, later = shares(folder)
    assert main(["info", str(folder)]) == 0
    assert (
        f"words: means explain {100 * seen:.0f} % of the energy of vectors in 60 of the documents that they "
        f"were fitted to, and {100 * later:.0f} % in 30 of those added later\n"
    ) in capsys.readouterr().out
    assert main(["info", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["drift"] == {"words": drift(folder)}
    with OpenIndex(folder, model) as opened:
        assert opened.info()["drift"] == {"words": drift(folder)}
