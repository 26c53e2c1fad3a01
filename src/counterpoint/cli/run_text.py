"""The record of a training run as text: data, stages, machines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["run_lines"]

WIDTH = 14  # of the first column
NAMES = 6  # names of weights per line


def run_lines(run: Mapping[str, Any]) -> Iterator[str]:
    """Lines for the result of `describe_run`, with full hashes."""
    found = run["provenance"]
    yield _line("run", run["run"])
    yield _line("model", f"{run['model']}, fingerprint {run['fingerprint']}" if run["model"] else "none yet")
    training, development = found["training"], found["development"]
    facts = training["provenance"]
    source = facts.get("source", "data given by hand")
    split = f", split {facts['split']}" if facts.get("split") else ""
    yield _line(
        "trained on",
        f"{training['examples']:,} examples, {training['queries']:,} queries, {training['documents']:,} "
        f"documents of {source}{split}; fingerprint {training['fingerprint']}",
    )
    yield from _facts(facts)
    queries = f"{development['queries']:,} queries, " if "queries" in development else ""
    hashed = f"; fingerprint {development['fingerprint']}" if "fingerprint" in development else ""
    yield _line("evaluated on", f"{queries}{development['origin']}{hashed}")
    yield from _files(development)
    yield _line("seed", found["seed"])
    yield from _start(run["start"])
    for name, stage in run["stages"].items():
        yield from _stage(name, stage)
    for number, session in enumerate(found["sessions"], 1):
        yield from _session(number, session)


def _line(what: str, text: object) -> str:
    return f"{what:{WIDTH}} {text}"


def _files(facts: Mapping[str, Any]) -> Iterator[str]:
    for file in facts.get("files", ()):
        yield f"  {file['file']}  sha256 {file['sha256']}"


def _facts(facts: Mapping[str, Any]) -> Iterator[str]:
    yield from _files(facts)
    for name, value in facts.items():
        if name not in ("files", "source", "split"):
            shown = "; ".join(map(str, value)) if isinstance(value, list) else value
            yield f"  {name.replace('_', ' ')}: {shown}"


def _start(start: Mapping[str, Any] | None) -> Iterator[str]:
    if start is None:
        return
    if "source" not in start:
        yield _line("started from", f"what the recipe declares, fingerprint {start['fingerprint']}")
        return
    yield _line("started from", f"{start['source']}, sha256 {start['sha256']}")
    yield f"  {len(start['taken'])} weights taken"
    for name in ("new", "other_shapes", "unused"):
        if start[name]:
            more = f" and {len(start[name]) - NAMES} more" if len(start[name]) > NAMES else ""
            yield f"  {name.replace('_', ' ')}: {', '.join(start[name][:NAMES])}{more}"


def _stage(name: str, stage: Mapping[str, Any]) -> Iterator[str]:
    yield _line(f"stage {name}", stage["ended"] or "not ended")
    if stage["best"] is not None:
        kept = ", kept" if stage["kept"] == stage["best"]["step"] else ""
        yield f"  best at step {stage['best']['step']:,}{kept}: {_numbers(stage['best'])}"
    if stage["last"]:
        yield f"  last, step {stage['last']['step']:,}: {_numbers(stage['last'])}"
    for text in stage["warnings"]:
        yield f"  warning: {text}"


def _numbers(values: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in values.items() if isinstance(value, float)}
    return ", ".join(f"{name} {value:.4g}" for name, value in shown.items())


def _session(number: int, session: Mapping[str, Any]) -> Iterator[str]:
    yield _line(
        f"session {number}", f"{session['start']} to {session['end'] or 'no end: stopped or running'}"
    )
    yield f"  command: {session['command']}"
    machine = session["machine"]
    yield (
        f"  machine: {session['processes']} process(es), {machine['cores']} cores, {machine['processor']}, "
        f"{machine['gpu'] or 'no GPU'}, {machine['system']}"
    )
    versions = (f"{name} {version}" for name, version in session["versions"].items() if version)
    yield f"  versions: {', '.join(versions)}"
    yield f"  revision of Counterpoint: {session['revision'] or 'not a checkout'}"
    folder = session["working_folder"]
    where = f"{folder['revision']} in {folder['folder']}" if folder else "not in a checkout"
    yield f"  revision of the working folder: {where}"
