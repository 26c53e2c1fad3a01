"""`counterpoint recipe`: list, show and check recipes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterpoint.cli.complete import recipes
from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.run_text import run_lines
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.recipe import Recipe

__all__ = ["RecipeSource", "Settings", "app", "own_parts", "recipe_of"]

RecipeSource = Annotated[
    str,
    typer.Argument(
        help="Recipe name, NAME:VARIANT, .py or .toml file, or run folder",
        metavar="RECIPE",
        autocompletion=recipes,
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Change a setting, as in stages.0.lr=1e-5 (repeatable)", metavar="PATH=VALUE"),
]

app = typer.Typer(
    name="recipe",
    add_completion=False,
    help="List, show and check recipes.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def recipe_of(source: str, settings: list[str] | None) -> Recipe:
    """Load a recipe and change its settings."""
    from counterpoint.recipe import change, load_recipe  # brings torch with it

    return change(load_recipe(source), settings or [])


def own_parts(recipe: Recipe) -> list[str]:
    """A note if other commands will not find the classes of the model."""
    from counterpoint.recipe.source import parts_to_install

    if not (found := parts_to_install(recipe)):
        return []
    return [
        f"the model has {', '.join(found)}, which no installed package names as a part; other commands, such "
        "as index, cannot load it until one does (docs/recipes.md, Your own classes)"
    ]


@app.command(name="list")
def list_(json: Json = False) -> None:
    """List the recipes that come with Counterpoint."""
    from counterpoint.recipe import load_recipe, shipped_recipes, variants_of

    rows = []
    for name, path in shipped_recipes().items():
        found, variants = load_recipe(name), [f"{name}:{variant}" for variant in variants_of(path)]
        rows.append({"name": name, "paper": found.paper, "about": found.about, "variants": variants})
    emit({"recipes": rows}, lambda: "\n\n".join(map(_listed, rows)), json)


@app.command(short_help="Print a recipe, or a run's recipe, as complete TOML.")
def show(recipe: RecipeSource, settings: Settings = None, json: Json = False) -> None:
    """Print RECIPE with every setting as TOML; for a run, also its data, stages and machines.

    The output is a valid recipe, with the record of a run in comments.
    """
    from counterpoint.recipe import describe_run

    found = recipe_of(recipe, settings)
    run = describe_run(Path(recipe)) if Path(recipe).is_dir() else None
    emit(
        {"recipe": found.resolved(), "fingerprint": found.fingerprint(), **({"run": run} if run else {})},
        lambda: found.to_toml() + "".join(f"\n# {escaped(line)}" for line in (run_lines(run) if run else ())),
        json,
    )


@app.command(short_help="Check a recipe without loading anything.")
def check(recipe: RecipeSource, settings: Settings = None, json: Json = False) -> None:
    """Find all faults of RECIPE without loading anything; exit code 2 if there are any."""
    from counterpoint.recipe import check as faults_of

    found = recipe_of(recipe, settings)
    faults = faults_of(found)
    note(*own_parts(found))
    if json or not faults:
        result = {"recipe": found.name, "ok": not faults, "faults": faults}
        emit(result, lambda: escaped(f"{found.name}: no fault found"), json)
    note(*(f"error: {fault}" for fault in faults))
    if faults:
        raise typer.Exit(2)


def _listed(row: Mapping[str, Any]) -> str:
    lines = [f"{row['name']}: {row['about']}", f"    {row['paper']}"]
    lines += [f"    {'  '.join(row['variants'])}"] if row["variants"] else []
    return "\n".join(map(escaped, lines))
