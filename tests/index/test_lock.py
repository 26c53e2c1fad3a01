"""The lock of an index: who waits, who is refused, and what a disk without locks, space or leave says."""

import errno
import fcntl
import multiprocessing
import os
import shutil
import threading
import time

import pytest
from tests.fakes import DOCUMENTS
from tests.faults import Disk

from counterpoint import locks as lock_module
from counterpoint.cli.main import main
from counterpoint.errors import ArtifactError
from counterpoint.index import Index, Manifest, build, build_index, committing
from counterpoint.index.changing import changing
from counterpoint.index.lock import locked
from counterpoint.search import Searcher


@pytest.fixture
def folder(tmp_path):
    build_index(DOCUMENTS, None, tmp_path / "i")
    return tmp_path / "i"


def hold(folder, ready):
    with locked(folder):
        ready.set()
        time.sleep(60)


def refused(folder, capsys, *needles):
    """Every command that writes says the same, with exit code 2, and the index is what it was."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    for command in (
        ["delete", str(folder), "a"],
        ["compact", str(folder)],
        ["verify", str(folder), "--repair"],
    ):
        code = main(command)
        said = capsys.readouterr().err
        if command[0] != "compact":  # where nothing is due, nothing is written
            assert code == 2 and all(needle in said for needle in needles) and "Traceback" not in said, said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_an_index_that_is_removed_while_a_writer_begins(folder, capsys, monkeypatch):
    def removed(folder, manifest):
        shutil.rmtree(folder)
        return os.scandir(folder / "segments")  # as looking for what a killed writer left does

    monkeypatch.setattr(committing, "unfinished_segment", removed)
    assert main(["delete", str(folder), "a"]) == 2
    said = capsys.readouterr().err
    assert "segments: cannot write: No such file or directory" in said and "Traceback" not in said, said
    assert not folder.exists()


def test_an_index_that_is_replaced_while_a_writer_works(folder, capsys):
    """The lock's file goes with the folder, so that another process can build an index there."""
    index, other = Index(folder), folder.with_name("other")
    build_index(DOCUMENTS[1:], None, other)
    with pytest.raises(ArtifactError, match="another process replaced"), index, changing(index) as change:
        change.delete(["a"])
        shutil.rmtree(folder)
        shutil.copytree(other, folder)
    assert Manifest.read(folder) == Manifest.read(other) and not Manifest.read(folder).faults(folder)
    assert main(["delete", str(folder), DOCUMENTS[1].id]) == 0  # removes what the other one left, too
    assert main(["verify", str(folder)]) == 0, capsys.readouterr().err


def test_an_index_that_is_removed_while_a_build_goes_on(folder, monkeypatch):
    def removed(folder):
        shutil.rmtree(folder)
        return os.scandir(folder / "segments")

    monkeypatch.setattr(build, "unfinished_segment", removed)
    with pytest.raises(ArtifactError, match="cannot write: No such file or directory"):
        build.keep_search(folder, {})


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL])
def test_a_file_system_without_locks(folder, capsys, monkeypatch, code):
    def flock(descriptor, how):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    refused(folder, capsys, "its file system has no locks", "Copy the index to a local disk")
    with Index(folder) as index:  # reading needs none
        assert Searcher(index).search("fox", 2).hits


def test_a_system_without_locks(folder, monkeypatch):
    import filelock

    class Without:
        def __init__(self, *given, **named):
            pass

        def acquire(self):
            raise NotImplementedError

    monkeypatch.setattr(filelock, "FileLock", Without)
    with pytest.raises(ArtifactError, match=r"has no locks \(not implemented\)"), locked(folder):
        pass


def test_two_processes_and_one_that_is_killed(folder, capsys):
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    writer = context.Process(target=hold, args=(folder, ready))
    writer.start()
    try:
        assert ready.wait(60)
        refused(folder, capsys, "another process is writing this index; wait for it to end")
    finally:
        writer.kill()  # the lock goes with it
        writer.join()
    assert main(["delete", str(folder), "a"]) == 0
    with Index(folder) as index:
        assert index.position_of("a") is None


def test_threads(folder):
    """Of several at once each either writes or is refused, and every one that wrote is there."""
    wrote, barrier = [], threading.Barrier(8)

    def write(name):
        barrier.wait()
        while name not in wrote:
            try:
                with Index(folder) as index, changing(index) as change:
                    change.delete([name])
                wrote.append(name)
            except ArtifactError as error:
                assert "another process is writing" in str(error)
                time.sleep(0.01)

    names = [each.id for each in DOCUMENTS[:4]]
    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    threads += [threading.Thread(target=barrier.wait) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(wrote) == sorted(names)
    with Index(folder) as index:
        assert len(index) == len(DOCUMENTS) - 4


def test_a_writer_within_a_writer(folder):
    with locked(folder), pytest.raises(ArtifactError, match="another process"), locked(folder):
        pass
    with locked(folder):
        pass


@pytest.mark.parametrize(
    ("code", "needles"),
    [
        (errno.EROFS, ("Read-only file system", "choose a place that you may write to")),
        (errno.EACCES, ("Permission denied", "choose a place that you may write to")),
        (errno.ENOSPC, ("No space left on device", "free some disk space")),
        (errno.EDQUOT, ("quota exceeded", "free some disk space")),
        (errno.EIO, ("Input/output error", "check the disk")),
    ],
)
def test_a_lock_that_cannot_be_made(folder, capsys, monkeypatch, code, needles):
    (folder / ".lock").unlink()  # as an index has none that was copied without it
    opened = os.open

    def denied(path, flags, *rest, **named):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(code, os.strerror(code), str(path))
        return opened(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", denied)
    refused(folder, capsys, "cannot write", *needles)


def test_searching_writes_nothing(folder):
    """So an index on a disk that is read only, or full, is searched as any other."""
    disk = Disk(folder)
    with disk.watched(), Index(folder) as index:
        assert Searcher(index).search("fox", 2, explain=True).hits
        assert len(index) == len(DOCUMENTS) and index.info()["bytes"]
        assert Manifest.read(folder).faults(folder) == []
        assert index.refreshed() is index
    assert disk.log and all(entry.startswith("open r") for entry in disk.log), disk.log
    disk.close()


def test_no_code_that_means_a_lock_is_held():
    assert not {errno.EAGAIN, errno.EACCES, errno.EWOULDBLOCK} & set(lock_module.NO_LOCKS)
