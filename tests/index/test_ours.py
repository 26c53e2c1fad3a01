"""What is removed of an index, and when."""

import errno
import os

import pytest

from counterpoint.errors import ArtifactError
from counterpoint.index import Index, Manifest, build_index
from counterpoint.index.changing import changing
from counterpoint.types import Document


def test_what_the_manifest_before_names_stays_until_the_next_one_is_synced(tmp_path, monkeypatch):
    """A power failure may bring it back: its commit was the last that reached the disk."""
    folder = tmp_path / "i"
    build_index([Document(f"d{i}", f"text about {i}") for i in range(4)], None, folder)
    with Index(folder) as index, changing(index) as change:
        change.delete(["d1"])
    before = Manifest.read(folder)
    place, sync = os.stat(folder).st_ino, os.fsync

    def failing(descriptor):
        if os.fstat(descriptor).st_ino == place and Manifest.read(folder) != before:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        sync(descriptor)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with (
            pytest.raises(ArtifactError, match="in place, but a power failure may bring the old one back"),
            Index(folder) as index,
            changing(index) as change,
        ):
            change.delete(["d2"])
    after = Manifest.read(folder)
    assert after.segments[0].deletes != before.segments[0].deletes
    assert before.faults(folder) == after.faults(folder) == []
    with Index(folder) as index, changing(index) as change:  # the next writer syncs it
        change.delete(["d3"])
    assert before.faults(folder) != []
