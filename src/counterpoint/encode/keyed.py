"""`Keyed`: heads whose rows stand under keys of the vocabulary that hidden states decide."""

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

__all__ = ["Keyed"]


class Keyed(Head, ABC):
    """Rows whose ids are vocabulary entries, chosen by hidden states and scored by word embeddings. Abstract.

    Which rows a text has cannot be told from its tokens alone, so an encoder finds out.
    """

    threshold: float
    """Rows of documents whose weight is at or below this are dropped."""

    @property
    @abstractmethod
    def routers(self) -> Sequence[Router]:
        """What scores the vocabulary, each to begin with the checkpoint's masked-language-model head."""

    @abstractmethod
    def route(
        self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Float[Tensor, "v e"] | None
    ) -> tuple[Vectors, dict[str, Vectors]]:
        """The rows, and what stands beside them under the ends of names.

        Always under `BY_GATE` the weight of every row, dropped ones too, with the keys as ids.

        Raises:
            NotFittedError: `table`, the backbone's word embeddings, was not given.
        """

    @abstractmethod
    def spans_of(self, gates: Vectors, tokens: Tokens, name_of: Callable[[int], str]) -> list[list[Span]]:
        """What each row stands for, dropped ones too.

        Args:
            gates: what `route` made of the tokens, under `BY_GATE`.
            tokens: the texts.
            name_of: a vocabulary entry by its id.
        """

    def forward(
        self, hidden: Float[Tensor, "b t h"], tokens: Tokens, table: Float[Tensor, "v e"] | None = None
    ) -> Vectors:
        """The rows alone.

        Raises:
            NotFittedError: as `route`.
        """
        return self.route(hidden, tokens, table)[0]

    @property
    def choice(self) -> Choice:
        """Not to be told from a text alone; `Encoder.spans` asks the head.

        Raises:
            ConfigError: always.
        """
        name = type(self).__name__
        raise ConfigError(f"{name}: which rows a text has depends on its hidden states; use Encoder.spans")

    def needed(self, table: Float[Tensor, "v e"] | None) -> Float[Tensor, "v e"]:
        """The word embeddings.

        Raises:
            NotFittedError: there are none.
        """
        if table is None:
            name = type(self).__name__
            raise NotFittedError(f"{name}: keys are scored by the backbone's word embeddings; use an Encoder")
        return table
