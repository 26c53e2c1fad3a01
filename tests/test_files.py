import hashlib
import os
from threading import Thread

import pytest

from counterpoint.errors import ArtifactError
from counterpoint.files import publish_folder, sha256_file, write_atomically


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    path = tmp_path / "a.txt"
    write_atomically(path, lambda target: target.write_text("first"))

    def fails(target):
        target.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(ArtifactError, match=r"No space left on device.*has been changed"):
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


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "folder"
    with publish_folder(target) as inside:
        (inside / "a").write_text("1")
        assert not target.exists()
    assert (target / "a").read_text() == "1"
    with pytest.raises(ArtifactError, match="already exists"), publish_folder(target):
        pass
    with pytest.raises(RuntimeError), publish_folder(target, overwrite=True) as inside:
        (inside / "b").write_text("2")
        raise RuntimeError
    assert [p.name for p in target.iterdir()] == ["a"]
    with publish_folder(target, overwrite=True) as inside:
        (inside / "b").write_text("2")
    assert [p.name for p in target.iterdir()] == ["b"]
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_folder_of_another_kind_is_never_replaced(tmp_path):
    target = tmp_path / "folder"
    target.mkdir()
    (target / "thesis.txt").write_text("years")
    with pytest.raises(ArtifactError, match=r"something else \('thesis.txt', and no known\)"):
        with publish_folder(target, overwrite=True, known_by="known"):
            pass
    file = target / "thesis.txt"
    with (
        pytest.raises(ArtifactError, match="is a file"),
        publish_folder(file, overwrite=True, known_by="known"),
    ):
        pass
    assert file.read_text() == "years"
    file.unlink()  # an empty folder may be taken, and one of the same kind replaced
    for text in ("1", "2"):
        with publish_folder(target, overwrite=True, known_by="known") as inside:
            (inside / "known").write_text(text)
        assert (target / "known").read_text() == text


def test_checksums_are_sha256(tmp_path):
    (tmp_path / "x").write_bytes(b"abc" * 100_000)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(b"abc" * 100_000).hexdigest()
