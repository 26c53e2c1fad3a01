"""Every step of every writer fails in turn: what was there or what was to be there, and a true message.

One undisturbed pass takes a picture before each operation of what a killed process would leave, and of what a
power failure would leave. Then the writer runs again and again, and another operation fails each time.
"""

import hashlib
import json
import re
import resource
import shutil
from dataclasses import replace
from functools import partial

import pytest
import torch

from counterpoint.cli.main import main
from counterpoint.encode import DualEncoder, Encoder, Mean, TokenVectors, Transformer
from counterpoint.errors import ArtifactError, CounterpointError
from counterpoint.index import Index, IndexSettings, build_index, keep_search, progress, stream
from counterpoint.index.manifest import COPY, NAME
from counterpoint.index.manifest_copy import restore
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.library import model_of
from counterpoint.loading import load_model
from counterpoint.model import Model
from counterpoint.part import Part
from counterpoint.search import Searcher
from counterpoint.types import Document
from tests.changers import CHANGERS, Compacting
from tests.cli.conftest import DOCUMENTS as TEXTS
from tests.fakes import HashModel
from tests.faults import CRASHES, Disk

SEARCH = {"weights": {"lexical": 0.2, "mean": 0.2, "words": 0.6}, "exact": ["words"]}
SAMPLE = 307  # of so many trials of the long tier the fast one makes one
COSTLY = (
    "dividing",
    "all changes at once, in shards",
    "a build of shards that goes on",
    "an index with its model over another",
)
"""They write many files or a model, so the fast tier makes half of that, and the long tier every `FIFTH`."""
FIFTH = 5  # coprime to both numbers of ways: all operations crash and three in five fail, each way in turn
FAILURES = ("EIO", "ENOSPC", "interrupt")


def documents(name):
    return [Document(f"{name}{i}", f"{name} text about {i} and word{i % 3}") for i in range(5)]


class Building:
    """An index, with BM25, pooled vectors with a graph, and words; `first` builds it anew."""

    def __init__(self, *, first=False, model=True):
        self.first, self.model = first, HashModel() if model else None
        self.settings = IndexSettings(ann="hnsw", search=SEARCH) if model else IndexSettings()

    def prepare(self, root):
        if not self.first:
            self.build(root, "old")

    def act(self, root):
        self.build(root, "new")

    def build(self, root, name):
        build_index(
            documents(name), self.model, root / "i", self.settings, overwrite=not self.first or name == "new"
        )

    def look(self, root):
        try:
            with Index(root / "i") as index:
                assert index.manifest.faults(root / "i") == []
                answer = Searcher(index, self.model).search("text about 3 word1", 5)
                names = {index.name_of(i) for i in range(len(index))}
        except ArtifactError:
            return "nothing"
        kind = next(kind for kind in ("old", "new") if names == {d.id for d in documents(kind)})
        assert {hit.document.id for hit in answer.hits} == names
        return kind

    def leftovers(self, root):
        folder = root / "i"
        stored = [path.parent.name for path in folder.glob("*/*")]
        assert sorted(stored) == ["lexical", "segments"], stored
        assert {path.name for path in folder.iterdir()} == {NAME, COPY, ".lock", "lexical", "segments"}
        assert {path.name for path in root.iterdir()} == {"i"}


class Resuming(Building):
    """An index in many batches, each of which is recorded; every crash is gone on from.

    Once it is whole, every file is the same, whatever happened on the way.
    """

    whole = None

    def act(self, root):
        before = stream.BATCH, progress.EVERY
        stream.BATCH, progress.EVERY = 2, 0.0
        try:
            build_index(documents("new"), self.model, root / "i", self.settings, overwrite=True, resume=True)
        finally:
            stream.BATCH, progress.EVERY = before

    def leftovers(self, root):
        found = {
            (path.parts[-3], path.name): path.read_bytes() for path in (root / "i").glob("*/*/*")
        }  # without the random names between them
        self.whole = self.whole or found
        assert found == self.whole
        super().leftovers(root)


