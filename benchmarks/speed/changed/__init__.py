"""The systems that `changes.py` changes: one file each, found by its name.

A file has `SYSTEMS`, from names to `Changed`. It imports numpy and the standard library at its top, and what
it measures within functions, so that the list can be read where a peer is not installed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, Literal

from some_documents import Some
from vector_files import Query

Kind = Literal["tokens", "lexical", "words"]


class Writer(ABC):
    """Changes an index. Each call is a commit of its own, which a reader finds once the call has returned."""

    @abstractmethod
    def create(self, documents: Iterable[Some]) -> None:
        """Write an index of some documents, the first of them first."""

    @abstractmethod
    def add(self, documents: Some) -> None:
        """Add documents."""

    @abstractmethod
    def delete(self, ids: Sequence[str]) -> None:
        """Delete documents."""

    def tidy(self) -> None:  # noqa: B027 - some have nothing to do
        """What the system does after a commit by itself, where it is not done within the commit."""

    def compact(self, alone: bool) -> None:  # noqa: B027 - some have nothing to do
        """Make the index as small as the system can; `alone`: nobody searches it meanwhile."""

    def close(self) -> None:  # noqa: B027 - some have nothing to do
        """Let go of the files."""


class Reader(ABC):
    """Searches an index that is being changed."""

    @abstractmethod
    def refresh(self) -> None:
        """Answer from the last commit from now on."""

    @abstractmethod
    def search(self, query: Query, k: int) -> list[str]:
        """Ids of the best documents, best first."""


@dataclass(frozen=True)
class Changed:
    """What is measured.

    Attributes:
        kind: `tokens` and `lexical` terms of vector files, `words` of synthetic ones.
        needs: modules that it imports.
        writer: changes the index in a folder, which exists; it is given the collection, too.
        reader: searches it.
        environment: which environment of `engine.py install` has it; empty for the benchmark's own.
        k1, b: of BM25.
    """

    kind: Kind
    needs: tuple[str, ...]
    writer: Callable[[Any, Path], Writer]
    reader: Callable[[Any, Path], Reader]
    environment: str = ""
    k1: float = 0.9
    b: float = 0.4


def every_system() -> dict[str, Changed]:
    """By name, every system of every file here."""
    names = [found.name for found in iter_modules([str(Path(__file__).parent)])]
    return {k: v for name in names for k, v in import_module(f"changed.{name}").SYSTEMS.items()}
