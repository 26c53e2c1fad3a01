"""`Job`: what a run trains, and `Reporter`: who is told how it goes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final

from counterpoint.encode import InteractiveEncoder
from counterpoint.errors import ConfigError
from counterpoint.escapes import json_text
from counterpoint.files import write_atomically, writing
from counterpoint.learn.development import DevelopmentSet
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.stages import Stage
from counterpoint.learn.start import Start
from counterpoint.model import Model
from counterpoint.score import Scorer

__all__ = ["Job", "Metrics", "Reporter", "Silent"]


@dataclass(frozen=True)
class Job:
    """A run, all of it decided.

    Attributes:
        model: declared; set up and trained in place.
        stages: carried out in order.
        data: what is learnt from.
        folder: of the run; it exists.
        scorer: of stages that have none of their own.
        development: what the model is evaluated on; None for no evaluation.
        measures: evaluated on it; the first decides which model is best.
        depth: documents of BM25 that a cross-encoder reranks to be evaluated.
        seed: decides every random draw.
        start: the model whose weights this one begins with; those it declares where None.
        memory: folder in which later runs find what stages that `remember` have computed.

    Raises:
        ConfigError: no stage, or no measure to go by.
    """

    model: Model | InteractiveEncoder
    stages: Sequence[Stage]
    data: TrainingSet
    folder: Path
    scorer: Scorer | None = None
    development: DevelopmentSet | None = None
    measures: tuple[str, ...] = ("nDCG@10",)
    depth: int = 100
    seed: int = 1
    start: Start | None = None
    memory: Path | None = None

    def __post_init__(self) -> None:
        if not self.stages:
            raise ConfigError("a run needs at least one stage")
        if self.development is not None and not self.measures:
            raise ConfigError("a run with a development set needs at least one measure")

    @property
    def vector_model(self) -> Model | None:
        """The model if it makes vectors; None for a cross-encoder."""
        return self.model if isinstance(self.model, Model) else None


class Reporter(Protocol):
    """Told how a run goes; called by the first process only."""

    def stage(self, name: str, steps: int, done: int) -> None:
        """A stage begins, or is taken up after `done` of its steps."""

    def step(self, done: int, numbers: Mapping[str, float]) -> None:
        """So many steps of the stage are done; numbers by name, since the last call."""

    def busy(self, what: str, done: int) -> None:
        """Something beside steps takes time: evaluating, mining."""

    def note(self, text: str) -> None:
        """Something a person should know."""

    def warn(self, text: str) -> None:
        """Something that has gone wrong, though the run goes on; it is in the log, too."""


@final
class Silent(Reporter):
    """Says nothing."""

    def stage(self, name: str, steps: int, done: int) -> None:
        """Nothing."""

    def step(self, done: int, numbers: Mapping[str, float]) -> None:
        """Nothing."""

    def busy(self, what: str, done: int) -> None:
        """Nothing."""

    def note(self, text: str) -> None:
        """Nothing."""

    def warn(self, text: str) -> None:
        """Nothing."""


@final
class Metrics:
    """`metrics.jsonl`: one object a line with the stage, the step, and numbers by name.

    A run that is taken up at a checkpoint first drops what was written after it.
    """

    def __init__(self, path: Path):
        self.path = path

    def rewind(self, stage: int, step: int) -> None:
        """Keep the lines up to that step of that stage."""
        if not self.path.is_file():
            return
        kept = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                found = json.loads(line)
            except ValueError:  # the line that was being written when the process was killed
                break
            if (found["number"], found["step"]) <= (stage, step):
                kept.append(line + "\n")
        write_atomically(self.path, lambda path: path.write_text("".join(kept), encoding="utf-8"))

    def write(self, number: int, stage: str, step: int, numbers: Mapping[str, Any]) -> None:
        """Add a line."""
        line = json_text({"number": number, "stage": stage, "step": step, **numbers}, ascii_only=True)
        with writing(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
