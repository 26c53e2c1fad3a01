"""From text to lexical terms, with the place of each term kept: BM25 matches them, explanations show them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Literal, final

from counterpoint.errors import ConfigError
from counterpoint.types import Span

__all__ = ["Analyzer", "AnalyzerName"]

AnalyzerName = Literal["english", "simple", "none"]

# A run of letters and digits is a term; scripts written without spaces have one term a character, as in BERT.
UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
TERM = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")


@final
class Analyzer:
    """Cut a text into terms.

    Args:
        name: `english` lower-cases, drops English stop words and one-letter terms, and stems (Snowball);
            `simple` does the same without stemming; `none` only lower-cases, for other languages.
    """

    def __init__(self, name: AnalyzerName = "english"):
        if name not in ("english", "simple", "none"):
            raise ConfigError(f"unknown analyzer {name!r}; choose english, simple or none")
        self.name = name
        self._stop = _english_stop_words() if name != "none" else frozenset()
        self._stem: Callable[[str], str] = _stemmer() if name == "english" else str
        self._known: dict[str, str] = {}

    def spans(self, text: str) -> list[tuple[str, Span]]:
        """Every term with the piece of text that it came from, in order."""
        found = []
        for match in TERM.finditer(text):
            term = self._term(match[0].lower())
            if term:
                found.append((term, Span(match[0], match.start(), match.end())))
        return found

    def terms(self, text: str) -> list[str]:
        """The terms only."""
        return [term for word in TERM.findall(text) if (term := self._term(word.lower()))]

    def _term(self, word: str) -> str:
        """The term of a lower-case word, or the empty string for a word that is dropped."""
        term = self._known.get(word)
        if term is None:
            short = self.name != "none" and len(word) < 2 and word.isascii()
            term = "" if short or word in self._stop else self._stem(word)
            if len(self._known) < 1_000_000:  # the cache must not grow with the corpus
                self._known[word] = term
        return term

    @staticmethod
    def described() -> Mapping[str, str]:
        """What each analyzer does, for help texts."""
        return MappingProxyType(
            {
                "english": "lower case, stop words out, Snowball stems",
                "simple": "lower case, stop words out",
                "none": "lower case",
            }
        )


@cache
def _english_stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN

    return frozenset(STOPWORDS_EN)


def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return Stemmer.Stemmer("english").stemWord
