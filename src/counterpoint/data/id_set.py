"""The ids of a collection in little memory, to detect duplicates."""

from __future__ import annotations

from array import array
from hashlib import blake2b

__all__ = ["IdSet"]


class IdSet:
    """The ids seen so far, as 64-bit hashes in an open table: a fifth of the memory of a set of strings."""

    def __init__(self) -> None:
        self._slots = array("Q", bytes(8 * 1024))
        self._used = 0

    def add(self, id_: str) -> bool:
        """Add an id; return False if it was already there."""
        digest = blake2b(id_.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        if not self._place(int.from_bytes(digest, "little") or 1):  # 0 marks a free slot
            return False
        self._used += 1
        if 2 * self._used > len(self._slots):
            old, self._slots = self._slots, array("Q", bytes(2 * 8 * len(self._slots)))
            for key in old:
                if key:
                    self._place(key)
        return True

    def _place(self, key: int) -> bool:
        slots, last = self._slots, len(self._slots) - 1
        at = key & last
        while slots[at]:
            if slots[at] == key:
                return False
            at = (at + 1) & last
        slots[at] = key
        return True
