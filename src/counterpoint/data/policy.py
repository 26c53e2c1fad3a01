"""What to do about bad input, and the count of what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_type_hints

from counterpoint.errors import ConfigError

__all__ = ["ReadPolicy", "ReadReport"]

SHOWN_NOTES = 20  # enough to see what is wrong; a million bad lines must not fill the memory


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """What happens when input is not as it should be. The defaults stop at the first doubt.

    Queries, judgements and runs are always read strictly: a line lost there changes a measurement.

    Attributes:
        malformed: a line, row, file or id that cannot be used: stop, or leave it out and count it.
        duplicates: an id for the second time: stop, or keep the first document and count the other.
        encoding: bytes that are not UTF-8: stop, or put U+FFFD in their place and count the text.
        too_long: a text above `max_characters`: stop, or keep its beginning and count it.
        max_characters: the longest text of one document (or of one file in a folder), in characters.
        unknown_judged: a judgement of a document that the corpus lacks: keep it as trec_eval does (the
            document counts as relevant and not found, so figures stay comparable), or stop. Stopping
            costs one pass over the corpus for each call of `Collection.qrels`.
    """

    malformed: Literal["error", "skip"] = "error"
    duplicates: Literal["error", "first"] = "error"
    encoding: Literal["error", "replace"] = "error"
    too_long: Literal["error", "truncate"] = "error"
    max_characters: int = 10_000_000
    unknown_judged: Literal["keep", "error"] = "keep"

    @staticmethod
    def lenient() -> ReadPolicy:
        """Carry on past everything that can be passed over, counting it."""
        return ReadPolicy(malformed="skip", duplicates="first", encoding="replace", too_long="truncate")

    def __post_init__(self) -> None:
        faults = []
        for name, hint in get_type_hints(type(self)).items():
            value, allowed = getattr(self, name), get_args(hint)
            if allowed and value not in allowed:
                faults.append(f"ReadPolicy: {name} must be one of {', '.join(allowed)}, found {value!r}")
        if self.max_characters < 1:
            faults.append(f"ReadPolicy: max_characters must be at least 1, found {self.max_characters}")
        if faults:
            raise ConfigError(*faults)


@dataclass(slots=True)
class ReadReport:
    """What one pass over a collection met; filled while the documents are consumed.

    Attributes:
        documents: documents (or passages) handed out.
        empty: of those, how many have neither title nor text; they are kept and can be fetched by id.
        files: files read.
        skipped: malformed lines, rows and files left out.
        duplicates: documents left out because their id had been seen.
        replaced: texts in which bytes or characters were replaced by U+FFFD.
        truncated: texts that were cut at the limit.
        other_files: files of a folder that were not read, counted by their ending (or what they are).
        notes: the first few of these events, each with file and line.
    """

    documents: int = 0
    empty: int = 0
    files: int = 0
    skipped: int = 0
    duplicates: int = 0
    replaced: int = 0
    truncated: int = 0
    other_files: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, message: str, path: str | Path, line: int | None = None) -> None:
        """Remember an event, if not too many are remembered already."""
        if len(self.notes) < SHOWN_NOTES:
            where = f"{path}" if line is None else f"{path}:{line}"
            self.notes.append(f"{where}: {message}")

    def summary(self) -> str:
        """One line: the number of documents, and every other count that is not zero."""
        words = {
            "empty": "empty",
            "skipped": "malformed and skipped",
            "duplicates": "duplicates left out",
            "replaced": "with broken characters replaced",
            "truncated": "truncated",
        }
        found = [f"{getattr(self, name):,} {word}" for name, word in words.items() if getattr(self, name)]
        if self.other_files:
            often = sorted(self.other_files.items(), key=lambda item: (-item[1], item[0]))
            kinds = ", ".join(kind for kind, _ in often[:5]) + (", …" if len(often) > 5 else "")
            found.append(f"{sum(self.other_files.values()):,} files not read ({kinds})")
        return ", ".join([f"{self.documents:,} documents", *found])
