"""`Searchable`: the calls that only read an index, open here or on a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, overload

from counterpoint.errors import ConfigError
from counterpoint.library.keywords import SearchKeywords, check_keywords, with_names
from counterpoint.library.options import SearchOptions

if TYPE_CHECKING:
    from counterpoint.search import Answer

__all__ = ["Searchable", "options_of"]


class Searchable(ABC):
    """Something that answers queries and gives documents. Abstract."""

    @abstractmethod
    def _answers(self, queries: Sequence[str], options: SearchOptions) -> list[Answer]:
        """The answer to each query."""

    @abstractmethod
    def document(self, name: str) -> dict[str, Any]:
        """A document as it was indexed: its `id`, `title`, `text` and `metadata`.

        Raises:
            ConfigError: no document has this id.
        """

    @abstractmethod
    def refresh(self) -> bool:
        """Switch to the last commit; return whether it is a new one."""

    @overload
    def search(self, query: str, k: int = ..., **asked: Unpack[SearchKeywords]) -> Answer: ...
    @overload
    def search(
        self, query: list[str] | tuple[str, ...], k: int = ..., **asked: Unpack[SearchKeywords]
    ) -> list[Answer]: ...
    @with_names(SearchKeywords)
    def search(
        self,
        query: str | list[str] | tuple[str, ...],
        k: int = SearchOptions.k,
        **asked: Unpack[SearchKeywords],
    ) -> Answer | list[Answer]:
        """Search for the best documents for one query, or for each of several.

        Args:
            query: one text, or a list of texts.
            k: number of documents.
            asked: other fields of `SearchOptions`: workflow, weights, adapt, fusion, feedback, exhaustive,
                probes, where, explain.

        Raises:
            ConfigError: a query is empty, or an option does not exist or has an invalid value.
        """
        options = options_of(k, asked, SearchKeywords)
        if isinstance(query, str):
            (answer,) = self._answers([query], options)
            return answer
        if not isinstance(query, list | tuple) or not all(isinstance(text, str) for text in query):
            raise ConfigError(f"query: expected a text or a list of texts, found {query!r}")
        return self._answers(query, options)


def options_of(k: int, asked: Mapping[str, Any], keywords: type) -> SearchOptions:
    """Options from the keywords of a call.

    Raises:
        ConfigError: a keyword is unknown.
    """
    check_keywords(asked, "k", *keywords.__annotations__)
    return SearchOptions(k=k, **asked)
