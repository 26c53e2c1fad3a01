"""`Learner`: everything that a training loop does with the model."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from counterpoint.encode import Tokenizer, Transformer, bf16_gains
from counterpoint.encode.state_memory import StateMemory
from counterpoint.errors import ConfigError
from counterpoint.learn.batches import Batch
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.development import DevelopmentSet
from counterpoint.learn.matches import MatchMasks
from counterpoint.learn.optimiser import named_parameters
from counterpoint.learn.stages import Train
from counterpoint.learn.step import Step
from counterpoint.learn.training_run import TrainingRun

__all__ = ["Learner", "Made"]


@dataclass(frozen=True)
class Made:
    """A batch after the forward pass.

    Attributes:
        step: the input of the loss. Its vectors or scores are leaves.
        backward: passes the leaves' gradients into the model.
    """

    step: Step
    backward: Callable[[], None]


class Learner(ABC):
    """Turns a stage's batches into steps, and evaluates the model. Abstract: one subclass a kind of model."""

    def __init__(self, run: TrainingRun, stage: Train):
        self.run, self.stage = run, stage
        self.device = run.accelerator.device

    def masks(self, tokenizer: Tokenizer) -> MatchMasks | None:
        """The masks that hide matches in this stage's documents. None if it hides none.

        Raises:
            ConfigError: the vocabulary has no mask token.
        """
        stage, seed = self.stage, (self.run.job.seed, self.stage.name)
        return MatchMasks(tokenizer, stage.mask_matches, seed, stage.hide) if stage.mask_matches else None

    # -- parameters ------------------------------------------------------------------------------------

    @abstractmethod
    def roots(self) -> Mapping[str, nn.Module]:
        """The modules whose parameters may learn, by the prefix of their names.

        Every process computes those of `scorer.` and `objective.` in full, all others on its share.
        """

    @abstractmethod
    def parts(self) -> Sequence[nn.Module]:
        """The modules that are switched to training or evaluation mode as a unit (dropout)."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter by the name that `learn` and `freeze` refer to."""
        return named_parameters({**self.roots(), "objective.": self.stage.objective})

    def statistics(self) -> dict[str, torch.Tensor]:
        """Statistics (buffers) of the batches seen by the scorer and the objective, by name."""
        roots = {**self.roots(), "objective.": self.stage.objective}
        kept = {prefix: roots[prefix] for prefix in ("scorer.", "objective.") if prefix in roots}
        return {prefix + name: found for prefix, of in kept.items() for name, found in of.named_buffers()}

    def train_mode(self) -> None:
        """Enable dropout in modules that learn, and disable it in frozen ones."""
        for module in self.parts():
            module.train(any(p.requires_grad for p in module.parameters()))

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """A context in which texts pass a frozen backbone once, within the limit of the stage's `remember`.

        Raises:
            ConfigError: the stage sets `remember`, but every backbone learns.
            ArtifactError: the job's `memory` cannot be read or written.
        """
        size = self.stage.remember
        modules = (module for part in self.parts() for module in part.modules())
        backbones = [module for module in modules if isinstance(module, Transformer)]
        frozen = [b for b in backbones if not any(p.requires_grad for p in b.parameters())]
        if size and not frozen:
            raise ConfigError(
                f"{self.stage.name}: remember={size:g} keeps the output of frozen backbones, and every "
                'backbone learns; freeze them (freeze=("*backbone*",)) or omit it'
            )
        kept = self.run.job.memory
        for backbone in frozen if size else ():
            folder = None if kept is None else kept / backbone.fingerprint()
            backbone.memory = StateMemory(size / len(frozen), folder)
        try:
            yield
        finally:
            for backbone in frozen:
                memory, backbone.memory = backbone.memory, None
                if memory is not None:
                    memory.save()

    # -- steps -----------------------------------------------------------------------------------------

    @abstractmethod
    def make(self, batch: Batch, seed: int, number: int) -> Made:
        """Run the forward pass of a batch.

        Args:
            batch: the same on every process. The work is divided.
            seed: of the dropout.
            number: of the batch in the stage.
        """

    def start(self, checkpoint: Checkpoint | None) -> None:  # noqa: B027 - may do nothing
        """Prepare for the first step, or for the step after a checkpoint of this stage."""

    def after_step(self) -> None:  # noqa: B027 - may do nothing
        """Called after the optimiser has updated the weights."""

    def state(self) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, Any]]:
        """State other than the weights, as `start` reads it: groups of tensors, and JSON values."""
        return {}, {}

    @abstractmethod
    def evaluate(self, development: DevelopmentSet) -> dict[str, float]:
        """The job's measures on its development set, by the current model. Called by one process."""

    def autocast(self) -> AbstractContextManager:
        """A context with the stage's precision."""
        wanted = self.stage.precision == "bf16"
        reduced = wanted or (self.stage.precision == "auto" and bf16_gains(self.device))
        return torch.autocast(self.device.type, torch.bfloat16, enabled=reduced)
