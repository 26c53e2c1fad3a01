"""Run a job's stages in order, from the beginning or from its latest checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.index import build_index
from counterpoint.learn.checkpoint import Checkpoint
from counterpoint.learn.fit import fit
from counterpoint.learn.job import Job, Reporter, Silent
from counterpoint.learn.loop import Loop
from counterpoint.learn.stages import Build, Fit, Train
from counterpoint.learn.training_run import TrainingRun
from counterpoint.memory import keep_freed_memory
from counterpoint.model import Model
from counterpoint.types import Document

if TYPE_CHECKING:
    from accelerate import Accelerator

__all__ = ["train"]


def train(job: Job, *, resume: bool = False, reporter: Reporter | None = None) -> Path:
    """Run a job's stages and return the folder of the trained model.

    The same call serves one process and several (torchrun). With several, `batch` is per process. A run that
    was killed and resumed has the same losses as an uninterrupted one.

    Args:
        job: what to train.
        resume: continue from the latest checkpoint in the job's folder. Without one, start from the
            beginning.
        reporter: receives progress.

    Raises:
        ArtifactError: no weight of the model that the job starts from fits.
        ConfigError: a setting does not fit the model or the data.
        DataError: a loss is not finite.
        MissingExtraError: accelerate is not installed.
    """
    keep_freed_memory()
    accelerator = _accelerator(job.folder)
    told = reporter if reporter and accelerator.is_main_process else Silent()
    vectors = job.vector_model
    run = TrainingRun(job, accelerator, told, None if vectors is None else vectors.search)
    run.set_up()
    checkpoint = Checkpoint.latest(job.folder / "checkpoints") if resume else None
    if checkpoint is not None:
        run.restore(checkpoint)
    else:
        run.begin()
    first = 0 if checkpoint is None else checkpoint.stage
    for number, stage in list(enumerate(job.stages))[first:]:
        run.scorer_to_search(number)
        run.leave_out(number)
        match stage:
            case Train():
                Loop(run, number, stage).go(checkpoint if number == first else None)
            case Fit():
                fit(run, stage, _vector_model(run, stage).eval())
            case Build():
                _build(run, stage)
            case _:
                raise ConfigError(f"stage {stage.name!r}: {type(stage).__name__} is no known kind of stage")
        run.save(number + 1, 0, {}, {})
    run.scorer_to_search(len(job.stages))
    run.leave_out(len(job.stages))
    if run.processes.rank == 0:
        job.model.eval().save(job.folder / "model", overwrite=True)
    # The launcher stops all processes if one fails as it ends, so none ends before the model is saved.
    run.accelerator.wait_for_everyone()
    run.accelerator.end_training()
    return job.folder / "model"


def _accelerator(folder: Path) -> Accelerator:
    try:
        from accelerate import Accelerator
    except ImportError as error:
        raise MissingExtraError("training", package="accelerate", extra="train") from error
    from importlib.util import find_spec

    tracker = "tensorboard" if find_spec("tensorboard") else None
    # Without cpu=True, accelerate does not see the processes of a CPU run.
    alone = not torch.cuda.is_available()
    accelerator = Accelerator(cpu=alone, log_with=tracker, project_dir=folder, mixed_precision="no")
    accelerator.init_trackers("tensorboard")
    return accelerator


def _vector_model(run: TrainingRun, stage: Fit | Build) -> Model:
    model = run.job.vector_model
    if model is None:
        raise ConfigError(
            f"{stage.name}: {type(stage).__name__} needs vectors, and a cross-encoder makes none"
        )
    return model


def _build(run: TrainingRun, stage: Build) -> None:
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
