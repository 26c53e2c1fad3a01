"""What `changes.py` adds and deletes, and what is live afterwards. Needs numpy alone."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

PHASES = ("batches", "singles", "deletes", "rounds", "halving")


@dataclass(frozen=True)
class Step:
    """One commit: documents by number that are added (they follow one another), or deleted."""

    adds: bool
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The same changes for every system.

    Args:
        documents: how many there are at first: those of the lowest numbers.
        size: documents of a batch.
        batches: that are added, one commit each.
        singles: documents that are added one by one.
        deletes: batches that are deleted.
        rounds: in each a batch is added and one deleted, while a reader searches.
    """

    documents: int
    size: int = 100
    batches: int = 20
    singles: int = 50
    deletes: int = 20
    rounds: int = 20

    @property
    def total(self) -> int:
        """Documents that the collection must have."""
        return self.documents + self.size * (self.batches + self.rounds) + self.singles

    @cached_property
    def _done(self) -> tuple[dict[str, list[Step]], dict[str, list[int]]]:
        rng, live, steps, left = np.random.default_rng(0), list(range(self.documents)), {}, {}
        last = self.documents

        def adding(count: int) -> Step:
            nonlocal last
            step = Step(True, tuple(range(last, last + count)))
            live.extend(step.numbers)
            last += count
            return step

        def deleting(count: int) -> Step:
            chosen = rng.choice(len(live), min(count, len(live) - 1), replace=False)
            step = Step(False, tuple(sorted(live[i] for i in chosen)))
            gone = set(step.numbers)
            live[:] = [number for number in live if number not in gone]
            return step

        made = {
            "batches": lambda: [adding(self.size) for _ in range(self.batches)],
            "singles": lambda: [adding(1) for _ in range(self.singles)],
            "deletes": lambda: [deleting(self.size) for _ in range(self.deletes)],
            "rounds": lambda: [
                step for _ in range(self.rounds) for step in (adding(self.size), deleting(self.size))
            ],
            "halving": lambda: [deleting(len(live) // 2)],
        }
        for phase in PHASES:
            steps[phase] = made[phase]()
            left[phase] = live.copy()
        return steps, left

    def steps(self, phase: str) -> list[Step]:
        """The commits of a phase."""
        return self._done[0][phase]

    def live(self, phase: str) -> list[int]:
        """Numbers of the documents that are live after a phase, rising."""
        return self._done[1][phase]
