"""The trainer: carries out the stages of a job, one after the other, from wherever it was stopped."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch
from torch import nn

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.index import build_index
from counterpoint.learn.carried import carry
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.development import first_stage
from counterpoint.learn.fit import fit
from counterpoint.learn.job import Job, Metrics, Reporter, Silent
from counterpoint.learn.processes import Processes
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Build, Fit, Train
from counterpoint.learn.start import write_start
from counterpoint.memory import keep_freed_memory
from counterpoint.model import Model
from counterpoint.score import Scorer
from counterpoint.search import Run as SearchRun
from counterpoint.types import Document

if TYPE_CHECKING:
    from accelerate import Accelerator

__all__ = ["Run", "train"]


def train(job: Job, *, resume: bool = False, reporter: Reporter | None = None) -> Path:
    """Carry out a job's stages; returns the folder of the trained model.

    The same command serves one process and several (torchrun): `batch` is then a process's share. A run that
    was killed and is resumed goes on to the same losses as one that was not.

    Args:
        job: what to train.
        resume: go on from the latest checkpoint in the job's folder, or begin where there is none.
        reporter: is told how it goes.

    Raises:
        ArtifactError: nothing of the model that the job starts from fits.
        ConfigError: a setting that turns out not to fit the model or the data.
        DataError: a loss that is not finite.
        MissingExtraError: accelerate is not installed.
    """
    keep_freed_memory()
    accelerator = _accelerator(job.folder)
    told = reporter if reporter and accelerator.is_main_process else Silent()
    vectors = job.vector_model
    run = Run(job, accelerator, told, None if vectors is None else vectors.search)
    run.set_up()
    checkpoint = Checkpoint.latest(job.folder / "checkpoints") if resume else None
    if checkpoint is not None:
        run.restore(checkpoint)
    else:
        run.begin()
    for number, stage in enumerate(job.stages):
        if checkpoint is not None and number < checkpoint.stage:
            continue
        run.carry(number)
        run.leave_out(number)
        here = checkpoint if checkpoint is not None and number == checkpoint.stage else None
        match stage:
            case Train():
                from counterpoint.learn.loop import Loop

                Loop(run, number, stage).go(here)
            case Fit():
                fit(run, stage, _vector_model(run, stage).eval())
            case Build():
                _build(run, number, stage)
            case _:
                raise ConfigError(f"stage {stage.name!r}: {type(stage).__name__} cannot be carried out")
        run.save(number + 1, 0, {}, {})
    run.carry(len(job.stages))
    run.leave_out(len(job.stages))
    if run.processes.rank == 0:
        job.model.eval().save(job.folder / "model", overwrite=True)
    run.accelerator.end_training()
    return job.folder / "model"


@final
@dataclass(frozen=True)
class Run:
    """A job being carried out: where it computes and writes."""

    job: Job
    accelerator: Accelerator
    reporter: Reporter
    search: Mapping[str, Any] | None  # of the model as it was declared

    @property
    def processes(self) -> Processes:
        """Those that take part."""
        return Processes(self.accelerator)

    @cached_property
    def first_stage(self) -> SearchRun:
        """What a cross-encoder reranks to be evaluated; searched once a run.

        Raises:
            ConfigError: there are no development queries.
        """
        if self.job.development is None:
            raise ConfigError("there are no development queries to search")
        return first_stage(
            self.job.development,
            self.job.depth,
            on_progress=lambda done: self.reporter.busy("indexing for BM25", done),
        )

    @property
    def metrics(self) -> Metrics:
        """The log of numbers."""
        return Metrics(self.job.folder / "metrics.jsonl")

    def scorer_of(self, stage: Train) -> Scorer:
        """The stage's scorer, or the job's.

        Raises:
            ConfigError: there is neither.
        """
        scorer = stage.scorer or self.job.scorer
        if scorer is None:
            raise ConfigError(f"{stage.name}: needs a scorer, its own or the recipe's")
        return scorer

    def set_up(self) -> None:
        """Load and allocate everything, the same on every process, and move it to the device."""
        torch.manual_seed(seed_of(self.job.seed, "model"))
        for module in self.modules().values():
            module.setup()  # type: ignore[operator]
            module.to(self.accelerator.device)

    def begin(self) -> None:
        """Take over another model's weights where that is wanted, and write down what the run begins with."""
        start, facts = self.job.start, {}
        if start is not None:
            taken = start.give(self.job.model)
            self.reporter.note(f"Started from {start.source}: {taken}")
            facts = {**start.to_dict(), **asdict(taken)}
        if self.processes.rank == 0:
            write_start(self.job.folder, self.job.model, facts)

    def carry(self, stages: int) -> tuple[bool, str] | None:
        """Search the model by what the last scorer that learns has learnt in so many stages, if it can be."""
        model = self.job.vector_model
        if model is None:  # a cross-encoder has no scorer
            return None
        model.search = self.search
        for stage in reversed(self.job.stages[:stages]):
            if isinstance(stage, Train) and (carried := carry(self.scorer_of(stage), model)):
                return carried
        return None

    def leave_out(self, number: int) -> None:
        """Pass over maps of the model that a later stage fits, and no stage before this one has."""
        model = self.job.vector_model
        if model is None:
            return
        fits = [(at, stage) for at, stage in enumerate(self.job.stages) if isinstance(stage, Fit)]

        def waiting(what: str) -> set[str]:
            later = {stage.on for at, stage in fits if stage.what == what and at >= number}
            return later - {stage.on for at, stage in fits if stage.what == what and at < number}

        model.leave_out(waiting("transforms"), waiting("tokenwise"))

    def modules(self) -> dict[str, nn.Module]:
        """Everything that may learn, by name: the model, each training stage's scorer and objective."""
        found: dict[str, nn.Module] = {"model": self.job.model}
        for number, stage in enumerate(self.job.stages):
            if isinstance(stage, Train):
                if self.job.vector_model is not None:
                    found[f"scorer{number}"] = self.scorer_of(stage)
                found[f"objective{number}"] = stage.objective
        return found

    def save(
        self, stage: int, step: int, state: dict[str, object], tensors: dict[str, dict[str, torch.Tensor]]
    ) -> None:
        """Write a checkpoint, by the first process; the others wait."""
        if self.processes.rank == 0:
            weights = {
                f"{name}:{key}": tensor
                for name, module in self.modules().items()
                for key, tensor in module.state_dict().items()
            }
            checkpoint = Checkpoint(stage, step, state, {"weights": weights, **tensors})
            checkpoint.write(self.job.folder / "checkpoints")
        self.accelerator.wait_for_everyone()

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take the weights back, and drop what was logged after it."""
        for name, module in self.modules().items():
            own = {
                key.removeprefix(f"{name}:"): tensor
                for key, tensor in checkpoint.tensors["weights"].items()
                if key.startswith(f"{name}:")
            }
            module.load_state_dict(own)
        if self.processes.rank == 0:
            self.metrics.rewind(checkpoint.stage, checkpoint.step)


def _accelerator(folder: Path) -> Accelerator:
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise MissingExtraError("training", package="accelerate", extra="train") from error
    from importlib.util import find_spec

    tracker = "tensorboard" if find_spec("tensorboard") else None
    alone = not torch.cuda.is_available()  # else accelerate would not see the processes of a CPU run
    accelerator = Accelerator(cpu=alone, log_with=tracker, project_dir=folder, mixed_precision="no")
    accelerator.init_trackers("tensorboard")
    return accelerator


def _vector_model(run: Run, stage: Fit | Build) -> Model:
    model = run.job.vector_model
    if model is None:
        raise ConfigError(
            f"{stage.name}: {type(stage).__name__} needs vectors, and a cross-encoder makes none"
        )
    return model


def _build(run: Run, number: int, stage: Build) -> None:
    """Index the training documents with the model as it is now."""
    model, data = _vector_model(run, stage).eval(), run.job.data
    if run.processes.rank == 0:
        changes = {} if stage.codec is None else {"codec": stage.codec}
        lexical = {} if stage.lexical else {"lexical": None}
        settings = model.index_settings("./../model", **changes, **lexical)
        documents = (Document(name, text) for name, text in data.documents.items())
        run.reporter.stage(stage.name, len(data.documents), 0)
        build_index(
            documents,
            model,
            run.job.folder / "index",
            settings,
            overwrite=True,
            on_progress=lambda done: run.reporter.step(done, {}),
        )
    run.accelerator.wait_for_everyone()
