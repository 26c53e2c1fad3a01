"""Every file of every kind of index is damaged: it is made again, or what is lost is said and offered."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.index.test_damage import answers, built

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.index import Index, Manifest
from counterpoint.index import centroids as centroids_module
from counterpoint.index import checked as checked_module
from counterpoint.index import residual as residual_module
from counterpoint.index.changing import changing
from counterpoint.index.repairing import remedies, repair
from counterpoint.types import Document

KINDS = ["plain", "graph", "exact", "static", "bits", "lists", "pooled", "old"]
HURTS = ("flip", "cut", "gone")


def hurt(path, how="flip", at=-1):
    whole = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
    elif how == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    else:
        whole[at] ^= 1
        path.write_bytes(whole)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Builds an index of a kind, with a second segment, and deletes in the first."""
    monkeypatch.setattr(residual_module, "LEAST", 4)
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)
    monkeypatch.setattr(centroids_module, "ROWS", 8)
    monkeypatch.setattr("counterpoint.index.rows_writer.LEAST", 10)

    def made(kind):
        if kind == "graph":
            pytest.importorskip("faiss")
        model = built(tmp_path / "i", kind)
        if kind != "old":
            with Index(tmp_path / "i") as index, changing(index, model) as change:
                change.add([Document(f"n{i}", f"new fox number {i}") for i in range(9)])
                change.delete(["d7", "p", "n2"])
        return tmp_path / "i", model

    return made


def told(folder, model):
    found = answers(folder, model)
    return [found[0]["documents"], *found[2:]]  # positions change where a segment loses what was deleted


@pytest.mark.parametrize("kind", KINDS)
def test_each_file_is_made_again_or_encoded(make, kind, tmp_path):
    """And the index answers as before, to the last bit; what is refused leaves the index as it is."""
    whole_index, model = make(kind)
    expected, seen, manifest = told(whole_index, model), set(), Manifest.read(whole_index)
    only_large = {"plain": "mean.signs.npy", "exact": "words.sorted_documents.npy"}
    assert any(name.endswith(only_large.get(kind, "")) for name in manifest.files)
    for number, name in enumerate(sorted(manifest.files)):
        folder = Path(shutil.copytree(whole_index, tmp_path / str(number)))
        remedy, path, how = remedies(folder, {name: ""})[name], folder / name, HURTS[number % 3]
        whole = path.read_bytes()
        hurt(path, how)
        done = repair(folder)
        if remedy.startswith("--repair makes it again"):
            assert done.files == [name] and not done.left, (name, done)
        elif done.left:
            assert list(done.left) == [name] and done.left[name] == remedy
            assert Manifest.read(folder) == manifest
            if "--encode" in remedy:
                done = repair(folder, load=lambda: model)
                assert done.files == [name] and done.encoded > 0 and not done.left, (name, done)
            else:
                path.write_bytes(whole)
        assert Manifest.read(folder).faults(folder) == [], name
        assert told(folder, model) == expected, (name, how)
        seen.add(remedy.split(";")[0])
    assert len(seen) >= 3, seen


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "old"])
def test_several_files_at_once(make, kind):
    folder, model = make(kind)
    expected, rng = told(folder, model), np.random.default_rng(5)
    for _ in range(8):
        names = [
            name for name in sorted(Manifest.read(folder).files) if not name.endswith("documents.sqlite")
        ]
        names = [name for name in names if not name.endswith(("rows.npy", "rows.copy.npy"))]
        for name in rng.choice(names, 7, replace=False):
            hurt(folder / name, HURTS[rng.integers(3)])
        done = repair(folder, load=lambda: model)
        assert len(done.files) >= 7 and not done.left
        assert Manifest.read(folder).faults(folder) == [] and told(folder, model) == expected


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("old", "graph")])
@pytest.mark.parametrize("lost", ["texts", "vectors", "both"])
def test_damaged_documents_are_given_up_if_asked(make, kind, lost, tmp_path, monkeypatch):
    monkeypatch.setattr(checked_module, "BLOCK", 256)
    folder, model = make(kind)
    manifest = Manifest.read(folder)
    segment = f"segments/{manifest.segments[0].name}"
    with Index(folder) as index:
        before = {index.name_of(i): index.document(i) for i in index.positions.tolist()}
    if lost != "vectors":
        database = folder / segment / "documents.sqlite"
        hurt(database, at=database.read_bytes().index(b"d13") + 5)
    if lost != "texts":
        largest = [
            n for n in manifest.files if n.startswith(segment) and n.endswith((".values.npy", ".ranks.npy"))
        ]
        hurt(folder / max(largest, key=lambda name: manifest.files[name].bytes))
    assert repair(folder).left and Manifest.read(folder) == manifest
    done = repair(folder, drop=tmp_path / "lost.jsonl")
    listed = [json.loads(line) for line in (tmp_path / "lost.jsonl").read_text().splitlines()]
    assert done.dropped == len(listed) > 0 and not done.left
    assert Manifest.read(folder).faults(folder) == []
    with Index(folder) as index:
        after = {index.name_of(i): index.document(i) for i in index.positions.tolist()}
        for name, document in after.items():
            assert document == before[name]
        assert len(after) == len(before) - len(listed)
        known = {each["id"] for each in listed} - {None}
        assert known <= before.keys() - after.keys()
        assert after.keys() >= {"n0", "n8", "d1"}
    told(folder, model)


def test_a_database_whose_rows_are_all_intact_is_written_again(make):
    folder, model = make("bits")
    expected = told(folder, model)
    name = f"segments/{Manifest.read(folder).segments[0].name}/documents.sqlite"
    hurt(folder / name, at=68)  # a number for applications in the header, which nothing reads
    done = repair(folder)
    assert name in done.files and done.dropped == 0 and not done.left
    assert told(folder, model) == expected


def test_lost_deletes_bring_no_document_back(make):
    folder, model = make("plain")
    expected, manifest = told(folder, model), Manifest.read(folder)
    rows = next(name for name in manifest.files if name.endswith("/rows.npy"))
    hurt(folder / rows)
    done = repair(folder)
    assert done.files == [rows] and told(folder, model) == expected  # from its copy

    manifest = Manifest.read(folder)
    both = [name for name in manifest.files if "/rows." in name]
    for name in both:
        hurt(folder / name)
    done = repair(folder, load=lambda: model, drop=folder.with_name("lost"))
    assert list(done.left) == both and all("cannot be recreated" in told for told in done.left.values())
    assert Manifest.read(folder) == manifest


def test_nothing_is_left(make, tmp_path):
    folder, model = make("plain")
    for name in Manifest.read(folder).files:
        if name.endswith("documents.sqlite"):
            hurt(folder / name, "gone")
    with pytest.raises(ArtifactError, match="no document could be saved"):
        repair(folder, load=lambda: model, drop=tmp_path / "lost")
    assert not (tmp_path / "lost").exists()


def test_another_model_encodes_nothing(make):
    from tests.fakes import HashModel

    folder, model = make("plain")
    name = next(name for name in Manifest.read(folder).files if name.endswith("words.values.npy"))
    hurt(folder / name)
    with pytest.raises(ArtifactError, match="built with the model"):
        repair(folder, load=lambda: HashModel(seed=1))
    with pytest.raises(ConfigError, match="encoding lost vectors needs the model"):
        repair(folder, load=lambda: None)
    assert len(list((folder / "segments").iterdir())) == 2
