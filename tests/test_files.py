import errno
import hashlib
import os
from pathlib import Path
from threading import Thread

import pytest

from counterpoint.errors import ArtifactError
from counterpoint.files import (
    held,
    is_abandoned,
    sha256_file,
    sync_folder,
    temporary_next_to,
    write_atomically,
    writing,
)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, lambda target: target.write_text("first"))

    def fails(target):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(
        ArtifactError,
        match=r"No space left .*existing files are unchanged. To continue, free some disk space",
    ):
        write_atomically(path, fails)
    assert path.read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_what_is_no_file_stays_what_it_is(tmp_path):
    """As root, a rename would turn /dev/null into a file."""
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, lambda path: path.write_text("through"))
    reader.join()
    assert read == ["through"] and pipe.is_fifo()
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    for text in ("new", "newer"):
        write_atomically(tmp_path / "link", lambda path, text=text: path.write_text(text))
        assert (tmp_path / "link").is_symlink() and (tmp_path / "there" / "file").read_text() == text
    assert [path.name for path in (tmp_path / "there").iterdir()] == ["file"]
    with pytest.raises(ArtifactError, match="cannot write"):
        write_atomically(tmp_path / "there", lambda path: path.write_text("x"))


def test_checksums_are_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()


# -- what is said of a failure -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replaced", "said"),
    [
        (lambda: True, "The new version is in place, but a power failure may bring the old one back"),
        (lambda: False, "cannot write: Input/output error; existing files are unchanged"),
        (lambda: Path("/nowhere").stat(), "could not check whether the new version is in place"),
        (None, "cannot write: Input/output error. To continue, check the disk"),
    ],
)
def test_a_message_says_what_the_disk_says(replaced, said):
    with pytest.raises(ArtifactError) as caught, writing(Path("there"), replaced):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    assert said in str(caught.value)


@pytest.mark.parametrize(("replaced", "said"), [(True, "the new version is in place"), (False, "unchanged")])
def test_an_interrupt_carries_what_is_there(replaced, said):
    with pytest.raises(KeyboardInterrupt) as caught, writing(Path("there"), lambda: replaced):
        raise KeyboardInterrupt
    assert said in caught.value.__notes__[-1]
    with pytest.raises(KeyboardInterrupt) as caught, writing(Path("there")):
        raise KeyboardInterrupt
    assert not getattr(caught.value, "__notes__", [])


# -- systems without locks on files --------------------------------------------------------------------------


def test_without_locks_files_are_replaced_and_nothing_counts_as_abandoned(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.files.fcntl", None)
    left = temporary_next_to(tmp_path / "a.txt")
    left.write_text("of a process that may be alive")
    for text in ("first", "second"):
        write_atomically(tmp_path / "a.txt", lambda path, text=text: path.write_text(text))
        assert (tmp_path / "a.txt").read_text() == text
    assert left.exists() and not is_abandoned(left)
    with held(tmp_path):
        assert tmp_path.is_dir()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_holds_is_not(tmp_path):
    dead, alive = (temporary_next_to(tmp_path / "a.txt") for _ in range(2))
    dead.write_text("")
    with held(alive, os.O_CREAT | os.O_RDWR):
        assert is_abandoned(dead) and not is_abandoned(alive) and not is_abandoned(tmp_path / "nothing")
        write_atomically(tmp_path / "a.txt", lambda path: path.write_text("x"))
        assert not dead.exists() and alive.exists()


def test_folders_are_not_synced_where_they_cannot_be(tmp_path, monkeypatch):
    monkeypatch.setattr("counterpoint.files.os.name", "nt")
    sync_folder(tmp_path / "nothing")
