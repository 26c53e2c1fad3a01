"""`counterpoint train`: train a model from a recipe."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self, final

import typer

from counterpoint.cli.console import Json, emit, is_quiet, note, typed
from counterpoint.cli.progress import StageLines, stage_lines
from counterpoint.cli.recipe import RecipeSource, Settings, own_parts, recipe_of
from counterpoint.errors import ConfigError
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from tqdm import tqdm

    from counterpoint.recipe import Recipe

__all__ = ["train"]


def train(
    recipe: RecipeSource,
    data: Annotated[str, typer.Option(help="Train on this collection, ir_datasets:ID or file")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Write the run to this folder")],
    documents: Annotated[
        str | None, typer.Option(help="Take texts from this collection if --data has only ids")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Train on this split (default: the recipe's, train)")
    ] = None,
    dev_split: Annotated[
        str | None, typer.Option(help="Evaluate on this split, or hold out this many queries")
    ] = None,
    settings: Settings = None,
    memory: Annotated[
        Path | None, typer.Option(help="Share hidden states of frozen backbones in this folder")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the run in that folder")] = False,
    json: Json = False,
) -> None:
    """Train a model from RECIPE. For several GPUs, launch it with torchrun.

    --data is a collection with judgements, or a file of training data. --dev-split is evaluated during
    training; its default is the recipe's choice. --memory is for stages that remember hidden states.
    """
    from counterpoint.recipe import check, describe_run, read_recipe_data, run_recipe
    from counterpoint.recipe.run_folder import check_folder, is_first_process

    wanted = recipe_of(recipe, [*(settings or []), *_data_settings(split, dev_split)])
    faults = check(wanted)
    if faults:
        raise ConfigError(*faults)
    if is_first_process():
        check_folder(output, wanted, resume)
        note(*own_parts(wanted))
    training_data = read_recipe_data(wanted, data, documents=documents)
    if is_first_process():
        note(f"{len(training_data.training):,} examples; development queries: {training_data.origin}")
        if training_data.left_out:
            note(f"{training_data.left_out:,} more examples use development queries and are left out")
    started = time.perf_counter()
    with Bars() as bars:
        model = run_recipe(
            wanted, training_data, output, command=typed(), resume=resume, reporter=bars, memory=memory
        )
    if not is_first_process():
        return
    stages = describe_run(output)["stages"]
    result = {
        "run": str(output),
        "model": str(model),
        "recipe": wanted.fingerprint(),
        "examples": len(training_data.training),
        "left_out": training_data.left_out,
        "development": training_data.origin,
        "seconds": round(time.perf_counter() - started, 1),
        "stages": stages,
    }
    emit(result, lambda: _text(wanted, result, documents or data), json)


@final
class Bars:
    """A progress bar per stage, followed by the terms of the loss; without a terminal, plain lines."""

    def __init__(self) -> None:
        self.bar: tqdm[Any] | None = None
        self.lines: StageLines | None = None
        self.is_first = True
        self.open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.open.close()
        self.bar = self.lines = None

    def stage(self, name: str, steps: int, done: int) -> None:
        """Open the stage's bar."""
        from tqdm import tqdm

        self.__exit__()
        if is_quiet():
            return
        if not sys.stderr.isatty():
            self.lines = self.open.enter_context(stage_lines(name, steps, done))
            return
        self.bar = tqdm(total=steps, initial=done, desc=escaped(name), unit=" steps", smoothing=0.1)
        self.open.callback(self.bar.close)
        self.is_first = True

    def step(self, done: int, numbers: Mapping[str, float]) -> None:
        """Advance the bar and show the numbers."""
        if self.lines is not None:
            self.lines.step(done)
        if self.bar is None:
            return
        if numbers:
            self.bar.set_postfix(
                {escaped(name): f"{value:.4g}" for name, value in numbers.items()}, refresh=False
            )
        if self.is_first:  # the time left depends on steps, not on what came before them, such as mining
            self.is_first = False
            self.bar.unpause()  # starts its clock
            self.bar.n = self.bar.last_print_n = self.bar.initial = done
            self.bar.refresh()
            return
        self.bar.update(done - self.bar.n)

    def busy(self, what: str, done: int) -> None:
        """Show another activity instead of the numbers."""
        if self.lines is not None:
            self.lines.doing = f"{what} {done:,}"
        if self.bar is not None:
            self.bar.set_postfix_str(escaped(f"{what} {done:,}"))

    def note(self, text: str) -> None:
        """Write a line above the bar."""
        if not is_quiet():
            self._write(text)

    def warn(self, text: str) -> None:
        """Write a warning above the bar, even with --quiet."""
        self._write(f"warning: {text}")

    def _write(self, text: str) -> None:
        from tqdm import tqdm

        tqdm.write(escaped(text), file=sys.stderr)


def _data_settings(split: str | None, dev_split: str | None) -> list[str]:
    """Turn `--split` and `--dev-split` into settings of the recipe, so that they are recorded with it."""
    found = [] if split is None else [f"data.train={split!r}"]
    if dev_split is None:
        return found
    if dev_split.isascii() and dev_split.isdecimal() and len(dev_split) < 10:
        return [*found, "data.development=none", f"data.held_out={int(dev_split)}"]
    return [*found, f"data.development={dev_split!r}", "data.held_out=0"]


def _text(recipe: Recipe, result: Mapping[str, Any], source: str) -> str:
    from counterpoint.encode import InteractiveEncoder

    lines = []
    for stage, found in result["stages"].items():
        lines.append(f"{stage}: {found['ended'] or 'not ended'}")
        if found["best"] is not None:
            shown = [f"{name} {found['best'][name]:.4f}" for name in recipe.measures if name in found["best"]]
            lines.append(f"  best at step {found['best']['step']:,}: {', '.join(shown)}")
        lines += [f"  warning: {text}" for text in found["warnings"]]
    source, model = shlex.quote(source), shlex.quote(result["model"])
    use = f"counterpoint index {source} -o my-index --model {model}"
    if isinstance(recipe.model, InteractiveEncoder):
        use = f"counterpoint rerank {source} --run first.trec --model {model} -o reranked.trec"
    then = "Install its own classes, then use it:" if own_parts(recipe) else "Use it:"
    lines += [f"The model is in {result['model']} ({result['seconds']:,} s). {then}", use]
    return "\n".join(map(escaped, lines))
