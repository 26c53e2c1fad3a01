"""The folder of a run: its recipe, data, versions and machine, and its results.

recipe.toml        the recipe with every setting
provenance.json    data with their hashes, seed, and every session: command, versions, revisions, times
metrics.jsonl      one line per logged step
checkpoints/       the state to resume from
model/             the trained model, once the last stage has ended
start.json         the model before the first step, and the weights taken from another run
.lock              locked while a process trains here
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.escapes import json_text
from counterpoint.files import write_atomically, writing
from counterpoint.folders import remove_made
from counterpoint.headers import Header
from counterpoint.learn.checkpoint import latest_place
from counterpoint.learn.start import START_FILE, Start
from counterpoint.locks import locked
from counterpoint.provenance import provenance, revision_of
from counterpoint.recipe.recipe import Recipe, differences
from counterpoint.recipe.recipe_data import RecipeData
from counterpoint.recipe.source import RECIPE_FILE
from counterpoint.typed import shown

__all__ = ["check_folder", "describe_run", "is_first_process", "session"]

FORMAT = 1
HEADER = Header("run", (FORMAT,), "the run's folder is incomplete; start another run")
PROVENANCE = "provenance.json"
METRICS = "metrics.jsonl"
LOCK = ".lock"
NOT_VALUES = ("stage", "number", "warning")
"""Keys of a log line other than numbers by name."""
PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate", "numpy", "datasets")


def is_first_process() -> bool:
    """Whether this process is the only one, or torchrun's first."""
    return os.environ.get("RANK", "0") == "0"


def check_folder(folder: Path, recipe: Recipe, resume: bool) -> None:
    """Refuse a folder that cannot be that of this run. Nothing is written.

    Raises:
        ArtifactError: the folder exists and `resume` is false, or it is not a run.
        ConfigError: the recipe differs from the run's. The message lists every difference.
    """
    if not resume:
        if folder.exists():
            raise ArtifactError(
                "already exists; continue it with --resume, or choose another folder", path=folder
            )
        return
    path = folder / RECIPE_FILE
    if not path.is_file():
        raise ArtifactError(f"there is no run to resume here: no {RECIPE_FILE}", path=folder)
    before = Recipe.from_toml(path.read_text(encoding="utf-8"), str(path))
    _refuse(
        folder,
        (
            f"{folder}: {where} is {shown(old)} in this run, found {shown(new)}"
            for where, old, new in differences(before.resolved(), recipe.resolved())
        ),
    )


@contextmanager
def session(
    folder: Path, recipe: Recipe, training_data: RecipeData, command: str, resume: bool
) -> Iterator[None]:
    """Create the folder of a new run, or check that a run can be resumed; record the session of the block.

    The folder is locked for the block. Where the file system has no locks, it is not.

    Raises:
        ArtifactError: the folder exists and `resume` is false, or it is not a run, or cannot be written, or
            another process trains in it.
        ConfigError: recipe or data differ from the run's. The message lists every difference.
    """
    check_folder(folder, recipe, resume)
    if not resume:
        with writing(folder):
            folder.mkdir(parents=True)
    with locked(folder / LOCK, "another process is training in this folder; wait for it to end"):
        try:
            _begin(folder, recipe, training_data, command, resume)
            yield
        except Exception:  # of ours, or of a class of the user
            if not resume:
                _leave_no_trace(folder)
            raise
        document = HEADER.read(folder / PROVENANCE)
        document["sessions"][-1]["end"] = datetime.now(UTC).isoformat(timespec="seconds")
        _write(folder, document)


def _begin(folder: Path, recipe: Recipe, training_data: RecipeData, command: str, resume: bool) -> None:
    """Record a new session."""
    data = training_data.to_dict()
    start = None if recipe.start is None else Start.find(recipe.start).to_dict()
    if resume:
        document = HEADER.read(folder / PROVENANCE)
        _refuse_other_data(folder, document, data)
        if (document.get("start") or {}).get("sha256") != (start or {}).get("sha256"):
            fault = f"{folder}: the model in {recipe.start} is not the one that this run started from"
            _refuse(folder, [fault])
    else:
        document = {"format": FORMAT, "recipe": recipe.fingerprint(), "seed": recipe.seed, **data}
        document |= {"start": start, "sessions": []}
        write_atomically(folder / RECIPE_FILE, lambda path: path.write_text(recipe.to_toml(), "utf-8"))
    started = provenance(command, PACKAGES)
    started |= {
        "start": started.pop("date"),
        "end": None,
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "working_folder": _checkout_of(Path.cwd()),
    }
    document["sessions"].append(started)
    _write(folder, document)


