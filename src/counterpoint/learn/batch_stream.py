"""`BatchStream`: the batches of a stage for each step, with their negatives and teacher scores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, count
from typing import final

import numpy as np

from counterpoint.errors import ConfigError
from counterpoint.learn.batches import Batch, Draw, make_batch, mirrored
from counterpoint.learn.negatives.source import Mining
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Train
from counterpoint.learn.teachers import taught
from counterpoint.learn.training_run import TrainingRun

__all__ = ["BatchStream"]


@final
class BatchStream:
    """The batches of a stage. They depend on the seed alone, so a resumed run gets the same ones.

    With several processes, each process makes the whole batch, which has `batch` queries per process.

    Attributes:
        total: optimiser steps of the stage.
        epoch_steps: optimiser steps of its first epoch.
        prepared: for each source of negatives, the step at which it was last prepared.

    Raises:
        ConfigError: there are not enough examples for one batch.
    """

    def __init__(self, run: TrainingRun, stage: Train):
        self._run, self._stage = run, stage
        self._size = stage.batch * run.processes.count
        first = sum(1 for _ in self._epoch(0))
        if not first:
            raise ConfigError(
                f"{stage.name}: {len(run.job.data)} examples make no batch of {self._size}; lower `batch` "
                f"({stage.batch} per process, {run.processes.count} processes)"
            )
        self.epoch_steps = max(1, first // stage.accumulate)
        every = (batch for epoch in range(stage.epochs) for batch in self._epoch(epoch))
        self.total = stage.steps or max(1, sum(1 for _ in every) // stage.accumulate)
        self.prepared = [0] * len(stage.negatives)
        self._draws: list[Draw] = []
        self._grader = None if stage.teacher is None else stage.teacher.load(run.job.data)

    def steps(self, done: int) -> Iterator[tuple[int, list[Batch]]]:
        """Yield each step's number and batches from step `done` on. Earlier batches are not made."""
        held: list[Batch] = []
        for number, positions in enumerate(chain.from_iterable(map(self._epoch, count()))):
            step, part = divmod(number, self._stage.accumulate)
            if step >= self.total:
                return
            if step < done:
                continue
            if not part:
                self._prepare(step, begin=step == done)
            held.append(self._batch(number, positions))
            if len(held) == self._stage.accumulate:
                yield step, held
                held = []

    def _epoch(self, epoch: int) -> Iterator[list[int]]:
        job = self._run.job
        return self._stage.sampler.batches(job.data, self._size, epoch, job.seed)

    def _batch(self, number: int, positions: list[int]) -> Batch:
        job = self._run.job
        rng = np.random.default_rng(seed_of(job.seed, self._stage.name, "draw", number))
        batch = make_batch(job.data, positions, self._draws, rng)
        if self._stage.mirror:
            return mirrored(batch)
        return batch if self._grader is None else taught(batch, self._grader)

    def _prepare(self, step: int, *, begin: bool) -> None:
        """Mine the negatives that are due at this step. At the start, restore those that were due last."""
        run, job, stage = self._run, self._run.job, self._stage
        folder, busy = job.folder / "mined" / stage.name, run.reporter.busy
        for at, source in enumerate(stage.negatives):
            due = source.every is not None and step % source.every == 0
            if due:
                self.prepared[at] = step
            if due or begin:
                job.model.eval()
                mining = Mining(job.data, job.vector_model, folder, job.seed, self.prepared[at], busy)
                with run.accelerator.main_process_first():
                    self._draws[at : at + 1] = [source.prepare(mining)]
                run.reporter.step(step, {})  # or it would go on to show the mining
