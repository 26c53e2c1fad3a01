"""Seeds: every random draw of a run comes from one, so that a killed run goes on as it would have."""

from __future__ import annotations

import hashlib

__all__ = ["seed_of"]


def seed_of(*parts: object) -> int:
    """A seed for one purpose, from the run's seed and what it is for: independent of all others."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