def describe_run(folder: Path) -> dict[str, Any]:
    """Describe a run as plain data: its model, its provenance, and the results of each stage.

    A stage has the newest value of everything logged (`last`), the `best` evaluation, the `warnings`, how it
    `ended` (None if it has not), and the step whose weights were `kept`.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    model = folder / "model"
    part = tomllib.loads((model / "part.toml").read_text("utf-8")) if model.is_dir() else None
    recipe = tomllib.loads((folder / RECIPE_FILE).read_text(encoding="utf-8"))["recipe"]
    return {
        "run": str(folder),
        "model": None if part is None else str(model),
        "fingerprint": None if part is None else part["fingerprint"],
        "provenance": HEADER.read(folder / PROVENANCE),
        "start": _start(folder),
        "stages": _stages(recipe, _results(_log(folder / METRICS), recipe.get("measures", [])), folder),
    }


def _leave_no_trace(folder: Path) -> None:
    """Remove the folder of a run that ended before it learnt anything, so that it can be started again."""
    log = folder / METRICS
    learnt = log.exists() and '"loss"' in log.read_text(encoding="utf-8")
    if not learnt and not any((folder / name).exists() for name in ("checkpoints", "model")):
        remove_made(folder / "tensorboard", ("events.out.tfevents.*",))
        remove_made(folder, (RECIPE_FILE, PROVENANCE, START_FILE, METRICS, LOCK))


def _results(log: Iterable[dict[str, Any]], measures: Sequence[str]) -> dict[str, dict[str, Any]]:
    """By stage: the newest value of everything logged, the first of the best evaluations, all warnings."""
    found: dict[str, dict[str, Any]] = {}
    for row in log:
        stage = found.setdefault(row["stage"], {"last": {}, "best": None, "warnings": []})
        if "warning" in row and row["warning"] not in stage["warnings"]:
            stage["warnings"].append(row["warning"])
        stage["last"] |= {name: value for name, value in row.items() if name not in NOT_VALUES}
        if measures and measures[0] in row:
            evaluated = {name: row[name] for name in ("step", *measures) if name in row}
            if stage["best"] is None or evaluated[measures[0]] > stage["best"][measures[0]]:
                stage["best"] = evaluated
    return found


def _stages(recipe: Mapping[str, Any], results: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Every stage of the recipe with its results, how it ended, and the step whose weights were kept."""
    done, _ = latest_place(folder / "checkpoints") or (0, 0)  # the stages before that of the checkpoint
    found = {}
    for number, declared in enumerate(recipe.get("stages", [])):
        stage = results.get(declared["name"], {"last": {}, "best": None, "warnings": []})
        step, reason = stage["last"].get("step"), stage["last"].pop("stopped", None)
        ended = kept = None
        if number < done:
            ended = "done" if step is None else f"ended at step {step:,}: {reason or 'all steps done'}"
            best = declared.get("keep") == "best" and stage["best"] is not None
            kept = stage["best"]["step"] if best else step
        found[declared["name"]] = {**stage, "ended": ended, "kept": kept}
    return found


def _log(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the log's lines. The last one may be cut if the process was killed."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            if number < len(lines):
                raise ArtifactError(f"line {number} is no log entry ({error})", path=path) from error


def _refuse_other_data(folder: Path, run: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse data with other content. The files may have moved."""
    faults = []
    for part in ("training", "development"):
        if run[part].get("fingerprint") != asked[part].get("fingerprint"):
            changed = [
                f"{where} was {shown(old)}, is {shown(new)}"
                for where, old, new in differences(run[part], asked[part])
            ]
            faults.append(f"{folder}: the {part} data are not those of this run: {'; '.join(changed)}")
    _refuse(folder, faults)


def _refuse(folder: Path, faults: Iterable[str]) -> None:
    found = list(faults)
    if found:
        raise ConfigError(
            *found,
            "repeat the options and the data of the run; its recipe, with all its options, is in its folder: "
            f"counterpoint train {shlex.quote(str(folder))} --resume -o {shlex.quote(str(folder))} --data …",
        )


def _start(folder: Path) -> dict[str, Any] | None:
    path = folder / START_FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _write(folder: Path, document: Mapping[str, Any]) -> None:
    text = json_text(document, indent=2)
    write_atomically(folder / PROVENANCE, lambda path: path.write_text(text, "utf-8"))


def _checkout_of(folder: Path) -> dict[str, str | None] | None:
    """The git checkout that contains a folder, and its revision. None if there is none."""
    top = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)
    return None if top is None else {"folder": str(top), "revision": revision_of(top)}
