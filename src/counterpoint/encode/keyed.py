"""`Keyed`: heads whose row ids are vocabulary entries that hidden states choose."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from jaxtyping import Float
from torch import Tensor

from counterpoint.encode.choice import Choice
from counterpoint.encode.heads import Head
from counterpoint.encode.router import Router
from counterpoint.encode.tokens import Tokens
from counterpoint.errors import ConfigError, NotFittedError
from counterpoint.types import Span
from counterpoint.vectors import Vectors

__all__ = ["Keyed", "Routes", "Table"]

Table = Float[Tensor, "v e"]
Routes = tuple[Vectors, dict[str, Vectors]]


class Keyed(Head, ABC):
    """Abstract base: rows with vocabulary ids, chosen by hidden states and scored by word embeddings.

    The tokens of a text do not decide its rows, so only an encoder can list them.
    """

    threshold: float
    """Document rows whose weight is at or below this are dropped."""

    @property
    @abstractmethod
    def routers(self) -> Sequence[Router]:
        """The routers that score the vocabulary; each can start from the masked-language-model head."""

    @abstractmethod
    def route(self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Table | None) -> Routes:
        """Compute the rows, and further vectors by the suffix of their set's name.

        `BY_GATE` always holds the weight of every row, dropped ones included, with the keys as ids.

        Raises:
            NotFittedError: `table`, the backbone's word embeddings, was not given.
        """

    @abstractmethod
    def spans_of(self, gates: Vectors, tokens: Tokens, name_of: Callable[[int], str]) -> list[list[Span]]:
        """The span of each row, dropped ones included; `gates` is the `BY_GATE` result of `route`."""

    def forward(self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Table | None = None) -> Vectors:
        """Compute the rows of `route` alone."""
        return self.route(hidden, tokens, table)[0]

    @property
    def choice(self) -> Choice:
        """Refuse with a ConfigError: hidden states choose the rows; `Encoder.spans` lists them."""
        name = type(self).__name__
        raise ConfigError(f"{name}: the rows of a text depend on its hidden states; use Encoder.spans")

    def needed(self, table: Table | None) -> Table:
        """Return the word embeddings.

        Raises:
            NotFittedError: there are none.
        """
        if table is None:
            raise NotFittedError(
                f"{type(self).__name__}: needs the backbone's word embeddings to score keys; use an Encoder"
            )
        return table
