"""`Learner`: all that a training loop does with the model itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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
from counterpoint.learn.step import Step

if TYPE_CHECKING:
    from counterpoint.learn.run import Run
    from counterpoint.learn.stages import Train

__all__ = ["Learner", "Made"]


@dataclass(frozen=True)
class Made:
    """A batch that the model has seen.

    Attributes:
        step: for the loss; its vectors or scores are leaves.
        backward: called once the leaves have their gradients, takes them into the model.
    """

    step: Step
    backward: Callable[[], None]


class Learner(ABC):
    """How a stage's batches become steps, and how its model is evaluated. Abstract: one for a kind of model.

    Args:
        run: what the stage belongs to.
        stage: its settings.
    """

    def __init__(self, run: Run, stage: Train):
        self.run, self.stage = run, stage
        self.device = run.accelerator.device

    def masks(self, tokenizer: Tokenizer) -> MatchMasks | None:
        """What hides matches of this stage's documents, which a tokenizer has made; None for nothing.

        Raises:
            ConfigError: the vocabulary has no mask token.
        """
        stage, seed = self.stage, (self.run.job.seed, self.stage.name)
        return MatchMasks(tokenizer, stage.mask_matches, seed, stage.hide) if stage.mask_matches else None

    # -- what learns -----------------------------------------------------------------------------------

    @abstractmethod
    def roots(self) -> Mapping[str, nn.Module]:
        """The modules whose parameters may learn, by what their names begin with.

        Those of `scorer.` and `objective.` are computed alike on every process, all others on shares.
        """

    @abstractmethod
    def parts(self) -> Sequence[nn.Module]:
        """The modules that are frozen or trained as a whole, as far as dropout is concerned."""

    def parameters(self) -> dict[str, nn.Parameter]:
        """Every parameter under the name that `learn` and `freeze` go by."""
        return named_parameters({**self.roots(), "objective.": self.stage.objective})

    def statistics(self) -> dict[str, torch.Tensor]:
        """What the scorer and the objective keep of the batches that they have seen, by name."""
        roots = {**self.roots(), "objective.": self.stage.objective}
        kept = {prefix: roots[prefix] for prefix in ("scorer.", "objective.") if prefix in roots}
        return {prefix + name: found for prefix, of in kept.items() for name, found in of.named_buffers()}

    def train_mode(self) -> None:
        """Dropout where something learns, none in what is frozen."""
        for module in self.parts():
            module.train(any(p.requires_grad for p in module.parameters()))

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """While it lasts, texts pass a frozen backbone once, as far as the stage's `remember` goes.

        Raises:
            ConfigError: the stage asks for it, and every backbone learns.
            ArtifactError: the job's `memory` cannot be read or written.
        """
        size = self.stage.remember
        backbones = [
            module for part in self.parts() for module in part.modules() if isinstance(module, Transformer)
        ]
        frozen = [b for b in backbones if not any(p.requires_grad for p in b.parameters())]
        if size and not frozen:
            raise ConfigError(
                f"{self.stage.name}: remember={size:g} keeps what a frozen backbone makes, and every "
                'backbone learns; freeze them (freeze=("*backbone*",)) or leave it out'
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
        """Show a batch to the model.

        Args:
            batch: the same on every process; the work is shared out.
            seed: decides the dropout.
            number: of the batch in the stage.
        """

    @abstractmethod
    def start(self, checkpoint: Checkpoint | None) -> None:
        """Get ready for the first step, or for the one behind a checkpoint of this stage."""

    @abstractmethod
    def after_step(self) -> None:
        """Called when the optimiser has moved the weights."""

    @abstractmethod
    def state(self) -> tuple[dict[str, dict[str, torch.Tensor]], dict[str, Any]]:
        """What `start` wants to find in a checkpoint: groups of tensors, and JSON values."""

    @abstractmethod
    def evaluate(self, development: DevelopmentSet) -> dict[str, float]:
        """The job's measures on its development set, by the model as it is now; called by one process."""

    def autocast(self) -> AbstractContextManager:
        """The precision that the stage asks for."""
        wanted = self.stage.precision == "bf16"
        reduced = wanted or (self.stage.precision == "auto" and bf16_gains(self.device))
        return torch.autocast(self.device.type, torch.bfloat16, enabled=reduced)
