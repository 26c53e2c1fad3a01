"""A disk that fails: every operation below a folder is counted, and at a chosen one something happens.

`Disk` sees what goes through Python (`open`, `write`, `os.*`), and from outside the writers that do not
(SQLite, faiss, safetensors). It can make one operation fail, interrupt it, or take a picture of what a crash
at that moment leaves: a killed process leaves everything that was done, a power failure only what was synced,
and of the rest anything: whole files or pieces of them, in any order.

What is stored through a memory map passes nobody here. Its pages are bytes that were never synced, as any.
"""

import builtins
import contextlib
import errno
import io
import os
import random
import shutil
import sqlite3
import threading
from pathlib import Path

import numpy as np
import safetensors
import safetensors.torch

import counterpoint.files
import counterpoint.tensors
from counterpoint import folders

SECTORS = {"any name, any 512 bytes": 512, "any name, any 4 KiB": 4096}
"""What was not synced reaches the disk in any order: each entry of a folder, each piece of a file.

A rename in a folder is one change, as in every journal: what was renamed has one of its names, or both. Where
folders cannot be swapped and a rename is not one change, no order of renames can replace a folder safely.
"""
CRASHES = ("kill", "only what was synced", "names without data", "any of it", *SECTORS)
PAGE = 4096
WRITTEN = object()  # equal to no entry of a folder


