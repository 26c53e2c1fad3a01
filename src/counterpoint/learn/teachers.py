"""`Teacher`: scores of query and document that another model gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from counterpoint.config import Setting

__all__ = ["Grader", "Teacher"]


class Grader(ABC):
    """A teacher that is loaded and ready."""

    @abstractmethod
    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        """Scores of the documents for the query, all of them texts; higher is better."""


class Teacher(Setting, ABC):
    """Which model teaches."""

    @abstractmethod
    def load(self, texts: Mapping[str, str]) -> Grader:
        """Load the model. `texts` are the training documents, which a grader may encode once."""
