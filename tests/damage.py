"""Damage files byte by byte, and sort what comes of it."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.errors import CounterpointError


def fuzz(folder: Path, answers: Callable[[], Any], trials: int, seed: int = 0) -> tuple[Counter, list[str]]:
    """Change one place of one file at a time, and ask again.

    Args:
        folder: its files are damaged in turn, and repaired.
        answers: what is read from it, to be compared with ==.
        trials: for each file.
        seed: decides the places.

    Returns:
        How often the damage was refused and how often it made no difference, and every other outcome.
    """
    rng, expected = np.random.default_rng(seed), answers()
    tally, wrong = Counter(), []
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.stat().st_size):
        for _ in range(trials):
            with damaged(path, rng) as what:
                try:
                    outcome = "same" if answers() == expected else "another answer"
                except CounterpointError:
                    outcome = "refused"
                except Exception as error:  # whatever escapes is what is looked for
                    outcome = f"{type(error).__name__}: {error}"
            tally[outcome if outcome in ("same", "refused") else "other"] += 1
            if outcome not in ("same", "refused"):
                wrong.append(f"{path.relative_to(folder)}: {what}: {outcome}")
    assert answers() == expected  # everything was repaired
    return tally, wrong


@contextmanager
def damaged(path: Path, rng: np.random.Generator) -> Iterator[str]:
    """A file with a bit flipped, a byte replaced, or a run of bytes zeroed, as a failing disk does it."""
    whole = path.read_bytes()
    # Half of the places are in the first bytes, where headers are.
    at = int(rng.integers(min(len(whole), 256) if rng.random() < 0.5 else len(whole)))
    kind = rng.choice(["bit", "byte", "run"], p=[0.5, 0.4, 0.1])
    if kind == "bit":
        new = bytes([whole[at] ^ (1 << int(rng.integers(8)))])
    elif kind == "byte":
        new = bytes([(whole[at] + int(rng.integers(1, 256))) % 256])
    else:
        new = bytes(min(512, len(whole) - at))
    path.write_bytes(whole[:at] + new + whole[at + len(new) :])
    try:
        yield f"{kind} at {at} of {len(whole)}"
    finally:
        path.write_bytes(whole)