class ResumingShards(Resuming):
    """The same in shards, into which the build divides what it encoded at its end."""

    def __init__(self):
        super().__init__()
        self.settings = replace(self.settings, shards=2)

    def leftovers(self, root):
        folder = root / "i"
        with Index(folder) as index:
            named = {name for entry in index.manifest.segments for name in entry.folders()}
        assert {path.relative_to(folder).as_posix() for path in folder.glob("shards/*/*/*")} == named
        assert not [path for path in folder.glob("[ls]e*/*")]
        found = {
            re.sub("/[0-9a-f]{12}/", "/", path.relative_to(folder).as_posix()): path.read_bytes()
            for path in folder.glob("shards/*/*/*/*")
        }
        self.whole = self.whole or found
        assert found == self.whole
        assert {path.name for path in root.iterdir()} == {"i"}


class BuildingWithModel:
    """An index of a model that was made in Python, which is saved with it, over another such index."""

    def __init__(self, models):
        self.models = models

    def prepare(self, root):
        self.build(root, "old")

    def act(self, root):
        self.build(root, "new")

    def build(self, root, name):
        build_index(documents(name), self.models[name], root / "i", overwrite=name == "new")

    def look(self, root):
        with Index(root / "i") as index:
            assert index.manifest.faults(root / "i") == []
            answer = Searcher(index, model_of(index)).search("text about 3 word1", 5)
            names = {index.name_of(i) for i in range(len(index))}
        assert {hit.id for hit in answer} == names
        return next(kind for kind in ("old", "new") if names == {d.id for d in documents(kind)})

    def leftovers(self, root):
        folder = root / "i"
        stores = {"lexical", "models", "segments"}
        assert sorted(path.parent.name for path in folder.glob("*/*")) == sorted(stores)
        queries = {"queries.json", "queries.onnx"}
        assert {path.name for path in folder.glob("models/*/*")} == {".counterpoint", "model", *queries}
        assert {path.name for path in folder.iterdir()} == {NAME, COPY, ".lock", *stores}


class Keeping(Building):
    """Other search settings for an index that stays as it is."""

    def prepare(self, root):
        self.build(root, "old")

    def act(self, root):
        keep_search(root / "i", {**SEARCH, "weights": {"words": 1.0}})

    def look(self, root):
        assert super().look(root) == "old"
        with Index(root / "i") as index:
            return "new" if len(index.manifest.settings["search"]["weights"]) == 1 else "old"


class Saving:
    """A model's folder replaced by another model."""

    def __init__(self, models, *, first=False):
        self.models, self.first = models, first

    def prepare(self, root):
        if not self.first:
            self.models["old"].save(root / "m")

    def act(self, root):
        self.models["new"].save(root / "m", overwrite=True)

    def look(self, root):
        try:
            found = Part.load(root / "m").fingerprint()
        except ArtifactError as error:
            assert "no part.toml here" in str(error)
            return "nothing"
        return next(name for name, model in self.models.items() if model.fingerprint() == found)

    def leftovers(self, root):
        assert {path.name for path in root.iterdir()} == {"m"}


class Checkpointing:
    """A checkpoint written at a later step, or again at its own."""

    def __init__(self, step):
        self.step = step

    def write(self, root, name, step):
        tensors = {"weights": {"w": torch.full((40,), float(len(name)))}, "best": {}}
        Checkpoint(0, step, {"name": name}, tensors).write(root / "checkpoints")

    def prepare(self, root):
        self.write(root, "old", 5)

    def act(self, root):
        self.write(root, "new", self.step)

    def look(self, root):
        found = Checkpoint.latest(root / "checkpoints")
        assert (found.tensors["weights"]["w"] == 3).all()
        return found.state["name"]

    def leftovers(self, root):
        names = {path.name for path in (root / "checkpoints").iterdir()}
        assert len(names) == 2 and "latest.json" in names, names


class Fitting:
    """`counterpoint fit` into a folder that holds a model."""

    def __init__(self, models, source):
        self.models, self.source = models, source

    def prepare(self, root):
        shutil.copytree(self.source / "old", root / "m")

    def act(self, root):
        code = main([
            "fit", "whitening", str(self.source / "old"), str(self.source / "texts"),
            "-o", str(root / "m"), "--on", "tokens", "--documents", "0", "--overwrite",
        ])  # fmt: skip
        if code == 130:
            raise KeyboardInterrupt
        if code:
            raise CounterpointError(f"exit code {code}")

    def look(self, root):
        found = load_model(root / "m")
        return "old" if found.fingerprint() == self.models["old"].fingerprint() else "new"

    leftovers = Saving.leftovers