class Disk:
    """Counts operations below `root`; at number `at` does `what`.

    Args:
        root: an existing folder; everything in it counts as synced.
        at: which operation; None for none.
        what: "EIO", "ENOSPC" (a write is cut short), "interrupt", or a function that is called before it;
            "lost" for a sync that fails with EIO, after which the system takes what it did not write for
            written, as Linux does: a later sync succeeds and writes only what has changed since. It is the
            first sync from `at` on: names are drawn by chance, and the order of files goes by names.
        exchange: whether the system can swap two folders in one step.
    """

    def __init__(self, root, at=None, what=None, exchange=True):
        self.root, self.at, self.what, self.exchange = str(root), at, what, exchange
        self.count, self.log = 0, []
        self._held = {}  # inode to an open descriptor, so that no inode is used twice
        self._data, self._entries, self._lost = {}, {}, {}
        self._busy, self._alone = False, threading.RLock()  # files are synced by several threads
        for where, _, files in os.walk(root):
            self._sync_folder(where)
            for name in files:
                self._sync_file(os.path.join(where, name))

    # -- events ----------------------------------------------------------------------------------------

    def event(self, name, path, half=None):
        """One operation is about to happen; `half` does the first half of it."""
        with self._alone:
            if not self._busy and str(path).startswith(self.root):
                self._happens(name, path, half)

    def _happens(self, name, path, half):
        self.count += 1
        self.log.append(f"{name} {os.path.relpath(path, self.root)}")
        if callable(self.what):
            self._busy = True
            self.what(self)
            self._busy = False
        elif self.count - 1 == self.at:
            if self.what == "lost" and name != "fsync":
                self.at += 1
                return
            if self.what == "interrupt":
                raise KeyboardInterrupt
            if self.what == "ENOSPC" and half is not None:
                half()
            if self.what == "lost":
                self._lose(path)
            code = errno.EIO if self.what == "lost" else getattr(errno, self.what)
            raise OSError(code, os.strerror(code), str(path))

    @contextlib.contextmanager
    def watched(self):
        """Everything in the block is watched."""
        with contextlib.ExitStack() as stack:
            patch = lambda where, name, new: stack.enter_context(_patched(where, name, new))  # noqa: E731
            opened = self._opening(builtins.open)
            patch(builtins, "open", opened)
            patch(io, "open", opened)
            for name in ("rename", "replace", "unlink", "remove", "mkdir", "rmdir", "open"):
                patch(os, name, self._before(name, getattr(os, name)))
            patch(os, "link", self._linking(os.link))
            patch(os, "fsync", self._syncing(os.fsync))
            patch(os, "posix_fallocate", self._descriptor("reserve", os.posix_fallocate))
            if hasattr(os, "sendfile"):  # by which `shutil` copies
                patch(os, "sendfile", self._descriptor("sendfile", os.sendfile))
            patch(np.memmap, "flush", self._flushing(np.memmap.flush))
            patch(folders, "_exchange", self._exchanging(folders._exchange))
            patch(counterpoint.files, "TOGETHER", 1)  # operations have one order, by which they are numbered
            patch(sqlite3, "connect", self._connecting(sqlite3.connect))
            patch(counterpoint.tensors, "save_file", self._saving(safetensors.torch.save_file))
            with contextlib.suppress(ImportError):
                import faiss

                patch(faiss, "write_index", self._graphing(faiss.write_index))
            yield self

    def _before(self, name, call):
        def wrapped(path, *rest, dir_fd=None, **named):
            if isinstance(path, int):
                return call(path, *rest, **named)
            full = os.path.join(_path_of(dir_fd), os.fspath(path)) if dir_fd is not None else os.fspath(path)
            self.event(name, os.path.abspath(full))
            if dir_fd is not None:
                named["dir_fd"] = dir_fd
            return call(path, *rest, **named)

        return wrapped

    def _descriptor(self, name, call):
        def wrapped(descriptor, *rest):
            self.event(name, _path_of(descriptor))
            return call(descriptor, *rest)

        return wrapped

    def _linking(self, call):
        def wrapped(source, target, **named):
            self.event("link", os.path.abspath(target))
            return call(source, target, **named)

        return wrapped

    def _flushing(self, call):
        def wrapped(mapped):
            if isinstance(mapped.filename, os.PathLike | str):
                self.event("msync", os.path.abspath(mapped.filename))
            return call(mapped)

        return wrapped

    def _syncing(self, call):
        def wrapped(descriptor):
            path = _path_of(descriptor)
            self.event("fsync", path)
            call(descriptor)
            with self._alone:
                if path.startswith(self.root) and not self._busy:
                    (self._sync_folder if os.path.isdir(path) else self._sync_file)(path)

        return wrapped

    def _opening(self, call):
        def wrapped(file, mode="r", *rest, **named):
            if isinstance(file, int):
                return call(file, mode, *rest, **named)
            path = os.path.abspath(os.fspath(file))
            with self._alone:
                unseen = not path.startswith(self.root) or self._busy
            if unseen:
                return call(file, mode, *rest, **named)
            self.event(f"open {mode}", path)
            opened = call(file, mode, *rest, **named)
            return _Watched(opened, path, self) if set(mode) & set("wax+") else opened

        return wrapped

    def _exchanging(self, call):
        def wrapped(one, other):
            if not self.exchange:
                return False
            self.event("exchange", other)
            return call(one, other)

        return wrapped

    def _connecting(self, call):
        def wrapped(path, *rest, **named):
            made = call(path, *rest, **named)
            return made if str(path).startswith("file:") else _Connection(made, str(path), self)

        return wrapped

    def _saving(self, call):
        def wrapped(tensors, path):
            try:
                self.event("safetensors", path, lambda: Path(path).write_bytes(b"half"))
            except OSError as error:
                said = f"Error while serializing: I/O error: {error.strerror} (os error {error.errno})"
                raise safetensors.SafetensorError(said) from error
            call(tensors, path)

        return wrapped

    def _graphing(self, call):
        def wrapped(graph, path):
            try:
                self.event("faiss", path, lambda: Path(path).write_bytes(b"half"))
            except OSError as error:
                raise RuntimeError(f"write error in {path} ({error.strerror})") from error
            call(graph, path)

        return wrapped

    # -- what was synced -------------------------------------------------------------------------------

    def _hold(self, path):
        inode = os.lstat(path).st_ino
        if inode not in self._held:
            busy, self._busy = self._busy, True
            self._held[inode] = os.open(path, os.O_PATH | os.O_NOFOLLOW)
            self._busy = busy
        return inode

    def _sync_file(self, path):
        busy, self._busy = self._busy, True
        inode, whole = self._hold(path), Path(path).read_bytes()
        self._data[inode] = self._written(self._data.get(inode, b""), whole, self._lost.get(inode, {}))
        self._busy = busy

    @staticmethod
    def _written(before, whole, lost):
        """What a sync puts on the disk: all but the pages that are as they were when they were lost.

        A page that is put there is lost no longer, whatever is written into it later.
        """
        pages = []
        for at, page in _pages(whole).items():
            if lost.get(at) == page:
                page = before[at : at + PAGE].ljust(len(page), b"\0")[: len(page)]
            else:
                lost.pop(at, None)
            pages.append(page)
        return b"".join(pages)

    def _sync_folder(self, path):
        inode, now = self._hold(path), self._listed(path)
        if (lost := self._lost.get(inode)) is not None:
            before, there = self._entries.get(inode, {}), now
            now = {name: each for name in {*before, *there} if (each := _kept(name, before, there, lost))}
            # As for pages: a name that is put on the disk is lost no longer.
            lost |= {name: WRITTEN for name in {*before, *there} if there.get(name) != lost.get(name)}
        self._entries[inode] = now

    def _listed(self, path):
        return {
            entry.name: (self._hold(entry.path), entry.is_dir(follow_symlinks=False))
            for entry in sorted(os.scandir(path), key=lambda entry: entry.name)
        }

    def _lose(self, path):
        """A sync fails: what the file or folder has now counts as written, and is not."""
        busy, self._busy = self._busy, True
        whole = self._listed(path) if os.path.isdir(path) else _pages(Path(path).read_bytes())
        self._lost[self._hold(path)] = whole
        self._busy = busy

    def close(self):
        """Let go of the inodes."""
        for descriptor in self._held.values():
            os.close(descriptor)

    # -- crashes ---------------------------------------------------------------------------------------

    def crashed(self, how, target, seed=0):
        """Make in `target` what a crash of a kind leaves of the folder as it is now."""
        if how == "kill":
            shutil.copytree(self.root, target, symlinks=True)
        else:
            self._rebuild(self.root, os.stat(self.root).st_ino, Path(target), how, random.Random(seed))

    def _rebuild(self, path, inode, target, how, rng):
        """`path` is where the folder is now, or None where it is no longer anywhere."""
        target.mkdir()
        now = {}
        if path is not None:
            now = {e.name: (e.inode(), e.is_dir(follow_symlinks=False)) for e in os.scandir(path)}
        keep_new = {"only what was synced": False, "names without data": True}.get(how, rng.random() < 0.5)
        entries = now if keep_new and path is not None else self._entries.get(inode, {})
        if how in SECTORS and path is not None:
            before, entries = self._entries.get(inode, {}), {}
            for name in sorted({*before, *now}):
                if (found := rng.choice((before, now)).get(name)) is not None:
                    entries[name] = found
            renamed = {name: each for name, each in now.items() if each in before.values()}
            entries |= {name: each for name, each in renamed.items() if each not in entries.values()}
        for name, (child, is_folder) in entries.items():
            here = os.path.join(path, name) if now.get(name, (None,))[0] == child else self._place_of(child)
            if is_folder:
                self._rebuild(here, child, target / name, how, rng)
                continue
            data = self._data.get(child)
            if how == "any of it" and here is not None:
                whole = Path(here).read_bytes()
                if data is None:  # never synced: nothing, all of it, or a torn piece
                    data = whole[: rng.choice((0, len(whole), rng.randrange(len(whole) + 1)))]
                elif rng.random() < 0.5:
                    data = whole
            data = b"" if data is None else data
            if how in SECTORS and here is not None:
                data = _torn(data, Path(here).read_bytes(), SECTORS[how], rng)
            (target / name).write_bytes(data)

    def _place_of(self, inode):
        """Where an inode is now: it may have been renamed."""
        for where, found, files in os.walk(self.root):
            for name in (*found, *files):
                if os.lstat(os.path.join(where, name)).st_ino == inode:
                    return os.path.join(where, name)
        return None


