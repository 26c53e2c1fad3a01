"""Parse several collections on one command line, each followed by its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from counterpoint.cli.judgements import Judged, judgements_of
from counterpoint.cli.named import named, run_name
from counterpoint.errors import ConfigError

__all__ = ["Group", "each", "groups_of"]

T = TypeVar("T")
SUFFIXES = (".gz", ".trec", ".txt", ".tsv", ".run", ".res", ".qrels")


@dataclass
class Group:
    """A collection and its runs by system name."""

    name: str
    judged: Judged
    runs: dict[str, list[Path]] = field(default_factory=dict)


def groups_of(what: Sequence[str], splits: list[str] | None) -> list[Group]:
    """Group the words of a command line: a run belongs to the last collection before it."""
    sources = [(at, *named(word)) for at, word in enumerate(what) if not _is_run(named(word)[1])]
    if not sources or sources[0][0] != 0:
        raise ConfigError(f"name a collection or a qrels file before its runs; {what[0]!r} is a run")
    ends = [at for at, _, _ in sources[1:]] + [len(what)]
    groups = []
    chosen = each(splits, len(sources), "--split")
    for (at, name, source), end, split in zip(sources, ends, chosen, strict=True):
        group = Group(name or _short(source), judgements_of(source, split))
        if any(group.name == other.name for other in groups):
            raise ConfigError(f"two collections are called {group.name!r}; name them: NAME={source}")
        for label, path in map(named, what[at + 1 : end]):
            system = label or run_name(path)
            if label is None and system in group.runs:
                raise ConfigError(f"two runs on {group.name} are called {system!r}; name them: NAME={path}")
            if Path(path) in group.runs.setdefault(system, []):
                raise ConfigError(f"{system} on {group.name} has the run {path} twice; name each run once")
            group.runs[system].append(Path(path))
        groups.append(group)
    return groups


def _is_run(path: str) -> bool:
    """Whether a file's first line has the six columns of a run; a run without results has no line."""
    from counterpoint.data import is_trec_run

    return Path(path).is_file() and is_trec_run(path)


def _short(source: str) -> str:
    """A file's name without usual endings, a folder's name, or the source unchanged (`ir_datasets:…`)."""
    path = Path(source)
    if not path.exists():
        return source
    name = path.resolve().name
    while path.is_file() and name.endswith(SUFFIXES):
        name = name.rpartition(".")[0]
    return name


def each(values: list[T] | None, collections: int, option: str) -> Sequence[T | None]:
    """Return one value per collection: none, the same for all, or one each."""
    if not values:
        return [None] * collections
    if len(values) not in (1, collections):
        raise ConfigError(
            f"{option} is given {len(values)} times for {collections} collections; "
            "give it once for all, or once for each"
        )
    return values * collections if len(values) == 1 else values
