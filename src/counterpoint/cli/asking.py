"""Query an open index and print the answer."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast, final

from counterpoint.cli.console import warned
from counterpoint.cli.progress import loading
from counterpoint.library.options import SearchOptions
from counterpoint.memory import peak_resident

if TYPE_CHECKING:
    from counterpoint.library import OpenIndex
    from counterpoint.search import Answer, Searcher, Workflow

__all__ = ["Asking", "Explained", "show"]

Explained = Literal["no", "words", "full"]


@final
@dataclass(frozen=True)
class Asking:
    """An open index, with the options to search it.

    Attributes:
        opened: the index.
        options: search options.
        explained: how much of each hit's score is explained.
    """

    opened: OpenIndex
    options: SearchOptions
    explained: Explained = "no"

    def ready(self) -> Searcher:
        """Return the searcher; load the model if the workflow needs it, with a note on a terminal.

        Raises:
            ConfigError: the index does not support these options.
            ArtifactError: the model is missing, or is not the one that the index was built with.
        """
        from counterpoint.search.settings import plan_for

        named = None
        if self.options.workflow != "lexical" and not self.opened.is_loaded:
            named = (self.opened.index.manifest.model or {}).get("name")
        with loading(named), warned():
            searcher = self.opened.searcher(self.options)
        plan_for(cast("Workflow", self.options.workflow), self.opened.index, searcher.settings)
        return searcher

    def answer(self, query: str, *, explain: bool = False) -> tuple[Answer, dict[str, Any]]:
        """Return the answer, and the same as plain data with the time and memory used."""
        searcher, options = self.ready(), self.options
        started = time.perf_counter()
        answer = searcher.search(
            query,
            options.k,
            workflow=cast("Workflow", options.workflow),
            explain=explain or self.explained != "no",
        )
        milliseconds = round(1000 * (time.perf_counter() - started), 1)
        took = {"milliseconds": milliseconds, "peak_resident_bytes": peak_resident()}
        return answer, {**answer.to_dict(), **took}


def show(answer: Answer, explained: Explained) -> None:
    """Print an answer for people; snippets have marked words only if the answer was explained."""
    from counterpoint.explain import answer_console, render_answer

    render_answer(answer, answer_console(), explained=explained)
