"""Memory of this process: how much it took at most, and keeping what it freed for the next use."""

from __future__ import annotations

import os
import sys

__all__ = ["keep_freed_memory", "peak_resident"]

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4  # of glibc's malloc.h
OWN_CHOICE = (
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
    "GLIBC_TUNABLES",
    "LD_PRELOAD",
)


def keep_freed_memory() -> bool:
    """Let this process keep what it frees instead of giving it back to the system; returns whether it does.

    A step of a transformer frees tensors of many megabytes and asks for as much again. glibc gives such
    blocks back at once, and the system must clear each page anew: up to half of the time of a step. Kept,
    they cost that once. The process's memory then stays at its peak, which it would reach in the next step
    anyway.

    Nothing is done where the C library is not glibc, nor where the environment says how to allocate (glibc's
    variables, or a preloaded allocator).
    """
    is_glibc = "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", ())
    if not is_glibc or any(name in os.environ for name in OWN_CHOICE):
        return False
    import ctypes  # not when the package is imported: `counterpoint --help` has no time for it

    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def peak_resident() -> int | None:
    """The most bytes of physical memory that this process had at once so far; None where nobody counts.

    Pages of memory-mapped files count for as long as the system keeps them.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
