"""Run a recipe: check everything, record it, then train. `train` reads the data first."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

from counterpoint.errors import ConfigError
from counterpoint.learn.job import Job, Reporter
from counterpoint.learn.start import Start
from counterpoint.recipe.check import check, check_data
from counterpoint.recipe.recipe import Recipe
from counterpoint.recipe.recipe_data import RecipeData, read_recipe_data
from counterpoint.recipe.run_folder import is_first_process, session
from counterpoint.recipe.source import load_recipe

__all__ = ["run_recipe", "train"]


def run_recipe(
    recipe: Recipe,
    training_data: RecipeData,
    folder: str | Path,
    *,
    command: str = "run_recipe",
    resume: bool = False,
    reporter: Reporter | None = None,
    memory: Path | None = None,
) -> Path:
    """Run a recipe into a run folder, and return the folder of the trained model.

    The recipe itself is unchanged. Under torchrun, all processes make the same call.

    Args:
        recipe: what to run.
        training_data: examples and development queries, from `read_recipe_data`.
        folder: the run's folder, which must not exist unless `resume`.
        command: the command that started this, for the record.
        resume: continue from the run's latest checkpoint.
        reporter: receives progress.
        memory: folder of hidden states that runs share, for stages with `remember`. It does not change
            losses.

    Raises:
        ConfigError: listing every fault of the recipe, or every difference from the run's recipe.
        ArtifactError: the folder exists and `resume` is false, or it is not a run, or cannot be written, or
            another process trains in it.
        DataError, MissingExtraError: as `counterpoint.learn.train`.
    """
    from counterpoint.learn.trainer import train as train_job

    folder = Path(folder)
    faults = [*check(recipe), *check_data(recipe, training_data.training)]
    if faults:
        raise ConfigError(*faults)
    recorded = session(folder, recipe, training_data, command, resume)
    with recorded if is_first_process() else nullcontext():
        own = recipe.copy()
        job = Job(
            model=own.declared_model(),
            stages=own.stages,
            data=training_data.training,
            folder=folder,
            scorer=own.scorer,
            development=training_data.development,
            measures=own.measures,
            depth=own.data.depth,
            seed=own.seed,
            start=None if own.start is None else Start.find(own.start, own.start_names),
            memory=memory,
        )
        return train_job(job, resume=resume, reporter=reporter)


def train(
    recipe: Recipe | str | Path,
    data: str | Path,
    folder: str | Path,
    *,
    documents: str | Path | None = None,
    resume: bool = False,
) -> Path:
    """Train a model with a recipe, and return its folder, which `load_model` and `index` accept.

    Args:
        recipe: a recipe, or its name or file.
        data: a collection, or training data in any format that `open_training_data` reads.
        folder: of the run.
        documents: for data that contain ids, the collection with the texts.
        resume: continue from the run's latest checkpoint.

    Raises:
        ConfigError: listing every fault of the recipe.
        ArtifactError: the folder exists and `resume` is false, or cannot be written.
        DataError: the data cannot be read, or contain too little.
    """
    wanted = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    training_data = read_recipe_data(wanted, data, documents=documents)
    return run_recipe(wanted, training_data, folder, command="train", resume=resume)
