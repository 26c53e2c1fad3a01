"""A build that was interrupted goes on where it was, to the same bytes; else it says why it does not."""

import multiprocessing
import random
import re
import time
from dataclasses import replace

import pytest
from tests.fakes import HashModel, StaticModel, UniModel

from counterpoint.cli.main import main
from counterpoint.errors import ArtifactError, DataError
from counterpoint.index import Index, IndexSettings, VectorSet, build_index, kept_text, progress, stream
from counterpoint.types import Document, Ragged

DOCUMENTS = [
    Document(
        f"d{i}", f"text {i % 7} about word{i % 31} and word{i % 5}", parent=None if i % 3 else "p",
        metadata={"n": i},
    )
    for i in range(60)
]  # fmt: skip


class Tokens(HashModel):
    """Words without ids."""

    @property
    def sets(self):
        return {**super().sets, "words": VectorSet(self.dim, False, False)}

    def encode_document(self, texts):
        made = super().encode_document(texts)
        return {**made, "words": Ragged(made["words"].values, made["words"].offsets)}


WORDS = {"weights": {"lexical": 0.5, "words": 0.5}, "exact": ["words"]}
CASES = {
    "int8": (HashModel(), IndexSettings()),
    "1-bit": (HashModel(), IndexSettings(codec="1-bit")),
    "float32": (HashModel(), IndexSettings(codec="float32", lexical=None)),
    "exact words of few bits, and a graph": (
        HashModel(),
        IndexSettings(codec="2-bit", ann="hnsw", search=WORDS),
    ),
    "exact words of one component": (UniModel(), IndexSettings(search=WORDS)),
    "static": (StaticModel(), IndexSettings()),
    "centroids and lists": (Tokens(), IndexSettings(codec="2-bit")),
    "typed metadata": (HashModel(), IndexSettings(metadata={"n": "float"})),
}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch):
    monkeypatch.setattr(stream, "BATCH", 7)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    monkeypatch.setattr("counterpoint.index.centroids.LEAST_ROWS", 8)  # lists and sketches of few documents
    monkeypatch.setattr("counterpoint.index.rows_writer.LEAST", 8)


class Stop(Exception):
    """What interrupts a build."""


def until(count, documents=DOCUMENTS):
    yield from documents[:count]
    raise Stop


def interrupted(folder, count, model=None, settings=None, documents=DOCUMENTS, **how):
    with pytest.raises(Stop):
        build_index(until(count, documents), model or HashModel(), folder, settings, **how)


def files(folder):
    """Every file but the manifest, by its name without those that are drawn."""
    return {
        re.sub("/[0-9a-f]{12}/", "/", path.relative_to(folder).as_posix()): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and len(path.relative_to(folder).parts) > 1
    }


@pytest.fixture
def encoded(monkeypatch):
    """The texts that models were asked to encode."""
    seen = []
    for kind in (HashModel, UniModel, StaticModel):
        monkeypatch.setattr(kind, "encode_document", counting(kind.encode_document, seen))
    return seen


def counting(encode, seen):
    return lambda self, texts: seen.extend(texts) or encode(self, texts)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stops", [(7,), (30,), (59,), (15, 15, 44)])
