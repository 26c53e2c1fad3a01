"""A cache of the most recently used items, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, Protocol, TypeVar, final

__all__ = ["BoundedCache"]

OVERHEAD = 400
"""Bytes of an entry in addition to its content, so that empty ones count, too."""


class _HasBytes(Protocol):
    @property
    def nbytes(self) -> int: ...


Kept = TypeVar("Kept", bound=_HasBytes)


@final
class BoundedCache(Generic[Kept]):
    """Keeps items of at most `most` bytes in total by name, and drops the least recently used.

    Thread-safe.
    """

    def __init__(self, most: int):
        self._most, self._bytes, self._lock = most, 0, Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def get(self, name: str) -> Kept | None:
        """The item with a name, if it is still cached."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
            return found

    def put(self, name: str, item: Kept) -> None:
        """Add an item, unless the name is in the cache."""
        size = OVERHEAD + item.nbytes
        with self._lock:
            if size > self._most or name in self._kept:
                return
            self._kept[name] = item
            self._bytes += size
            while self._bytes > self._most:
                self._bytes -= OVERHEAD + self._kept.popitem(last=False)[1].nbytes
