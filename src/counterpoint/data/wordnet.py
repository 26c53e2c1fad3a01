"""Synonyms from WordNet: from a folder of its senses, or from nltk's copy."""

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from counterpoint.data.beir import required
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import strict_reader
from counterpoint.data.records import records
from counterpoint.errors import ConfigError, DataError, MissingExtraError

__all__ = ["NltkThesaurus", "Thesaurus", "WordNetFolder", "open_thesaurus"]

RANK = re.compile(r"[0-9]{1,9}")
# Endings that WordNet's own look-up removes, and their replacements (morphy(7WN)); also those in -i-, which
# WordNet lists as irregular forms.
ENDINGS: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType(
    {
        "n": (
            ("s", ""), ("ses", "s"), ("ves", "f"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"),
            ("men", "man"), ("ies", "y"),
        ),
        "v": (
            ("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ied", "y"),
            ("ing", "e"), ("ing", ""),
        ),
        "a": (("er", ""), ("est", ""), ("er", "e"), ("est", "e"), ("ier", "y"), ("iest", "y")),
        "r": (),
    }
)  # fmt: skip


class Thesaurus(ABC):
    """Abstract base: synonyms by lemma and part of speech."""

    @abstractmethod
    def senses(self, lemma: str, part: str) -> Sequence[Sequence[str]]:
        """The words of each sense of a lemma in lower case, the most frequent sense first.

        `part` is the part of speech: `n`, `v`, `a` or `r`.
        """

    def synonyms(self, word: str) -> Iterator[tuple[str, ...]]:
        """Yield single-word synonyms of a word in lower case, sense by sense, each in alphabetical order.

        First come those of its most frequent sense in any part of speech, then those of the next. A word that
        is not a lemma is looked up without its ending; irregular forms (`mice`) are not known. Synonyms are
        lemmas, whatever the word's form.
        """
        found = [self._of_part(word, part) for part in ENDINGS]
        for rank in range(max(map(len, found))):
            if members := {member for senses in found if rank < len(senses) for member in senses[rank]}:
                yield tuple(sorted(members))

    def _of_part(self, word: str, part: str) -> list[list[str]]:
        """For each sense of the word's first lemma of this part of speech, the other single words."""
        bases = [word.removesuffix(old) + new for old, new in ENDINGS[part] if word.endswith(old)]
        single = [base[:-1] for base in bases if base[-2:] == 2 * base[-1:] and part in "va"]  # planned
        for base in (word, *bases, *single):
            if senses := self.senses(base, part):
                return [
                    [name for name in members if name.isalpha() and name.lower() not in (base, word)]
                    for members in senses
                ]
        return []


@final
class WordNetFolder(Thesaurus):
    """WordNet in a folder with `lemma_senses.tsv` and `synsets.jsonl`, each plain or `.gz`.

    The first has lines of lemma, part of speech, rank of the sense (0 is the most frequent) and synset. The
    second has one object per synset, with its `id` and its `members`.

    Raises:
        DataError: a file is missing, or a line does not fit.
    """

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        if not self.folder.is_dir():
            raise DataError(
                "there is no such folder; synonyms come from a folder with lemma_senses.tsv and "
                "synsets.jsonl, or 'nltk'",
                path=folder,
            )
        self._files = {name: required(self.folder, name) for name in ("lemma_senses.tsv", "synsets.jsonl")}

    def senses(self, lemma: str, part: str) -> list[list[str]]:
        """Senses by rank; those of a name (`Turkey`) come after those of the same lemma in lower case."""
        return [self._members[synset] for *_, synset in self._senses.get((lemma, part), ())]

    @cached_property
    def _senses(self) -> dict[tuple[str, str], list[tuple[bool, int, str]]]:
        path, found = self._files["lemma_senses.tsv"], {}
        for line, text in strict_reader(ReadPolicy()).lines(path):
            columns = text.split("\t")
            if len(columns) != 4 or not RANK.fullmatch(columns[2]) or columns[3] not in self._members:
                raise DataError(
                    "expected lemma, part of speech, rank and a known synset, separated by tabs, found "
                    f"{text!r}",
                    path=path,
                    line=line,
                )
            lemma, part, rank, synset = columns
            found.setdefault((lemma.lower(), part), []).append((lemma != lemma.lower(), int(rank), synset))
        return {key: sorted(senses) for key, senses in found.items()}

    @cached_property
    def _members(self) -> dict[str, list[str]]:
        path, found = self._files["synsets.jsonl"], {}
        for line, record in records(path, strict_reader(ReadPolicy())):
            if not isinstance(record.get("id"), str) or not isinstance(record.get("members"), list):
                raise DataError("expected an object with 'id' and a list 'members'", path=path, line=line)
            found[record["id"]] = record["members"]
        return found


@final
class NltkThesaurus(Thesaurus):
    """WordNet as nltk reads it (the extra `nltk`), from wherever nltk finds its data.

    Raises:
        MissingExtraError: nltk is not installed.
        ConfigError: nltk has no copy of WordNet.
    """

    def __init__(self) -> None:
        try:
            from nltk.corpus.reader.wordnet import WordNetCorpusReader
            from nltk.corpus.util import LazyCorpusLoader
        except ImportError as error:
            raise MissingExtraError("WordNet from nltk", package="nltk", extra="nltk") from error
        self._wordnet: Any = LazyCorpusLoader("wordnet", WordNetCorpusReader, None)
        with warnings.catch_warnings():  # it warns that there is no other language
            warnings.simplefilter("ignore")
            try:
                self._wordnet.ensure_loaded()
            except LookupError as error:
                raise ConfigError(
                    "nltk has no WordNet here; get it with: python -m nltk.downloader wordnet, or name a "
                    "folder with lemma_senses.tsv and synsets.jsonl"
                ) from error

    def senses(self, lemma: str, part: str) -> list[list[str]]:
        """Senses in WordNet's order, which is by frequency."""
        return [found.synset().lemma_names() for found in self._wordnet.lemmas(lemma, part)]


def open_thesaurus(source: str) -> Thesaurus:
    """Open `nltk`, or a folder.

    Raises:
        DataError: there is no such folder.
        MissingExtraError: nltk is requested and not installed.
        ConfigError: nltk is installed without WordNet.
    """
    return NltkThesaurus() if source == "nltk" else WordNetFolder(source)
