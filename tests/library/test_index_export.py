"""What an export holds, where it may be written, and that it is whole or absent."""

import json
import os

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.fakes import DOCUMENTS as FEW
from tests.fakes import HashModel
from tests.library.exports import DOCUMENTS, MODELS, built

import counterpoint as cp
from counterpoint.data import open_collection
from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, build_index, vector_shards
from counterpoint.library.index_export import export_index
from counterpoint.library.options import ExportOptions
from counterpoint.types import Document


@pytest.fixture
def notes(tmp_path):
    with built(tmp_path / "i", HashModel(), FEW) as found:
        yield found


def listed(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def test_documents_are_lines_of_beirs_layout(notes, tmp_path):
    done = []
    result = notes.export(tmp_path / "e", on_progress=done.append)
    lines = [json.loads(line) for line in (tmp_path / "e" / "corpus.jsonl").read_text().splitlines()]
    assert [line["_id"] for line in lines] == [document.id for document in FEW]
    assert lines[3]["metadata"] == {"year": 1999} and "metadata" not in lines[0]
    assert lines[5]["parent"] == "e" and lines[5]["start"] == 15 and "parent" not in lines[0]
    assert list(open_collection(tmp_path / "e").documents()) == FEW
    assert listed(tmp_path / "e") == ["corpus.jsonl", "export.json"] and done == [6]
    size = sum(path.stat().st_size for path in (tmp_path / "e").iterdir())
    assert result == {
        "folder": str(tmp_path / "e"), "documents": 5, "passages": 6, "vectors": False, "bytes": size,
    }  # fmt: skip


def test_the_description_says_what_the_index_is(notes, tmp_path):
    notes.export(tmp_path / "e", vectors=True)
    about = json.loads((tmp_path / "e" / "export.json").read_text())
    assert (about["format"], about["version"], about["passages"]) == ("counterpoint-export", 1, 6)
    assert about["model"] == {"name": None, "fingerprint": HashModel().fingerprint()}
    assert about["settings"]["codec"] == "int8" and about["settings"]["metadata"] == {"year": "int"}
    assert about["settings"]["passage_words"] == 90 and about["settings"]["lexical"]["k1"] == 1.4
    assert about["sets"]["words"] == {
        "dim": 16, "pooled": False, "ids": True, "static": False, "codec": "int8",
    }  # fmt: skip
    assert [shard["documents"] for shard in about["shards"]] == [6]


@pytest.mark.parametrize("model", MODELS)
def test_vectors_are_what_the_index_decodes(tmp_path, monkeypatch, model):
    monkeypatch.setattr(vector_shards, "BYTES", 2**15)
    notes = built(tmp_path / "i", MODELS[model](), codec="int8")
    notes.export(tmp_path / "e", vectors=True)
    files = [load_file(path) for path in sorted((tmp_path / "e" / "vectors").iterdir())]
    assert len(files) > 1
    bound = notes.searcher().index
    for name, layout in bound.layouts.items():
        whole = bound.take(name, bound.positions)
        lengths = np.concatenate([np.diff(file[f"{name}.offsets"]) for file in files])
        np.testing.assert_array_equal(lengths, whole.lengths)
        if layout.kind != "static":
            values = np.concatenate([file[f"{name}.values"] for file in files])
            assert values.dtype == np.float32
            np.testing.assert_array_equal(values, whole.values)
        if layout.ids:
            ids = np.concatenate([file[f"{name}.ids"] for file in files])
            np.testing.assert_array_equal(ids, whole.ids)


def test_a_file_of_vectors_ends_soon_after_its_bound(tmp_path, monkeypatch):
    """Its size bounds the memory of an export."""
    monkeypatch.setattr(vector_shards, "BYTES", 1)
    build_index([Document(str(i), f"word{i}") for i in range(150)], HashModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index:
        export_index(index, tmp_path / "e", ExportOptions(vectors=True))
    shards = json.loads((tmp_path / "e" / "export.json").read_text())["shards"]
    assert [shard["documents"] for shard in shards] == [64, 64, 22]


def test_deleted_documents_and_those_of_another_condition_are_left_out(tmp_path):
    notes = built(tmp_path / "i", HashModel())
    notes.delete(["a", " e", "n3"])
    notes.update([{"id": "n5", "text": "another text", "year": 3000}])
    left = [document.id for document in DOCUMENTS if document.parent is None and document.id not in "a n3 n5"]
    assert notes.export(tmp_path / "e", vectors=True)["documents"] == len(left) + 1
    assert [one.id for one in open_collection(tmp_path / "e").documents()] == [*left, "n5"]
    notes.export(tmp_path / "some", where="year < 4 or year = 3000")
    assert [one.id for one in open_collection(tmp_path / "some").documents()] == ["n0", "n1", "n2", "n5"]
    assert notes.export(tmp_path / "none", where="year = 12345")["passages"] == 0


def test_another_export_is_replaced_only_if_asked_and_anything_else_never(notes, tmp_path):
    notes.export(tmp_path / "e", vectors=True)
    with pytest.raises(ArtifactError, match="already exists"):
        notes.export(tmp_path / "e")
    notes.export(tmp_path / "e", overwrite=True)
    assert listed(tmp_path / "e") == ["corpus.jsonl", "export.json"]
    (tmp_path / "e" / "mine.txt").write_text("mine")
    with pytest.raises(ArtifactError, match="contains 'mine.txt', which would be lost"):
        notes.export(tmp_path / "e", overwrite=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "corpus.jsonl").write_text("{}")
    with pytest.raises(ArtifactError, match="has other contents"):
        notes.export(tmp_path / "other", overwrite=True)
    for inside in (tmp_path / "i", tmp_path / "i" / "e", tmp_path / "x" / ".." / "i" / "segments"):
        with pytest.raises(ConfigError, match="within the index"):
            notes.export(inside, overwrite=True)
    assert not list(tmp_path.glob(".*partial"))


def test_a_failure_leaves_what_was_there(notes, tmp_path, monkeypatch):
    notes.export(tmp_path / "e")
    before = (tmp_path / "e" / "corpus.jsonl").read_bytes()

    def fail(done):
        raise KeyboardInterrupt

    for folder, there in ((tmp_path / "e", True), (tmp_path / "new", False)):
        with pytest.raises(KeyboardInterrupt):
            notes.export(folder, vectors=True, overwrite=True, on_progress=fail)
        assert folder.exists() == there
    monkeypatch.setattr(vector_shards.Path, "write_bytes", _full)
    with pytest.raises(ArtifactError, match="No space left on device; existing files are unchanged"):
        notes.export(tmp_path / "e", vectors=True, overwrite=True)
    assert (tmp_path / "e" / "corpus.jsonl").read_bytes() == before
    assert listed(tmp_path / "e") == ["corpus.jsonl", "export.json"]
    assert not list(tmp_path.glob(".*partial"))


def _full(path, data):
    raise OSError(28, os.strerror(28), str(path))


def test_bm25_alone_has_no_vectors(tmp_path):
    with cp.index(["a cat"], tmp_path / "i", model=None) as notes:
        with pytest.raises(ConfigError, match="only BM25"):
            notes.export(tmp_path / "e", vectors=True)
        assert not (tmp_path / "e").exists()
        notes.export(tmp_path / "e")
    assert json.loads((tmp_path / "e" / "export.json").read_text())["model"] is None


def test_no_path_of_this_machine_is_written(tmp_path, tiny_bert_folder):
    with cp.index(["a cat"], tmp_path / "i", model=tiny_bert_folder) as notes:
        notes.export(tmp_path / "deep" / "e")
    about = json.loads((tmp_path / "deep" / "e" / "export.json").read_text())
    name = about["model"]["name"]
    assert name == "./" + os.path.relpath(tiny_bert_folder, tmp_path / "deep" / "e")
