"""A codec that is not ours, whose arrays have names of their own: an index does everything with it."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.fakes import HashModel

from counterpoint.index import Index, IndexSettings, Manifest, build_index, codec, merge_rule
from counterpoint.index import checked as checked_module
from counterpoint.index.changing import changing
from counterpoint.index.codec import CODECS, Codec
from counterpoint.index.compacting import compact
from counterpoint.index.repairing import repair
from counterpoint.library.index_export import ExportOptions, export_index
from counterpoint.search import Searcher
from counterpoint.testing import check_codec
from counterpoint.types import Document

MODEL = HashModel(dim=8)
WEIGHTS = {"lexical": 0.2, "mean": 0.2, "words": 0.6}


class Roots(Codec):
    """The signed square root of each component over the largest of its row."""

    def layout(self, dim):
        return {"roots": (np.int8, (dim,)), "largest": (np.float32, ())}

    def encode(self, values):
        largest = np.abs(values).max(axis=1, initial=0)
        shares = values / np.where(largest > 0, largest, 1)[:, None]
        return {
            "roots": np.rint(127 * np.sign(shares) * np.sqrt(np.abs(shares))).astype(np.int8),
            "largest": largest,
        }

    def decode(self, arrays, dim):
        roots = arrays["roots"] / np.float32(127)
        return (np.sign(roots) * roots**2 * arrays["largest"][:, None]).astype(np.float32)


@pytest.fixture
def roots(monkeypatch):
    """In every module of the index, the codec called float32."""
    codecs = {**CODECS, "float32": Roots()}
    for path in Path(codec.__file__).parent.glob("*.py"):
        module = import_module(f"counterpoint.index.{path.stem}")
        if vars(module).get("CODECS") is CODECS:
            monkeypatch.setattr(module, "CODECS", codecs)


def documents(first, end):
    return [Document(f"d{i}", f"text about {i} and word{i % 3} w{i % 7}") for i in range(first, end)]


def check(folder):
    """The vectors are near those of the model, every file has a purpose, and none is damaged."""
    assert Manifest.read(folder).faults(folder) == []
    with Index(folder) as index:
        texts = [index.document(i).full_text for i in index.positions.tolist()]
        wanted, info = MODEL.encode_document(texts), index.info()
        for name, vectors in wanted.items():
            found = index.take(name, index.positions)
            np.testing.assert_allclose(found.values, vectors.values, atol=0.01)
            assert found.lengths.tolist() == vectors.lengths.tolist()
        assert not info["bytes_by_purpose"].get("other")
        for name in wanted:
            paths = [path for kind in ("roots", "largest") for path in folder.rglob(f"{name}.{kind}.npy")]
            assert info["bytes_by_purpose"][f"vectors: {name}"] == sum(path.stat().st_size for path in paths)
        assert not [*folder.rglob("*.values.npy")]
        return len(texts)


def test_is_right():
    check_codec(Roots)


@pytest.mark.parametrize("exact", [[], ["words"]])
def test_an_index_is_built_changed_compacted_exported_and_repaired(roots, tmp_path, monkeypatch, exact):
    monkeypatch.setattr(merge_rule, "ENOUGH", 12)
    monkeypatch.setattr(checked_module, "BLOCK", 64)
    folder, search = tmp_path / "i", {"weights": WEIGHTS, "exact": exact}
    build_index(documents(0, 40), MODEL, folder, IndexSettings(codec="float32", search=search))
    assert check(folder) == 40
    with Index(folder) as index, changing(index, MODEL) as change:
        change.add(documents(40, 60))
        change.delete(["d3", "d50"])
    assert check(folder) == 58
    with Index(folder) as index:
        assert Searcher(index, MODEL).search("text about 21 and word0 w0", 1).hits[0].document.id == "d21"
        export_index(index, tmp_path / "exported", ExportOptions(vectors=True))
        assert compact(index, everything=True) > 0
    assert check(folder) == 58
    (largest,) = folder.rglob("words.largest.npy")
    damaged = bytearray(largest.read_bytes())
    damaged[-1] ^= 1
    largest.write_bytes(damaged)
    assert repair(folder, drop=tmp_path / "lost").dropped > 0
    assert 40 < check(folder) < 58


@pytest.mark.parametrize("dim", [4, 5, 8, 17])
def test_a_pooled_set_has_a_codec_of_its_own_unless_that_packs_components(monkeypatch, dim):
    def chosen(name):
        return IndexSettings(codec=name).layouts(HashModel(dim=dim))["mean"].codec

    assert {chosen(name) for name in ("int4", "4-bit", "2-bit", "1-bit")} == {"int8"}
    assert all(chosen(name) == name for name in ("int8", "float16", "float32"))
    monkeypatch.setattr("counterpoint.index.settings.CODECS", {**CODECS, "int4": Roots()})
    assert chosen("int4") == "int4"
