"""Training in one call: read the data and run the recipe."""

from __future__ import annotations

from pathlib import Path

from counterpoint.recipe.recipe import Recipe
from counterpoint.recipe.recipe_data import read_recipe_data
from counterpoint.recipe.run import run_recipe
from counterpoint.recipe.source import load_recipe

__all__ = ["train"]


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
    return run_recipe(
        wanted, read_recipe_data(wanted, data, documents=documents), folder, command="train", resume=resume
    )
