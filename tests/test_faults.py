"""The disk of the crash tests: a failed sync loses what it was to write, until that is written anew."""

import os
from functools import partial

import pytest

from tests.faults import SECTORS, Disk


def write(path, text):
    path.write_text(text)


def sync(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def on_disk(tmp_path, *steps):
    """What a power failure leaves of `root` after some steps, of which the second sync of `root/a` fails."""
    root = tmp_path / "root"
    root.mkdir()
    write(root / "a", "old")
    watched = Disk(root)
    with watched.watched():
        for step in steps:
            step(root)
    (at,) = [number for number, entry in enumerate(watched.log) if entry == "fsync a"][1:2]
    watched.close()
    for path in root.iterdir():
        path.unlink()
    write(root / "a", "old")
    disk = Disk(root, at, "lost")
    with disk.watched():
        for step in steps:
            try:
                step(root)
            except OSError:
                pass
    disk.crashed("only what was synced", tmp_path / "crash")
    disk.close()
    return (tmp_path / "crash" / "a").read_text()


def steps(*texts):
    """Each text is written and synced; None is a sync alone."""
    for text in texts:
        if text is not None:
            yield partial(lambda text, root: write(root / "a", text), text)
        yield lambda root: sync(root / "a")


@pytest.mark.parametrize(
    ("texts", "left"),
    [
        (("old", "new", None), "old"),  # syncing again does not write again
        (("old", "new", "new"), "old"),  # and a system need not see that it was written again
        (("old", "new", "other"), "other"),
        (("old", "new", "other", "new"), "new"),  # the page was on the disk in between
    ],
)
def test_what_a_failed_sync_lost_comes_back_when_it_is_written_anew(tmp_path, texts, left):
    assert on_disk(tmp_path, *steps(*texts)) == left


@pytest.mark.parametrize("how", SECTORS)
def test_what_was_renamed_has_a_name_after_every_crash(tmp_path, how):
    root = tmp_path / "root"
    (root / "m").mkdir(parents=True)
    disk = Disk(root)
    os.rename(root / "m", root / "b")
    left = set()
    for seed in range(64):
        disk.crashed(how, tmp_path / str(seed), seed)
        left.add(" ".join(sorted(path.name for path in (tmp_path / str(seed)).iterdir())))
    disk.close()
    assert left == {"m", "b", "b m"}
