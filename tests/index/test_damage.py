"""One damaged byte in any file of an index: an error that says so, or the very answers of the intact one."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from tests.damage import fuzz
from tests.fakes import HashModel, StaticModel, UniModel

from counterpoint.errors import ArtifactError, CounterpointError, DataError
from counterpoint.index import Index, IndexSettings, Manifest, VectorSet, build_index
from counterpoint.index import centroids as centroids_module
from counterpoint.index import checked as checked_module
from counterpoint.index import database as database_module
from counterpoint.index import lists as lists_module
from counterpoint.index import residual as residual_module
from counterpoint.index.changing import changing
from counterpoint.index.checked import BLOCKS, CheckedFile, CheckedFolder, write_blocks
from counterpoint.index.codec import CODECS, Bits
from counterpoint.index.database import CHECKS, PASSAGES
from counterpoint.index.manifest import FileEntry
from counterpoint.search import Searcher
from counterpoint.types import Document, Ragged

WORDS = (
    "fox dog cat bridge river turtle green brown lazy quick slow walk sleep box day night under over".split()
)
WHOLE = [name for name, codec in CODECS.items() if not isinstance(codec, Bits)]
QUERIES = ["quick brown fox", "turtle under a bridge", "nothing known"]


class TokenModel(HashModel):
    """The same vectors, but nobody says which word one is of."""

    @property
    def sets(self):
        return {"mean": VectorSet(self.dim, True, False), "words": VectorSet(self.dim, False, False)}

    def encode_document(self, texts):
        found = super().encode_document(texts)
        return {**found, "words": Ragged(found["words"].values, found["words"].offsets)}

    encode_query = encode_document


def documents(count=60):
    rng = np.random.default_rng(3)
    made = [Document(f"d{i}", " ".join(rng.choice(WORDS, rng.integers(0, 9)))) for i in range(count)]
    cut = [Document(f"p#{i}", f"{WORDS[i]} river", parent="p", start=9 * i) for i in range(3)]
    return [replace(made[0], title="Foxes", metadata={"year": 1999}), *made[1:], *cut]


def built(folder, kind):
    """An index with all files that there can be of its kind, and its model."""
    if kind == "static":
        model, settings = StaticModel(), IndexSettings()
    elif kind == "exact":
        search = {"weights": {"cls": 1.0, "words": 1.0}, "exact": ["words"]}
        model, settings = UniModel(), IndexSettings(codec="float16", search=search)
    elif kind == "graph":
        model, settings = HashModel(), IndexSettings(codec="int4", ann="hnsw")
    elif kind == "lists":
        search = {"weights": {"words": 1.0}, "candidates": 2, "probes": 2}
        model, settings = TokenModel(), IndexSettings(codec="2-bit", search=search)
    elif kind == "pooled":
        model, settings = HashModel(), IndexSettings(pool_factor=1.5)
    elif kind in ("bits", "changed"):
        model, settings = HashModel(), IndexSettings(codec="1-bit")
    else:
        model, settings = HashModel(), IndexSettings()
    build_index(documents(), model, folder, settings)
    if kind == "changed":
        changed(folder, model)
    if kind == "old":
        without_blocks(folder)
    return model


def changed(folder, model):
    """Two segments, of each of which something is deleted."""
    with Index(folder) as index, changing(index, model) as change:
        change.delete(["d1", "d7", "p"])
        change.add([Document(f"e{i}", f"{WORDS[i]} fox", metadata={"year": i}) for i in range(9)])
        change.delete(["e3"])


def without_blocks(folder):
    """As earlier versions wrote it."""
    manifest = Manifest.read(folder)
    files = {
        name: entry for name, entry in manifest.files.items() if not name.endswith((BLOCKS, CHECKS, PASSAGES))
    }
    for name in manifest.files.keys() - files:
        (folder / name).unlink()
    replace(manifest, files=files).write(folder)


def answers(folder, model):
    """Everything that is read from an index."""
    with Index(folder) as index:
        found = [index.info(), [index.position_of(f"d{i}") for i in (0, 40, 99)]]
        searcher = Searcher(index.bound(model), model)
        dense = ["dense"] if any(layout.pooled for layout in index.layouts.values()) else []
        for workflow in ("hybrid", "lexical", "words", *dense):
            for query in QUERIES:
                answer = searcher.search(query, 5, workflow=workflow, explain=workflow == "hybrid").to_dict()
                found.append({key: value for key, value in answer.items() if key != "milliseconds"})
        return found


def check(tmp_path, monkeypatch, kind, trials, say):
    if kind == "graph":
        pytest.importorskip("faiss")
    monkeypatch.setattr(checked_module, "BLOCK", 512)  # so that files have many, and few are touched
    monkeypatch.setattr(residual_module, "LEAST", 4)  # so that there are means of words
    monkeypatch.setattr(centroids_module, "LEAST_ROWS", 1)  # and centroids
    monkeypatch.setattr(centroids_module, "ROWS", 8)
    monkeypatch.setattr(lists_module, "SHORTLIST", 2)
    folder = tmp_path / "index"
    model = built(folder, kind)
    tally, wrong = fuzz(folder, lambda: answers(folder, model), trials, seed=trials)
    say(f"{kind}: {tally.total()} trials, {dict(tally)}")
    assert not wrong, "\n".join(wrong[:20])
    return tally


KINDS = ["plain", "graph", "exact", "static", "bits", "lists", "changed", "old"]


@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_refused_or_makes_no_difference(tmp_path, monkeypatch, say, kind):
    tally = check(tmp_path, monkeypatch, kind, 1, say)
    assert tally["refused"] > 5


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_damage_anywhere(tmp_path, monkeypatch, say, kind):
    """Over 3,000 trials in all."""
    tally = check(tmp_path, monkeypatch, kind, 45, say)
    assert tally.total() > 500 and tally["refused"] > 200


# -- blocks --------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A folder of one array of 100 rows, of 16 bytes each, in blocks of 64 bytes."""
    monkeypatch.setattr(checked_module, "BLOCK", 64)
    np.save(tmp_path / "x.npy", np.arange(400, dtype=np.float32).reshape(100, 4))
    write_blocks(tmp_path, [tmp_path / "x.npy"])
    return {path.name: FileEntry.of(path) for path in tmp_path.iterdir()}