class _Watched:
    """A file opened for writing."""

    def __init__(self, file, path, disk):
        self._file, self._path, self._disk = file, path, disk

    def write(self, data):
        def half():
            self._file.write(data[: len(data) // 2])
            self._file.flush()

        self._disk.event("write", self._path, half)
        return self._file.write(data)

    def truncate(self, size=None):
        self._disk.event("truncate", self._path)
        return self._file.truncate(size)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def __iter__(self):
        return iter(self._file)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._file.close()


class _Connection:
    """A database opened for writing."""

    def __init__(self, connection, path, disk):
        self._connection, self._path, self._disk = connection, path, disk

    def _event(self, name):
        try:
            self._disk.event(f"sqlite {name}", self._path)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            failure = sqlite3.OperationalError("database or disk is full" if full else "disk I/O error")
            failure.sqlite_errorcode = sqlite3.SQLITE_FULL if full else sqlite3.SQLITE_IOERR
            raise failure from error

    def execute(self, *given):
        self._event("execute")
        return self._connection.execute(*given)

    def executemany(self, *given):
        self._event("executemany")
        return self._connection.executemany(*given)

    def close(self):
        self._connection.close()

    def __enter__(self):
        self._connection.__enter__()
        return self

    def __exit__(self, *error):
        if error[0] is None:
            self._event("commit")
        return self._connection.__exit__(*error)


def _torn(before, after, size, rng):
    """A file of which each piece is the old one or the new one; zeros where there is none."""
    length, pieces = rng.choice((len(before), len(after))), []
    for at in range(0, length, size):
        piece = rng.choice((before, after))[at : at + size]
        pieces.append(piece.ljust(min(size, length - at), b"\0")[: length - at])
    return b"".join(pieces)


def _pages(content):
    """The pages of a file, by where they begin."""
    return {at: content[at : at + PAGE] for at in range(0, len(content), PAGE)}


def _kept(name, before, now, lost):
    """What a folder's sync puts on the disk of a name: nothing new where that was lost."""
    return before.get(name) if now.get(name) == lost.get(name) else now.get(name)


@contextlib.contextmanager
def _patched(where, name, new):
    old = getattr(where, name)
    setattr(where, name, new)
    try:
        yield
    finally:
        setattr(where, name, old)


def _path_of(descriptor):
    return os.readlink(f"/proc/self/fd/{descriptor}")
