import hashlib
import os
from threading import Thread

import pytest

from counterpoint.errors import ArtifactError
from counterpoint.files import sha256_file, write_atomically


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, lambda target: target.write_text("first"))

    def fails(target):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(
        ArtifactError,
        match=r"No space left .*before is unchanged. To go on, free some space",
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
