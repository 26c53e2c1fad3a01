import numpy as np

from counterpoint.index import bounded_cache
from counterpoint.index.bounded_cache import BoundedCache


def test_what_was_not_used_for_longest_goes(monkeypatch):
    monkeypatch.setattr(bounded_cache, "OVERHEAD", 0)
    cache = BoundedCache(100)
    for name in "abc":
        cache.put(name, np.zeros(40, np.uint8))
        assert cache.get("a") is not None
    assert [name for name in "abc" if cache.get(name) is not None] == ["a", "c"]
    cache.put("d", np.zeros(101, np.uint8))  # more than all may have
    cache.put("a", np.zeros(50, np.uint8))  # there already
    assert cache.get("d") is None and len(cache.get("a")) == 40
    cache.put("e", np.zeros(100, np.uint8))
    assert [name for name in "abcde" if cache.get(name) is not None] == ["e"]


def test_empty_things_are_bounded_too():
    cache = BoundedCache(10 * bounded_cache.OVERHEAD)
    for i in range(100):
        cache.put(str(i), np.zeros(0))
    assert sum(cache.get(str(i)) is not None for i in range(100)) == 10
