"""Pairs of arrays that were used last, up to a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import final

import numpy as np

__all__ = ["BoundedCache"]


@final
class BoundedCache:
    """Keeps pairs of arrays by name, and lets go of those that were not used for longest.

    Safe for several threads.

    Args:
        most: bytes of all arrays together; what is larger than that is not kept.
    """

    def __init__(self, most: int):
        self._most, self._bytes, self._lock = most, 0, Lock()
        self._kept: OrderedDict[str, tuple[np.ndarray, np.ndarray]] = OrderedDict()

    def get(self, name: str) -> tuple[np.ndarray, np.ndarray] | None:
        """What was put under a name, if it is still there."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
            return found

    def put(self, name: str, arrays: tuple[np.ndarray, np.ndarray]) -> None:
        """Keep a pair under a name, unless something is there already."""
        size = sum(array.nbytes for array in arrays)
        with self._lock:
            if size > self._most or name in self._kept:
                return
            self._kept[name] = arrays
            self._bytes += size
            while self._bytes > self._most:
                _, old = self._kept.popitem(last=False)
                self._bytes -= sum(array.nbytes for array in old)
