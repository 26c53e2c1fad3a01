"""`TrainingRun`: a job in progress, passed to every stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, final

import torch
from torch import nn

from counterpoint.errors import ConfigError
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.development import first_stage
from counterpoint.learn.job import Job, Metrics, Reporter
from counterpoint.learn.processes import Processes
from counterpoint.learn.scorer_to_search import scorer_to_search, searched_otherwise
from counterpoint.learn.seeds import seed_of
from counterpoint.learn.stages import Fit, Train
from counterpoint.learn.start import write_start
from counterpoint.score import Scorer
from counterpoint.search import Run

if TYPE_CHECKING:
    from accelerate import Accelerator

__all__ = ["TrainingRun"]


@final
@dataclass(frozen=True)
class TrainingRun:
    """A job in progress, with its accelerator and reporter."""

    job: Job
    accelerator: Accelerator
    reporter: Reporter
    search: Mapping[str, Any] | None  # the model's search settings as declared

    @property
    def processes(self) -> Processes:
        """The processes of this run."""
        return Processes(self.accelerator)

    @cached_property
    def first_stage(self) -> Run:
        """BM25's run that a cross-encoder reranks in an evaluation. Computed once per training run.

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
        """The file `metrics.jsonl`."""
        return Metrics(self.job.folder / "metrics.jsonl")

    def scorer_of(self, stage: Train) -> Scorer:
        """The stage's scorer, or else the job's.

        Raises:
            ConfigError: there is neither.
        """
        scorer = stage.scorer or self.job.scorer
        if scorer is None:
            raise ConfigError(f"{stage.name}: needs a scorer, its own or the recipe's")
        return scorer

    def set_up(self) -> None:
        """Load and initialise all modules, identically on every process, and move them to the device."""
        torch.manual_seed(seed_of(self.job.seed, "model"))
        for module in self.modules().values():
            module.setup()  # type: ignore[operator]
            module.to(self.accelerator.device)

    def begin(self) -> None:
        """Copy the weights of the model to start from, if any, and record the initial state."""
        start, facts = self.job.start, {}
        if start is not None:
            taken = start.give(self.job.model)
            self.reporter.note(f"Started from {start.source}: {taken}")
            facts = {**start.to_dict(), **asdict(taken)}
        if self.processes.rank == 0:
            write_start(self.job.folder, self.job.model, facts)

    def scorer_to_search(self, stages: int) -> tuple[bool, str] | None:
        """Copy the last learnt scorer weights of the first `stages` stages into the search settings."""
        model = self.job.vector_model
        if model is None:  # cross-encoder: no scorer
            return None
        model.search = self.search
        for stage in reversed(self.job.stages[:stages]):
            if isinstance(stage, Train) and (copied := scorer_to_search(self.scorer_of(stage), model)):
                return copied
        return None

    def searched_otherwise(self, stage: Train) -> str:
        """How the weights of the stage's scorer differ from those of the search; "" if they do not."""
        model = self.job.vector_model
        return "" if model is None else searched_otherwise(self.scorer_of(stage), model)

    def leave_out(self, number: int) -> None:
        """Bypass maps that this stage or a later one fits and no earlier stage has fitted."""
        model = self.job.vector_model
        if model is None:
            return
        fits = [(at, stage) for at, stage in enumerate(self.job.stages) if isinstance(stage, Fit)]

        def waiting(what: str) -> set[str]:
            later = {stage.on for at, stage in fits if stage.what == what and at >= number}
            return later - {stage.on for at, stage in fits if stage.what == what and at < number}

        model.leave_out(waiting("transforms"), waiting("tokenwise"))

    def modules(self) -> dict[str, nn.Module]:
        """All modules that may learn, by name: the model, and each training stage's scorer and objective."""
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
        """Write a checkpoint on the first process. The others wait."""
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
        """Restore the weights, and drop what was logged after the checkpoint."""
        for name, module in self.modules().items():
            own = {
                key.removeprefix(f"{name}:"): tensor
                for key, tensor in checkpoint.tensors["weights"].items()
                if key.startswith(f"{name}:")
            }
            module.load_state_dict(own)
        if self.processes.rank == 0:
            self.metrics.rewind(checkpoint.stage, checkpoint.step)
