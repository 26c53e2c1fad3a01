"""`Recent`: a cache of what is made from texts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import Generic, TypeVar, final

__all__ = ["Recent"]

T = TypeVar("T")
LONGEST = 20_000  # characters; longer texts are not kept, so that the cache's size has a bound


@final
class Recent(Generic[T]):
    """What was made from recent texts, the least recently used dropped first. Several threads may use it.

    Args:
        size: number of cached values; 0 for none.
    """

    def __init__(self, size: int):
        self._size, self._lock = size, Lock()
        self._known: OrderedDict[tuple[Hashable, str], T] = OrderedDict()

    def each(
        self, texts: Sequence[str], make: Callable[[list[str]], Sequence[T]], kind: Hashable = None
    ) -> list[T]:
        """The value of each text; `make` makes those that are missing, in one call.

        Values of one text that differ in `kind` are different.
        """
        with self._lock:
            found = {text: self._known[kind, text] for text in texts if (kind, text) in self._known}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= dict(zip(missing, make(missing), strict=True))
        with self._lock:
            for text in (text for text in texts if len(text) <= LONGEST):
                self._known[kind, text] = found[text]
                self._known.move_to_end((kind, text))
            while len(self._known) > self._size:
                self._known.popitem(last=False)
        return [found[text] for text in texts]