def test_a_build_that_goes_on_makes_the_same_bytes_and_encodes_nothing_twice(tmp_path, encoded, case, stops):
    model, settings = CASES[case]
    if settings.ann:
        pytest.importorskip("faiss")
    whole = build_index(DOCUMENTS, model, tmp_path / "whole", settings)
    encoded.clear()
    for stop in stops:
        interrupted(tmp_path / "i", stop, model, settings, resume=True)
        kept = min(stop // 7 * 7, 56)
        assert len(encoded) == kept and f"first {kept} documents" in kept_text(tmp_path / "i")
        with pytest.raises(ArtifactError, match="unfinished"):
            Index(tmp_path / "i")
    found = build_index(DOCUMENTS, model, tmp_path / "i", settings, resume=True)
    assert files(tmp_path / "i") == files(tmp_path / "whole")
    assert encoded == [document.full_text for document in DOCUMENTS]
    assert found.segments[0].vectors == whole.segments[0].vectors
    assert (found.report, found.settings) == (whole.report, whole.settings)
    assert kept_text(tmp_path / "i") == ""


def test_a_build_that_fails_after_the_last_batch_goes_on(tmp_path, monkeypatch, encoded):
    build_index(DOCUMENTS, HashModel(), tmp_path / "whole", IndexSettings(codec="1-bit"))
    encoded.clear()
    with monkeypatch.context() as patched:
        patched.setattr("counterpoint.index.build._describe", lambda *given: 1 / 0)
        with pytest.raises(ZeroDivisionError) as failure:
            build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"))
    assert failure.value.__notes__ == [kept_text(tmp_path / "i")]
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"), resume=True)
    assert len(encoded) == len(DOCUMENTS)
    assert files(tmp_path / "i") == files(tmp_path / "whole")


def test_records_are_written_when_they_are_due(tmp_path, monkeypatch):
    monkeypatch.setattr(progress, "EVERY", 1000.0)
    interrupted(tmp_path / "i", 60)
    assert not (tmp_path / "i").exists()


def test_bm25_alone_has_nothing_to_go_on_with(tmp_path):
    with pytest.raises(Stop):
        build_index(until(30), None, tmp_path / "i")
    assert not (tmp_path / "i").exists()
    build_index(DOCUMENTS, None, tmp_path / "i", resume=True)


def test_without_resume_an_unfinished_build_is_replaced(tmp_path, encoded):
    interrupted(tmp_path / "i", 30)
    encoded.clear()
    build_index(DOCUMENTS, HashModel(), tmp_path / "i")
    assert len(encoded) == 60 and len(list((tmp_path / "i" / "segments").iterdir())) == 1


def test_an_index_is_searched_while_its_next_version_is_unfinished(tmp_path):
    build_index(DOCUMENTS[:3], HashModel(), tmp_path / "i")
    interrupted(tmp_path / "i", 30, overwrite=True)
    with Index(tmp_path / "i") as index:
        assert len(index) == 3 and index.manifest.faults(tmp_path / "i") == []
    with pytest.raises(ArtifactError, match="--overwrite"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i", resume=True)
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", overwrite=True, resume=True)
    build_index(DOCUMENTS, HashModel(), tmp_path / "whole")
    assert files(tmp_path / "i") == files(tmp_path / "whole")


def test_a_segment_that_was_being_removed_is_not_gone_on_with(tmp_path):
    """After a power failure, the record may be left and another file not."""
    interrupted(tmp_path / "i", 30)
    (segment,) = (tmp_path / "i" / "segments").iterdir()
    (segment / "documents.checks.npy").unlink()
    assert kept_text(tmp_path / "i") == ""
    again = build_index(DOCUMENTS, HashModel(), tmp_path / "i", resume=True, overwrite=True)
    assert again.documents == len(DOCUMENTS) and not segment.exists()


@pytest.mark.parametrize(
    "model, settings, message",
    [
        (HashModel(seed=1), None, "model 'hash-16-0', this one has 'hash-16-1'"),
        (HashModel(), IndexSettings(codec="4-bit"), "has codec 'int8', this one has '4-bit'"),
        (HashModel(), IndexSettings(metadata={"n": "int"}), "metadata.n None, this one has 'int'"),
        (HashModel(), IndexSettings(sets=("mean",)), "layouts.words.dim 16, this one has None"),
        (HashModel(), IndexSettings(search=WORDS), "layouts.words.kind 'several', this one has 'exact'"),
    ],
)
def test_another_model_or_layout_is_refused_and_what_is_kept_stays(tmp_path, model, settings, message):
    interrupted(tmp_path / "i", 30)
    with pytest.raises(ArtifactError, match=message):
        build_index(DOCUMENTS, model, tmp_path / "i", settings, resume=True)
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", resume=True)


def test_another_version_is_refused(tmp_path, monkeypatch):
    interrupted(tmp_path / "i", 30)
    monkeypatch.setattr("counterpoint.version.version", lambda: "99")
    with pytest.raises(ArtifactError, match="this one has '99'; ask for the same, or build from the start"):
        build_index(DOCUMENTS, HashModel(), tmp_path / "i", resume=True)


def test_what_decides_no_vector_may_change(tmp_path):
    interrupted(tmp_path / "i", 30)
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(lexical=None), resume=True)
    with Index(tmp_path / "i") as index:
        assert index.lexical is None and len(index) == 60


CHANGES = {
    "text": (lambda found: [*found[:9], replace(found[9], text="x"), *found[10:]], "'d9', has other"),
    "metadata": (
        lambda found: [*found[:9], replace(found[9], metadata={}), *found[10:]],
        "'d9', has other",
    ),
    "order": (lambda found: [found[1], found[0], *found[2:]], "number 1, 'd1', is not the one"),
    "fewer": (lambda found: found[:20], "has 20 documents, and 28 were encoded"),
    "none": (lambda found: [], "has 0 documents, and 28"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_other_documents_are_refused_and_what_is_kept_stays(tmp_path, change):
    changed, message = CHANGES[change]
    interrupted(tmp_path / "i", 30)
    with pytest.raises(DataError, match=message):
        build_index(changed(DOCUMENTS), HashModel(), tmp_path / "i", resume=True)
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", resume=True)


def test_documents_that_were_not_encoded_yet_may_change(tmp_path, encoded):
    interrupted(tmp_path / "i", 30)
    changed = [*DOCUMENTS[:28], Document("new", "a new text")]
    build_index(changed, HashModel(), tmp_path / "i", resume=True)
    with Index(tmp_path / "i") as index:
        assert index.document(28) == changed[28] and len(index) == 29
    assert encoded[28:] == ["a new text"]


def test_damage_is_found(tmp_path):
    interrupted(tmp_path / "i", 30, settings=IndexSettings(codec="1-bit"))
    (path,) = (tmp_path / "i").rglob("words.raw.npy")
    content = path.read_bytes()
    for broken in (content[:-1], content[:500] + bytes([content[500] ^ 1]) + content[501:]):
        path.write_bytes(broken)
        with pytest.raises(ArtifactError, match="words.raw.npy: this file of the unfin"):
            build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"), resume=True)
    (record,) = (tmp_path / "i").rglob("progress.json")
    for text in ("{", "[]", '{"checksum": 1}', record.read_text().replace("28", "21")):
        record.write_text(text)
        assert kept_text(tmp_path / "i") == ""
    build_index(DOCUMENTS, HashModel(), tmp_path / "i", IndexSettings(codec="1-bit"), resume=True)


def test_the_command_line_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    lines = [f'{{"_id": "{i}", "text": "word{i % 9} a"}}\n' for i in range(20)]
    (tmp_path / "c.jsonl").write_text("".join(lines[:10]) + "no JSON\n")
    monkeypatch.setattr("counterpoint.loading.load_model", lambda name: HashModelOfCommands())
    command = [
        "index",
        str(tmp_path / "c.jsonl"),
        "-o",
        str(tmp_path / "i"),
        "--model",
        "hash",
        "--no-lenient",
    ]
    assert main([*command, "--resume"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "no unfinished build; building from the start" in told and "c.jsonl:11: not valid" in told
    assert "the first 7 documents of an unfinished build are encoded and kept; build again with" in told
    (tmp_path / "c.jsonl").write_text("".join(lines))
    assert main([*command, "--resume"]) == 0
    assert "the first 7 documents" in " ".join(capsys.readouterr().err.split())
    assert main([*command, "--resume"]) == 2  # it is finished, and the error alone says so
    told = capsys.readouterr().err
    assert "already holds an index" in told and "building from the start" not in told
    (tmp_path / "c.jsonl").write_text("".join(lines) + "no JSON\n")
    assert main([*command, "--overwrite"]) == 2
    (tmp_path / "c.jsonl").write_text("".join(lines))
    capsys.readouterr()
    assert main([*command, "--overwrite"]) == 0
    assert "--resume would keep it" in " ".join(capsys.readouterr().err.split())


class HashModelOfCommands(HashModel):
    """As commands want it."""

    analyzer = "english"

    def index_settings(self, name=None, **changes):
        return IndexSettings(model=name, **changes)


# -- killed ------------------------------------------------------------------------------------------------

MANY = [Document(f"new{i}", f"a new text about {i} and word{i % 31}") for i in range(600)]


def work(folder):
    stream.BATCH, progress.EVERY = 25, 0.0
    build_index(MANY, HashModel(), folder, IndexSettings(codec="1-bit"), overwrite=True, resume=True)


@pytest.mark.parametrize("kills", [3, pytest.param(25, marks=pytest.mark.long)])
def test_a_killed_build_goes_on_to_the_same_bytes(tmp_path, kills):
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.fakes", "tests.index.test_resume", "bm25s"])

    def start(folder):
        child = context.Process(target=work, args=(folder,))
        child.start()
        return child

    start(tmp_path / "warm-up").join()
    started = time.perf_counter()
    start(tmp_path / "whole").join()
    duration, expected = time.perf_counter() - started, files(tmp_path / "whole")
    rng = random.Random(7)
    for i in range(kills):
        folder = tmp_path / str(i)
        for _ in range(2):  # the second kill may fall into what goes on
            child = start(folder)
            time.sleep(duration * (i + rng.random()) / kills)
            child.kill()
            child.join()
        start(folder).join()
        assert files(folder) == expected
    child = start(tmp_path / "late")  # by chance, all of these may have fallen before the first kept text
    while child.is_alive() and not kept_text(tmp_path / "late"):
        time.sleep(0.001)
    child.kill()
    child.join()
    assert kept_text(tmp_path / "late"), "the kill left nothing to go on with; the test tests nothing"
    start(tmp_path / "late").join()
    assert files(tmp_path / "late") == expected