@pytest.fixture(scope="module")
def models(tiny_bert_folder):
    made = {}
    for name, layers in (("old", 1), ("new", 2)):
        heads = {"mean": Mean(normalise=True), "tokens": TokenVectors()}
        made[name] = Model(DualEncoder(Encoder(Transformer(str(tiny_bert_folder), layers=layers), heads)))
    return made


@pytest.fixture(scope="module")
def source(models, tmp_path_factory):
    folder = tmp_path_factory.mktemp("source")
    models["old"].save(folder / "old")
    (folder / "texts").mkdir()
    rows = [{"_id": name, "title": title, "text": text} for name, (title, text) in TEXTS.items()]
    (folder / "texts" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


WRITERS = {
    "a new index": lambda models, source: Building(first=True),
    "an index over another": lambda models, source: Building(),
    "a build that goes on": lambda models, source: Resuming(),
    "a build of shards that goes on": lambda models, source: ResumingShards(),
    "a BM25 index over another": lambda models, source: Building(model=False),
    "an index with its model over another": lambda models, source: BuildingWithModel(models),
    "keep_search": lambda models, source: Keeping(),
    "a new model": lambda models, source: Saving(models, first=True),
    "a model over another": lambda models, source: Saving(models),
    "the next checkpoint": lambda models, source: Checkpointing(6),
    "a checkpoint at its own step": lambda models, source: Checkpointing(5),
    "fit over a model": lambda models, source: Fitting(models, source),
    **{name: lambda models, source, kind=kind: kind() for name, kind in CHANGERS.items()},
}


@pytest.mark.parametrize("exchange", [True, False], ids=["exchange", "renames"])
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long, id="all"), SAMPLE])
def test_every_step_may_fail(name, exchange, step, models, source, tmp_path, capfd, say):
    if not exchange and "model" not in name:
        pytest.skip("only folders that are replaced are exchanged")
    if name in COSTLY:
        step = 2 * step if step > 1 else FIFTH
    writer = WRITERS[name](models, source)
    before = tmp_path / "before"
    before.mkdir()
    writer.prepare(before)
    old = writer.look(before)
    disk = partial(Disk, exchange=exchange)
    crashed, log = crashes(writer, before, old, disk, step)
    failed = failures(writer, before, old, disk, range(0, len(log) * len(FAILURES), step), capfd)
    syncs = [at for at, entry in enumerate(log) if entry.startswith("fsync ")]
    lost = lost_syncs(writer, before, old, disk, syncs[:: max(1, step // 4)], capfd)
    told = f"{name}, {len(log)} operations, {crashed}, {failed} failures, {lost} lost syncs: 0 bad"
    say(told)


def crashes(writer, before, old, disk, step):
    """Crash before every operation, in every way; how many crashes, and the operations that there are.

    Crashes that leave the same bytes under the same names are one: it is looked at and gone on from once.
    """
    root = before.with_name("undisturbed")
    shutil.copytree(before, root)
    made, seen, count = [], set(), 0

    def picture(disk):
        nonlocal count
        for number, how in enumerate(CRASHES, disk.count * len(CRASHES)):
            if number % step == 0:
                count += 1
                target = before.with_name(f"crash-{number}")
                disk.crashed(how, target, seed=number)
                if (left := contents(target)) in seen:
                    shutil.rmtree(target)
                else:
                    seen.add(left)
                    made.append((f"{how} before {disk.log[-1]}", target))

    watched = disk(root, what=picture)
    with watched.watched():
        writer.act(root)
    watched.close()
    assert writer.look(root) == "new"
    writer.leftovers(root)
    outcomes = set()
    for where, target in made:
        found = writer.look(target)
        assert found in (old, "new"), where
        assert from_copy(writer, target) in (None, old, "new"), where
        outcomes.add(found)
        writer.act(target)  # what was left is no obstacle, and is removed
        assert writer.look(target) == "new", where
        writer.leftovers(target)
        shutil.rmtree(target)
    assert step >= SAMPLE or outcomes == {old, "new"}, (
        "no crash came after the commit; the test tests nothing"
    )
    return f"{count} crashes ({len(made)} distinct)", watched.log


def contents(folder):
    """A digest of every name below a folder and what it holds."""
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        held = path.read_bytes() if path.is_file() else b""
        whole.update(repr((path.relative_to(folder).as_posix(), path.is_dir(), len(held))).encode() + held)
    return whole.digest()


def from_copy(writer, root):
    """What an index is once its manifest is lost and made again; None where there is no copy of it."""
    if not (root / "i" / COPY).exists():
        return None
    other = root.with_name("from-copy")
    shutil.copytree(root, other)
    (other / "i" / NAME).unlink(missing_ok=True)
    assert restore(other / "i") == NAME
    found = writer.look(other)
    shutil.rmtree(other)
    return found


def failures(writer, before, old, disk, numbers, capfd):
    """Let operations fail, each in every way; how many trials that were."""
    root = before.with_name("failing")
    for number in numbers:
        at, what = number // len(FAILURES), FAILURES[number % len(FAILURES)]
        shutil.copytree(before, root)
        failing = disk(root, at, what)
        said = attempt(writer, root, failing, capfd)
        failing.close()
        where = f"{what} at {failing.log[at]}: {said}"
        found = writer.look(root)
        assert found in (old, "new"), where
        assert from_copy(writer, root) in (None, old, "new"), where
        if said is None:
            assert found == "new", where
        else:
            assert "bug" not in said, where
            assert "unchanged" not in said or found == old, where
            assert ("new version is in place" in said) <= (found == "new"), where
            # When it looks, after a commit, what is left to merge, and takes the lock again for that.
            later = isinstance(writer, Compacting) and ("cannot be read" in said or ".lock" in said)
            assert found == old or what == "interrupt" or "new version is in place" in said or later, where
        shutil.rmtree(root)
    return len(numbers)


def lost_syncs(writer, before, old, disk, numbers, capfd):
    """Let syncs fail that lose what they were to write; the power fails at once, or after another attempt.

    A writer that only syncs again, and does not write again, would take what was lost for written.
    """
    root, crash = before.with_name("losing"), before.with_name("lost")
    for at in numbers:
        shutil.copytree(before, root)
        losing = disk(root, at, "lost")
        said = attempt(writer, root, losing, capfd)
        where, left = f"{losing.log[losing.at]}: {said}", writer.look(root)
        assert left == "new" or said is not None, where
        for again in (False, True):
            if again and attempt(writer, root, losing, capfd) is not None:
                raise AssertionError(f"{where}: and the second attempt fails")
            losing.crashed("only what was synced", crash)
            found = writer.look(crash)
            assert found in ((old, "new") if left == "new" or not again else ("new",)), (where, again)
            shutil.rmtree(crash)
        losing.close()
        shutil.rmtree(root)
    return len(numbers)


def attempt(writer, root, disk, capfd):
    """What the writer says of its failure; None where it has none."""
    capfd.readouterr()
    try:
        with disk.watched():
            writer.act(root)
    except KeyboardInterrupt as interrupt:
        notes = getattr(interrupt, "__notes__", [])
        return notes[-1] if notes else capfd.readouterr().err or "interrupted"
    except CounterpointError as error:
        return capfd.readouterr().err or str(error)
    return None


@pytest.mark.parametrize("name", [name for name in WRITERS if name not in ("keep_search", "a new model")])
def test_a_file_that_may_not_grow(name, models, source, tmp_path, capsys):
    """The system's own refusal, met inside SQLite, safetensors, faiss and numpy, too."""
    writer = WRITERS[name](models, source)
    before = tmp_path / "before"
    before.mkdir()
    writer.prepare(before)
    old = writer.look(before)
    for limit in (0, 200, 5000):
        root = tmp_path / f"limit-{limit}"
        shutil.copytree(before, root)
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        said = ""
        try:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
            writer.act(root)
        except CounterpointError as error:
            said = f"{error}{capsys.readouterr().err}"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        found = writer.look(root)
        assert found == (old if said else "new")
        assert "unchanged" in said if said else limit > 200, said
        assert "bug" not in said
