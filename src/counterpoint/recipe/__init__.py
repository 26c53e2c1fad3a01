"""Recipes: everything that decides how a model is trained, as one declared value.

`load_recipe` reads a recipe, `change` sets single values by path, and `check` lists all faults without
loading anything. `run_recipe` runs it and writes a run folder.
"""

from counterpoint.recipe.change import change
from counterpoint.recipe.check import check, check_data
from counterpoint.recipe.recipe import DataSettings, Recipe, differences
from counterpoint.recipe.recipe_data import RecipeData, read_recipe_data
from counterpoint.recipe.run import run_recipe, train
from counterpoint.recipe.run_folder import describe_run
from counterpoint.recipe.source import load_recipe, variants_of
from counterpoint.shipped import shipped_recipes

__all__ = [
    "DataSettings",
    "Recipe",
    "RecipeData",
    "change",
    "check",
    "check_data",
    "describe_run",
    "differences",
    "load_recipe",
    "read_recipe_data",
    "run_recipe",
    "shipped_recipes",
    "train",
    "variants_of",
]
