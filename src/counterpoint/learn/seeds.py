"""Seeds: each random draw has its own, derived from the run's seed, so that a run can be resumed exactly."""

from __future__ import annotations

import hashlib

__all__ = ["seed_of"]


def seed_of(*parts: object) -> int:
    """An independent seed for one purpose, hashed from the run's seed and the purpose."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
