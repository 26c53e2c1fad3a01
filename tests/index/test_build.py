import json
import os
from dataclasses import replace

import numpy as np
import pytest
from filelock import FileLock
from tests.fakes import DOCUMENTS, HashModel, UniModel

from counterpoint.errors import ArtifactError, ConfigError, DataError
from counterpoint.index import (
    Asked,
    Index,
    IndexSettings,
    LexicalSettings,
    Manifest,
    build_index,
    remove_index,
)
from counterpoint.index import stream as stream_module
from counterpoint.index.codec import CODECS, Bits, Integral
from counterpoint.index.kernels import dot_scores, maxsim_scores
from counterpoint.types import Document


def test_everything_that_went_in_comes_out(tmp_path):
    model = HashModel()
    build_index(DOCUMENTS, model, tmp_path / "i", IndexSettings(codec="float32"))
    expected = model.encode_document([d.full_text for d in DOCUMENTS])
    with Index(tmp_path / "i") as index:
        assert len(index) == len(DOCUMENTS)
        assert [index.document(i) for i in range(len(index))] == DOCUMENTS
        assert [index.position_of(d.id) for d in DOCUMENTS] == list(range(len(DOCUMENTS)))
        assert index.position_of("nobody") is None
        assert [index.name_of(i) for i in range(len(index))] == [d.id for d in DOCUMENTS]
        assert index.parents == {"e#0": "e", "e#1": "e"}
        for name in ("mean", "words"):
            found = index.take(name, np.array([3, 0, 3]))
            wanted = expected[name].take(np.array([3, 0, 3]))
            np.testing.assert_array_equal(found.values, wanted.values)
            np.testing.assert_array_equal(found.offsets, wanted.offsets)
        np.testing.assert_array_equal(index.take("words", np.array([0])).ids, expected["words"].ids_of(0))


def decoded(vectors, name):
    """As a codec keeps them."""
    codec, dim = CODECS[name], vectors.values.shape[1]
    return replace(vectors, values=codec.decode(codec.encode(vectors.values), dim))


@pytest.mark.parametrize("codec", [name for name, codec in CODECS.items() if not isinstance(codec, Bits)])
def test_scores_from_disk_are_those_of_decoded_vectors(tmp_path, codec):
    model = HashModel()
    build_index(DOCUMENTS, model, tmp_path / "i", IndexSettings(codec=codec))
    made = model.encode_document([d.full_text for d in DOCUMENTS])
    query = model.encode_query(["brown fox under box"])
    with Index(tmp_path / "i") as index:
        codecs = {name: layout.codec for name, layout in index.layouts.items()}
        documents = {name: decoded(rows, codecs[name]) for name, rows in made.items()}
        for name, rows in made.items():  # a codec that decodes to something else cannot agree with itself
            np.testing.assert_allclose(documents[name].values, rows.values, atol=0.1)
        rounds = any(isinstance(CODECS[each], Integral) for each in codecs.values())
        tolerance = 2e-2 if rounds else 1e-6  # codecs of integers round queries, too
        np.testing.assert_allclose(
            index.sets["mean"].all_scores([Asked(query["mean"].values)]),
            dot_scores(query["mean"].values, documents["mean"].values),
            atol=tolerance,
        )
        exact = maxsim_scores(query["words"][0], documents["words"])
        (everywhere,) = index.sets["words"].all_scores([Asked(query["words"][0])])
        np.testing.assert_allclose(everywhere, exact, atol=tolerance)
        some = np.array([4, 2, 1])
        np.testing.assert_allclose(
            index.sets["words"].scores(Asked(query["words"][0]), some), exact[some], atol=tolerance
        )


def test_batches_and_blocks_do_not_show(tmp_path, monkeypatch):
    documents = [Document(str(i), f"word{i % 7} word{i % 5} shared") for i in range(50)]
    build_index(documents, HashModel(), tmp_path / "one")
    monkeypatch.setattr(stream_module, "BATCH", 3)
    monkeypatch.setattr("counterpoint.index.stored_rows.BLOCK", 4 * 16 * 7)
    build_index(documents, HashModel(), tmp_path / "many")
    query = HashModel().encode_query(["word3 shared"])
    with Index(tmp_path / "one") as one, Index(tmp_path / "many") as many:
        for index in (one, many):
            assert index.sets["words"].all_scores([Asked(query["words"][0])] * 2).shape == (2, 50)
        np.testing.assert_array_equal(
            one.sets["words"].all_scores([Asked(query["words"][0])]),
            many.sets["words"].all_scores([Asked(query["words"][0])]),
        )
        sizes = [
            {k: v for k, v in x.info()["bytes_by_purpose"].items() if k != "manifest"} for x in (one, many)
        ]
        assert sizes[0] == sizes[1]


