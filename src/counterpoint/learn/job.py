"""`Job`: everything that a training run needs. `Reporter`: receives its progress."""

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
    """A training run with all its settings.

    Attributes:
        model: set up and trained in place.
        stages: executed in order.
        data: the training set.
        folder: the run's folder, which must exist.
        scorer: for stages without their own.
        development: the set to evaluate on. None for no evaluation.
        measures: evaluated on the development set. The first one decides which model is best.
        depth: number of BM25 documents that a cross-encoder reranks in an evaluation.
        seed: seed of all random draws.
        start: the model whose weights to start from. None for the weights that the model declares.
        memory: folder that keeps the results of stages with `remember` for later runs.

    Raises:
        ConfigError: no stage, or a development set without a measure.
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
        """The model if it makes vectors, None for a cross-encoder."""
        return self.model if isinstance(self.model, Model) else None


class Reporter(Protocol):
    """Receives the progress of a run. Only the first process calls it."""

    def stage(self, name: str, steps: int, done: int) -> None:
        """A stage begins, or resumes after `done` of its steps."""

    def step(self, done: int, numbers: Mapping[str, float]) -> None:
        """`done` steps of the stage are finished. `numbers` are by name, since the last call."""

    def busy(self, what: str, done: int) -> None:
        """Work other than training steps is running, such as evaluation or mining."""

    def note(self, text: str) -> None:
        """Information for the user."""

    def warn(self, text: str) -> None:
        """A problem that does not end the run. It is also in the log."""


@final
class Silent(Reporter):
    """Reports nothing."""


@final
class Metrics:
    """`metrics.jsonl`: one JSON object per line, with the stage, the step, and numbers by name.

    A resumed run first drops the lines that were written after its checkpoint.
    """

    def __init__(self, path: Path):
        self.path = path

    def rewind(self, stage: int, step: int) -> None:
        """Keep the lines up to `step` of `stage`."""
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
        """Append one line."""
        line = json_text({"number": number, "stage": stage, "step": step, **numbers}, ascii_only=True)
        with writing(self.path), open(self.path, "a", encoding="utf-8") as file:
            file.write(line + "\n")
