"""What was used last, up to a bound of bytes."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Generic, Protocol, TypeVar, final

__all__ = ["BoundedCache"]

OVERHEAD = 400
"""Bytes of an entry beside its content: empty ones count, too."""


class HasBytes(Protocol):
    """Something that knows how many bytes it takes."""

    @property
    def nbytes(self) -> int:
        """Bytes of its content."""
        ...


Kept = TypeVar("Kept", bound=HasBytes)


@final
class BoundedCache(Generic[Kept]):
    """Keeps things by name, and lets go of those that were not used for longest.

    Safe for several threads.

    Args:
        most: bytes of all together; what is larger than that is not kept.
    """

    def __init__(self, most: int):
        self._most, self._bytes, self._lock = most, 0, Lock()
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def get(self, name: str) -> Kept | None:
        """What was put under a name, if it is still there."""
        with self._lock:
            found = self._kept.get(name)
            if found is not None:
                self._kept.move_to_end(name)
            return found

    def put(self, name: str, item: Kept) -> None:
        """Keep something under a name, unless something is there already."""
        size = OVERHEAD + item.nbytes
        with self._lock:
            if size > self._most or name in self._kept:
                return
            self._kept[name] = item
            self._bytes += size
            while self._bytes > self._most:
                self._bytes -= OVERHEAD + self._kept.popitem(last=False)[1].nbytes