def test_idf_counts_documents_not_occurrences(tmp_path):
    texts = ["fox fox fox", "fox dog", "dog", "cat"]
    build_index([Document(str(i), t) for i, t in enumerate(texts)], HashModel(), tmp_path / "i")
    ids = HashModel().encode_query(["fox cat unseen"])["words"].ids
    with Index(tmp_path / "i") as index:
        df = np.array([2, 1, 0])
        np.testing.assert_allclose(
            index.idf("words", ids), np.log(1 + (4 - df + 0.5) / (df + 0.5)), rtol=1e-6
        )


def test_info_accounts_for_every_byte(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    on_disk = sum(p.stat().st_size for p in (tmp_path / "i").rglob("*") if p.is_file())
    with Index(tmp_path / "i") as index:
        info = index.info()
    assert info["bytes"] == on_disk == sum(info["bytes_by_purpose"].values())
    assert set(info["bytes_by_purpose"]) == {
        "checksums", "documents", "lexical", "manifest", "other",
        "vectors: mean", "vectors: words", "ids: words", "offsets: words", "vocabulary: words",
    }  # fmt: skip
    assert info["bytes_by_purpose"]["other"] == 0  # the lock file, which is empty
    assert info["sets"]["words"]["vectors"] == len(
        HashModel().encode_document([d.full_text for d in DOCUMENTS])["words"].values
    )


def test_info_tells_the_parts_of_a_set_apart_and_compares_with_the_text(tmp_path):
    settings = IndexSettings(codec="int8", search={"weights": {"words": 1.0}, "exact": ["words"]})
    documents = [*DOCUMENTS, Document("é", "größe 東京", title="Ω")]
    build_index(documents, UniModel(), tmp_path / "i", settings)
    with Index(tmp_path / "i") as index:
        info = index.info()
    words = [word for d in documents for word in UniModel().words(d.full_text)]
    header = 128  # of every .npy file
    stored = info["bytes_by_purpose"]
    assert stored["vectors: cls"] == 2 * header + len(documents) * (8 + 2)
    assert stored["vectors: words"] == header + 2 * len(words)  # one float16 each, no scale
    assert stored["ids: words"] == header + 4 * len(words)
    assert stored["offsets: words"] == header + 4 * len(documents)
    assert stored["vocabulary: words"] == 2 * header + 8 * len(set(words))
    assert stored["postings: words"] == 2 * header + 4 * len(words) + 4 * (len(set(words)) + 1)
    found = info["sets"]["words"]
    assert (found["vectors"], found["distinct_ids"]) == (len(words), len(set(words)))
    assert found["vectors_per_document"] == len(words) / info["documents"]
    assert (
        info["documents"] == len({d.parent or d.id for d in documents}) < info["passages"] == len(documents)
    )
    assert found["bytes"] == sum(size for name, size in stored.items() if name.endswith(": words"))
    assert info["sets"]["cls"]["distinct_ids"] is None
    plain = sum(len(d.title.encode()) + len(d.text.encode()) for d in documents)
    assert info["text_bytes"] == plain
    assert info["factor_over_text"] == pytest.approx((info["bytes"] - stored["documents"]) / plain)


def test_info_of_documents_without_text(tmp_path):
    build_index([Document("a", "")], UniModel(), tmp_path / "i")
    with Index(tmp_path / "i") as index:
        info = index.info()
    assert info["text_bytes"] == 0 and info["factor_over_text"] is None


@pytest.mark.parametrize("number", ["4711", "12345678", "0a1b2c3d"])
def test_a_manifest_that_was_never_put_in_place_is_no_obstacle(tmp_path, number):
    """What a process leaves that is killed between writing the manifest and renaming it.

    The first is a name as earlier versions gave, the second could be of any version.
    """
    names = [f".{name}.{number}.partial" for name in ("manifest.json", "manifest.copy.json")]
    left = [tmp_path / "i" / name for name in names[: 1 if number == "4711" else 2]]
    left[0].parent.mkdir()
    for path in left:
        path.write_text("{")
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    assert not any(path.exists() for path in left)
    (tmp_path / "i" / "mine.txt").write_text("")
    with pytest.raises(ArtifactError, match=r"'mine.txt'"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i", overwrite=True)


@pytest.mark.parametrize("batch", [1, 3, 512])
def test_a_duplicate_id_is_named_with_both_places(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(stream_module, "BATCH", batch)
    documents = [Document(name, f"text {name}") for name in ["a", "b", "c", "d", "b"]]
    with pytest.raises(DataError, match="duplicate document id 'b': documents number 2 and 5 of"):
        build_index(documents, None, tmp_path / "i")
    assert not (tmp_path / "i").exists()


def test_an_index_can_be_moved(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    (tmp_path / "i").rename(tmp_path / "elsewhere")
    with Index(tmp_path / "elsewhere") as index:
        assert index.manifest.faults(index.folder) == []
        assert index.lexical is not None and index.lexical.scores("fox")[0] > 0
    assert str(tmp_path) not in (tmp_path / "elsewhere" / "manifest.json").read_text()


def test_a_lexical_index_needs_no_model(tmp_path):
    build_index(DOCUMENTS, None, tmp_path / "i", IndexSettings(lexical=LexicalSettings(analyzer="simple")))
    with Index(tmp_path / "i") as index:
        assert index.layouts == {} and index.lexical is not None
        assert index.lexical.scores("foxes")[3] > 0


def test_a_finished_index_is_replaced_only_when_asked(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    with pytest.raises(ArtifactError, match="--overwrite"):
        build_index(DOCUMENTS[:1], HashModel(), tmp_path / "i")
    build_index(DOCUMENTS[:1], HashModel(), tmp_path / "i", overwrite=True)
    with Index(tmp_path / "i") as index:
        assert len(index) == 1
    assert len(list((tmp_path / "i" / "segments").iterdir())) == 1


def test_a_failed_build_keeps_the_old_index_and_leaves_nothing_behind(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    with pytest.raises(DataError, match="duplicate document id"):
        build_index([*DOCUMENTS, DOCUMENTS[0]], HashModel(), tmp_path / "i", overwrite=True)
    with Index(tmp_path / "i") as index:
        assert len(index) == len(DOCUMENTS)
        assert index.manifest.faults(index.folder) == []
    assert len(list((tmp_path / "i" / "segments").iterdir())) == 1
    assert len(list((tmp_path / "i" / "lexical").iterdir())) == 1


def test_folders_that_hold_something_else_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(ArtifactError, match="thesis.tex"):
        build_index(DOCUMENTS, HashModel(), tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["thesis.tex"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_folders_of_somebody_else_survive_beside_segments(tmp_path, overwrite):
    """The names of our folders are ordinary words; a folder is ours by the marker in it."""
    for name in ("segments/holiday", "lexical/notes"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "photo.npy").write_text("precious")
    with pytest.raises(ArtifactError, match=r"not an index \('lexical/notes'\); choose a new folder"):
        build_index(DOCUMENTS, None, tmp_path, overwrite=overwrite)
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*.npy")) == [
        "lexical/notes/photo.npy",
        "segments/holiday/photo.npy",
    ]


@pytest.mark.parametrize("name", ["segments", "lexical", "manifest.json", ".lock"])
def test_an_index_is_not_written_through_links(tmp_path, name):
    build_index(DOCUMENTS, None, tmp_path / "i")
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "i" / name).rename(elsewhere)
    (tmp_path / "i" / name).symlink_to(elsewhere)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ArtifactError, match=f"'{name}' is a link"):
        build_index(DOCUMENTS[:1], None, tmp_path / "i", overwrite=True)
    assert sorted(tmp_path.rglob("*")) == before


def test_only_files_that_we_made_are_removed_from_a_segment(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    [segment] = (tmp_path / "i" / "segments").iterdir()
    (segment / "notes.txt").write_text("precious")
    (segment / "values.npy").symlink_to(tmp_path)
    build_index(DOCUMENTS[:1], HashModel(), tmp_path / "i", overwrite=True)
    assert sorted(path.name for path in segment.iterdir()) == [".counterpoint", "notes.txt", "values.npy"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path):
    for name in ("segments/0123456789ab", "lexical/ba9876543210", "segments/00000000000a"):
        (tmp_path / "i" / name).mkdir(parents=True)
    (tmp_path / "i" / "segments" / "0123456789ab" / "documents.sqlite").write_text("half")  # of version 0.1
    (tmp_path / "i" / "lexical" / "ba9876543210" / ".counterpoint").touch()
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    assert len(list((tmp_path / "i" / "segments").iterdir())) == 1
    assert len(list((tmp_path / "i" / "lexical").iterdir())) == 1
    remove_index(tmp_path / "i")
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_source_is_not_one_of_the_disk(tmp_path):
    def source():
        yield DOCUMENTS[0]
        raise ConnectionError("no route to host")

    with pytest.raises(DataError, match="the source cannot be read: no route to host"):
        build_index(source(), HashModel(), tmp_path / "i")
    assert list(tmp_path.iterdir()) == []


def test_one_writer_at_a_time(tmp_path):
    (tmp_path / "i").mkdir()
    with FileLock(tmp_path / "i" / ".lock"), pytest.raises(ArtifactError, match="another process"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i")


def test_nothing_to_index_is_an_error(tmp_path):
    with pytest.raises(DataError, match="no documents"):
        build_index([], HashModel(), tmp_path / "i")
    with pytest.raises(ConfigError, match="no vector set 'wrods'; it has mean, words"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(sets=("wrods",)))
    with pytest.raises(ConfigError, match="nothing to search"):
        build_index(DOCUMENTS, None, tmp_path / "i", IndexSettings(lexical=None))


# -- damage --------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    return tmp_path / "i"


def files_of(folder):
    return [folder / name for name in json.loads((folder / "manifest.json").read_text())["files"]]


def test_a_truncated_or_missing_file_does_not_open(folder):
    for path in files_of(folder):
        whole = path.read_bytes()
        path.write_bytes(whole[:-1])
        with pytest.raises(ArtifactError, match=path.name):
            Index(folder)
        path.unlink()
        with pytest.raises(ArtifactError, match=path.name):
            Index(folder)
        path.write_bytes(whole)
    Index(folder).close()


def test_one_flipped_bit_anywhere_is_found_by_verify(folder):
    for path in files_of(folder):
        if not path.stat().st_size:
            continue
        whole = path.read_bytes()
        at = len(whole) - 1  # after every header, so that the index still opens
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]))
        (fault,) = Manifest.read(folder).faults(folder)
        assert path.name in fault
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t[:-9], "not valid JSON, so it is damaged"),
        (
            lambda t: t.replace('"version": 5', '"version": 99'),
            "format 99, this version of counterpoint reads 1, 2, 3, 4, 5 and 6",
        ),
        (lambda t: t.replace('"documents": 6', '"documents": 5'), "checksum"),
        (lambda t: "[]", "not a Counterpoint index"),
    ],
)
def test_a_damaged_manifest_is_refused(folder, change, message):
    path = folder / "manifest.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(ArtifactError, match=message):
        Index(folder)


def test_what_is_not_an_index_says_so(tmp_path):
    with pytest.raises(ArtifactError, match="no such folder"):
        Index(tmp_path / "nowhere")
    (tmp_path / "segments").mkdir()
    with pytest.raises(ArtifactError, match="unfinished"):
        Index(tmp_path)


def test_another_model_is_refused(folder):
    with Index(folder) as index:
        index.check_model(HashModel().fingerprint())
        with pytest.raises(ArtifactError, match="built with the model hash-16-0"):
            index.check_model(HashModel(seed=1).fingerprint())


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_an_artifact_error(tmp_path):
    (tmp_path / "i").mkdir(mode=0o500)
    with pytest.raises(ArtifactError, match="cannot write"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_refused_in_metadata(tmp_path, number):
    documents = [Document("a", "x"), Document("b", "y", metadata={"deep": [number]})]
    with pytest.raises(DataError, match="document 'b': its metadata is not JSON"):
        build_index(documents, None, tmp_path / "i", IndexSettings(lexical=LexicalSettings()))
