"""Split text into lexical terms, with their spans. BM25 matches the terms, explanations show the spans."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from typing import Any, Literal, final, get_args

from counterpoint.errors import ConfigError
from counterpoint.identifiers import dotted_in, pieces_of
from counterpoint.types import Span

__all__ = ["Analyzer", "AnalyzerName", "check_analyzer"]

AnalyzerName = Literal["english", "english-long", "simple", "none"]

# A run of letters and digits is a term. Scripts without spaces have one term per character, as in BERT.
UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
WORD = rf"[{UNSPACED}]|[^\W{UNSPACED}]+"
TERM = re.compile(f"({WORD})")
# A short ending after an apostrophe ("don't", "Parkinson's") is not a term of its own. The endings "ll",
# "re" and "ve" are stop words.
WITH_ENDING = re.compile(rf"({WORD})(?:['’‘`´][stdm](?!\w))?", re.IGNORECASE)

LONGEST = 64  # characters of a word whose terms are cached
MOST = 2**17  # words; 25 MB if they are of prose


@final
class Analyzer:
    """Split a text into terms.

    Args:
        name: `english` lower-cases, drops Lucene's 33 stop words and stems with Snowball's English stemmer.
            Pyserini does the same with Porter's. `english-long` stems, too, and drops 173 stop words of NLTK,
            including question words, and endings after an apostrophe ("don't", "Parkinson's"). It keeps
            single letters ("vitamin D"). `simple` drops all of NLTK's 179 and does not stem. `none` only
            lower-cases, for other languages.
        identifiers: index `is_empty`, `checkIfEmpty`, `date.today` and `HTTP2Server` both as one term and as
            one term for each of their pieces.
    """

    def __init__(self, name: AnalyzerName = "english", identifiers: bool = False):
        check_analyzer(name)
        self.name, self.identifiers = name, identifiers
        self._stop = stop_words(name)
        self._terms = WITH_ENDING if name == "english-long" else TERM
        self._stem: Callable[[str], str] = _stemmer() if name.startswith("english") else str
        self._known = _Known(self._terms_of)

    def spans(self, text: str) -> list[tuple[str, Span]]:
        """Every term with its span of the text, in order; an identifier comes before its pieces."""
        found = []
        for match in self._terms.finditer(text):
            word, first = match[1], match.start(1)
            places = zip(self._known[word], self._places(word), strict=True)
            found += [(term, Span(word[a:b], first + a, first + b)) for term, (a, b) in places if term]
        dotted = dotted_in(text) if self.identifiers else []
        if dotted:
            found += [(term, name) for name in dotted if (term := self._term(name.text))]
            found.sort(key=lambda each: (each[1].start, -each[1].end))
        return found

    def terms(self, text: str) -> list[str]:
        """Every term, without spans."""
        if self.identifiers and dotted_in(text):
            return [term for term, _ in self.spans(text)]
        words = map(self._known.__getitem__, self._terms.findall(text))
        return [term for term in chain.from_iterable(words) if term]

    def _places(self, word: str) -> list[tuple[int, int]]:
        """Start and end of a word and of its pieces."""
        return [(0, len(word)), *(pieces_of(word) if self.identifiers else ())]

    def _terms_of(self, word: str) -> tuple[str, ...]:
        return tuple(self._term(word[start:end]) for start, end in self._places(word))

    def _term(self, word: str) -> str:
        """The term of a word; empty if the word is dropped."""
        lower = word.lower()
        return "" if lower in self._stop else self._stem(lower)


@final
class _Known(dict[str, tuple[str, ...]]):
    """The terms of words that were met before; `terms_of` finds those of a new one."""

    def __init__(self, terms_of: Callable[[str], tuple[str, ...]]):
        super().__init__()
        self._terms_of = terms_of

    def __missing__(self, word: str) -> tuple[str, ...]:
        terms = self._terms_of(word)
        # It must not grow with the corpus, nor with long words that requests bring along.
        if len(self) < MOST and len(word) <= LONGEST:
            self[word] = terms
        return terms


def check_analyzer(name: str) -> None:
    """Raise ConfigError for an unknown analyzer; loads no word list."""
    if name not in (known := get_args(AnalyzerName)):
        raise ConfigError(f"unknown analyzer {name!r}; choose {', '.join(known[:-1])} or {known[-1]}")


@cache
def stop_words(name: AnalyzerName) -> frozenset[str]:
    """Stop words of an analyzer as written in texts, before stemming."""
    if name == "none":
        return frozenset()
    lists = _bm25s_stop_words()
    if name == "english-long":
        return frozenset(word for word in lists.STOPWORDS_EN_PLUS if len(word) > 1 or word in "ai")
    return frozenset({"english": lists.STOPWORDS_EN, "simple": lists.STOPWORDS_EN_PLUS}[name])


def _bm25s_stop_words() -> Any:
    """Load `bm25s.stopwords` without its package.

    The import of scipy takes a tenth of a short search. And where JAX is there, the package runs it once, and
    JAX then takes three quarters of the GPU's memory.
    """
    package = find_spec("bm25s")
    assert package is not None and package.submodule_search_locations, "bm25s is a dependency"
    path = Path(package.submodule_search_locations[0]) / "stopwords.py"
    found = spec_from_file_location("counterpoint_bm25s_stopwords", path)
    assert found is not None and found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


def _stemmer() -> Callable[[str], str]:
    import Stemmer

    return Stemmer.Stemmer("english", 0).stemWord  # without its own cache, which takes longer than stemming