def flipped(path, at):
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)


def test_only_what_is_touched_is_checked(tmp_path, files):
    flipped(tmp_path / "x.npy", 128 + 50 * 16 + 3)  # in row 50, whose block holds the rows 48 to 51
    rows = CheckedFolder(tmp_path, files).array("x.npy")
    assert rows[:48].shape == (48, 4) and rows[np.array([99, 0])][0, 0] == 396 and len(rows[52:52]) == 0
    for asked in (slice(51, 60), slice(0, 100), np.array([3, 48])):
        with pytest.raises(
            ArtifactError, match=r"x.npy: does not match its checksum.* `counterpoint verify INDEX --repair`"
        ):
            rows[asked]
    with pytest.raises(ArtifactError, match="does not match"):
        rows.all()


@pytest.mark.parametrize("row", [1, 3, 16, 100, 400])
def test_rows_that_lie_across_blocks_are_checked_whole(tmp_path, monkeypatch, row):
    """Each byte of each row is damaged in turn, for rows shorter and longer than a block."""
    monkeypatch.setattr(checked_module, "BLOCK", 64)
    path = tmp_path / "x.npy"
    np.save(path, np.zeros((7, row), np.uint8))
    write_blocks(tmp_path, [tmp_path / "x.npy"])
    files = {found.name: FileEntry.of(found) for found in tmp_path.iterdir()}
    for at in range(128, path.stat().st_size, max(1, row // 20)):
        flipped(path, at)
        owner = (at - 128) // row
        with pytest.raises(ArtifactError):
            CheckedFolder(tmp_path, files).array("x.npy")[np.array([0, owner])]
        with pytest.raises(ArtifactError):
            CheckedFolder(tmp_path, files).array("x.npy")[owner : owner + 1]
        flipped(path, at)
    assert not CheckedFolder(tmp_path, files).array("x.npy").all().any()


def test_what_was_checked_is_not_checked_again(tmp_path, files, monkeypatch):
    rows = CheckedFolder(tmp_path, files).array("x.npy")
    assert rows.all().sum() == sum(range(400))
    monkeypatch.setattr(checked_module.xxhash, "xxh3_64_intdigest", lambda block: pytest.fail("hashed again"))
    assert rows[np.array([5])][0, 0] == 20 and rows[3:4][0, 0] == 12


def test_the_checksums_are_the_first_thing_that_is_checked(tmp_path, files):
    whole = (tmp_path / BLOCKS).read_bytes()
    flipped(tmp_path / BLOCKS, len(whole) - 1)
    with pytest.raises(ArtifactError, match=r"blocks.npy: does not match its checksum"):
        CheckedFolder(tmp_path, files)
    np.save(tmp_path / BLOCKS, np.zeros(3, np.uint64))
    with pytest.raises(ArtifactError, match=r"blocks.npy: does not fit the files"):
        CheckedFolder(tmp_path, {**files, BLOCKS: FileEntry.of(tmp_path / BLOCKS)})


def test_an_unlisted_file_is_missing(tmp_path, files):
    with pytest.raises(ArtifactError, match=r"y.npy: this file of the index is missing"):
        CheckedFolder(tmp_path, files).array("y.npy")
    with pytest.raises(ArtifactError, match=r"y.npy: this file of the index is missing"):
        CheckedFile(tmp_path / "y.npy")


def test_an_index_without_blocks_answers_as_one_with_them(tmp_path):
    model = built(tmp_path / "new", "plain")
    built(tmp_path / "old", "old")
    new, old = answers(tmp_path / "new", model), answers(tmp_path / "old", model)
    assert new[1:] == old[1:]
    assert "checksums" in new[0]["bytes_by_purpose"] and "checksums" not in old[0]["bytes_by_purpose"]


# -- rows of documents -----------------------------------------------------------------------------------


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """An index whose database has many blocks, and no passages."""
    monkeypatch.setattr(checked_module, "BLOCK", 512)
    made = [Document(f"d{i}", f"text of the number {i} " * 20, title=f"title{i}.") for i in range(60)]
    build_index(made, None, tmp_path / "i")
    return made


def test_a_damaged_row_is_refused_and_no_other(tmp_path, rows):
    path = next((tmp_path / "i").rglob("documents.sqlite"))
    flipped(path, path.read_bytes().index(b"title41."))
    with Index(tmp_path / "i") as index:
        with pytest.raises(ArtifactError, match=r"documents.sqlite: does not match its checksum"):
            index.document(41)
        assert [index.document(i) for i in range(60) if i != 41] == rows[:41] + rows[42:]
        assert index.name_of(41) == "d41" and index.position_of("d41") == 41
        with pytest.raises(ArtifactError, match=r"documents.sqlite: does not match its checksum"):
            index.position_of("not there")  # it may be that its row is what was damaged


@pytest.mark.parametrize("together", [1, 7, 500])
def test_names_in_one_look_up_are_those_of_one_by_one(tmp_path, rows, monkeypatch, together):
    monkeypatch.setattr(database_module, "TOGETHER", together)
    with Index(tmp_path / "i") as index:
        for asked in (np.arange(60), np.array([59, 3, 3, 0, 41]), np.zeros(0, np.int64)):
            assert index.names_of(asked) == [index.name_of(int(position)) for position in asked]


def test_a_damaged_name_is_refused_among_others(tmp_path, rows):
    path = next((tmp_path / "i").rglob("documents.sqlite"))
    flipped(path, path.read_bytes().index(b"d41title41.") + 2)
    with Index(tmp_path / "i") as index:
        for ask in (lambda: index.name_of(41), lambda: index.names_of(np.array([3, 41, 50]))):
            with pytest.raises(ArtifactError, match=r"documents.sqlite: does not match its checksum"):
                ask()
        assert index.names_of(np.delete(np.arange(60), 41)) == [row.id for row in rows if row.id != "d41"]


def test_names_over_several_segments(tmp_path, rows):
    first = Manifest.read(tmp_path / "i")
    second = build_index([Document(f"e{i}", "") for i in range(5)], None, tmp_path / "o")
    for store in ("segments", "lexical"):
        shutil.copytree(tmp_path / "o" / store, tmp_path / "i" / store, dirs_exist_ok=True)
    both = {"segments": first.segments + second.segments, "files": {**first.files, **second.files}}
    replace(first, **both).write(tmp_path / "i")
    with Index(tmp_path / "i") as index:
        assert index.names_of(np.array([64, 2, 60, 2, 59])) == ["e4", "d2", "e0", "d2", "d59"]


def test_a_search_does_not_read_all_documents(tmp_path, rows, monkeypatch):
    read = []
    whole = CheckedFile.whole
    monkeypatch.setattr(CheckedFile, "whole", lambda self: [read.append(self.path.name), whole(self)][1])
    with Index(tmp_path / "i") as index:
        assert Searcher(index).search("number 7", 3, explain=True).hits[0].document == rows[7]
        assert index.parents == {} and "documents.sqlite" not in read
        assert index.info()["text_bytes"] > 0 and "documents.sqlite" in read


# -- other misuse ----------------------------------------------------------------------------------------


def test_a_closed_index_says_so(tmp_path):
    built(tmp_path / "i", "plain")
    index = Index(tmp_path / "i")
    index.close()
    index.close()
    for ask in (
        lambda: index.document(0),
        lambda: index.name_of(0),
        lambda: index.names_of(np.array([0])),
        lambda: index.position_of("d0"),
        lambda: Searcher(index, HashModel()).search("fox"),
    ):
        with pytest.raises(ArtifactError, match="this index has been closed; open it again"):
            ask()


@pytest.mark.parametrize("position", [-1, 63, 10**30])
def test_a_position_that_does_not_exist(tmp_path, position):
    built(tmp_path / "i", "plain")
    with Index(tmp_path / "i") as index:
        for ask in (index.document, index.name_of, lambda at: index.names_of(np.array([0, at]))):
            with pytest.raises(DataError, match=f"no document at position {position}; the index has 63"):
                ask(position)


def test_an_id_that_no_database_holds(tmp_path):
    built(tmp_path / "i", "plain")
    with Index(tmp_path / "i") as index:
        assert index.position_of("\ud800") is None and index.position_of("d0\0") is None


# -- vectors that are not numbers ------------------------------------------------------------------------


class Broken(HashModel):
    """A model that fails on one word, as one does whose weights or precision do not suffice."""

    def __init__(self, value, name):
        super().__init__()
        self.value, self.name = value, name

    def encode_document(self, texts):
        made = super().encode_document(texts)
        packed = made[self.name]
        values = packed.values.copy()
        for at, text in enumerate(texts):
            if "night" in text:
                values[packed.offsets[at + 1] - 1, 3] = self.value
        return {**made, self.name: Ragged(values, packed.offsets, packed.ids)}


@pytest.mark.parametrize("name", ["mean", "words"])
@pytest.mark.parametrize("codec", WHOLE)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_not_finite_are_refused(tmp_path, name, codec, value):
    first = next(d for d in documents() if "night" in d.text)
    message = rf"document '{first.id}': its vector in '{name}' is NaN or infinite; check the model"
    with pytest.raises(DataError, match=message):
        build_index(documents(), Broken(value, name), tmp_path / "i", IndexSettings(codec=codec))
    assert not (tmp_path / "i").exists()


HALVES = [name for name in WHOLE if np.float16 in (kind for kind, _ in CODECS[name].layout(8).values())]


@pytest.mark.parametrize("codec", HALVES)
@pytest.mark.parametrize("value", [1e30, -1e30])
def test_vectors_too_large_for_the_codec_are_refused(tmp_path, codec, value):
    message = rf"its vector in 'words' is too large for {codec}; use the codec float32"
    with pytest.raises(CounterpointError, match=message):
        build_index(documents(), Broken(value, "words"), tmp_path / "i", IndexSettings(codec=codec))
    build_index(documents(), Broken(value, "words"), tmp_path / "i", IndexSettings(codec="float32"))
