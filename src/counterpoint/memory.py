"""Memory of this process: its peak, and reuse of freed memory."""

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
    """Let this process keep freed memory instead of returning it to the system; return whether it does.

    A step of a transformer frees tensors of many megabytes and allocates as much again. glibc returns such
    blocks at once, and the system must clear each page again, which takes up to half the time of a step.
    Kept memory is cleared only once. The process then stays at its peak, which the next step would reach
    anyway.

    This does nothing if the C library is not glibc, or if the environment configures allocation (glibc's
    variables, or a preloaded allocator).
    """
    is_glibc = "CS_GNU_LIBC_VERSION" in getattr(os, "confstr_names", ())
    if not is_glibc or any(name in os.environ for name in OWN_CHOICE):
        return False
    import ctypes  # imported here to keep `counterpoint --help` fast

    mallopt = ctypes.CDLL(None).mallopt
    return bool(mallopt(M_MMAP_MAX, 0)) and bool(mallopt(M_TRIM_THRESHOLD, 2**31 - 1))


def peak_resident() -> int | None:
    """Peak of physical memory of this process so far, in bytes; None if the system does not count it.

    Pages of memory-mapped files count while the system keeps them in memory.
    """
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else 1024 * most
