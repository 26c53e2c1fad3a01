"""The systems that `engine.py` measures: one file each, found by its name.

A file has `SYSTEMS`, from names to `System`s. It imports numpy and the standard library at its top, and what
it measures within functions, so that the list can be read where a peer is not installed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

Kind = Literal["tokens", "pooled", "lexical", "texts", "words", "encoding"]


@dataclass(frozen=True)
class System:
    """What is measured.

    Attributes:
        kind: which part of the collection it indexes, and what it is compared with: `tokens`, `pooled`
            vectors and `lexical` terms of vector files; `texts` of the collection itself; `words` of a
            synthetic one; `encoding` indexes nothing and encodes queries.
        needs: modules that it imports.
        build: writes an index of all documents into a new folder.
        open: opens it, by one of `searches`: a function from a query and k to positions or ids, best first.
        searches: by name, arguments of `open`.
        environment: which environment of `engine.py install` has it; empty for the benchmark's own.
        shown: how many documents an answer whose time is taken has, where that is not k: documents with their
            texts, as a program would ask for them. The best k are asked for again when times were taken.
        encodes: a query's text is encoded by it, so that it is asked twice: for the first time and again.
    """

    kind: Kind
    needs: tuple[str, ...]
    build: Callable[[Any, Path], None]
    open: Callable[..., Callable[[Any, int], Sequence[int] | Sequence[str]]]
    searches: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    environment: str = ""
    encodes: bool = False
    shown: int = 0


OURS = ("counterpoint.index", "counterpoint.search", "counterpoint.index.compiled.maxsim")
"""What a program that has searched for a second has imported, compiled kernels included."""


def all_systems() -> dict[str, System]:
    """By name, every system of every file here."""
    return {name: system for module in _modules() for name, system in module.SYSTEMS.items()}


def _modules() -> Iterator[Any]:
    for found in iter_modules([str(Path(__file__).parent)]):
        module = import_module(f"systems.{found.name}")
        if hasattr(module, "SYSTEMS"):
            yield module
