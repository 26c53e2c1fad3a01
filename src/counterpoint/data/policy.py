"""What to do about bad input, and a report of what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args, get_type_hints

from counterpoint.errors import ConfigError
from counterpoint.types import Document

__all__ = ["ReadPolicy", "ReadReport", "counted"]

LISTED = 1000  # maximum number of files that a report names
SHOWN_NOTES = 20  # enough to see the problem; a million bad lines must not fill the memory


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """What to do about bad input. By default, stop at the first problem.

    Queries, judgements and runs are always read strictly, because a lost line would change a measurement.

    Attributes:
        malformed: a line, row, file or id that cannot be used: stop, or skip and count it.
        duplicates: a repeated id: stop, or keep the first document and count the other.
        encoding: bytes that are neither UTF-8 nor in a detected encoding: stop, or replace them with U+FFFD
            and count the text.
        too_long: a text above `max_characters`: stop, or keep its beginning and count it.
        max_characters: maximum length of the text of one document (or one file of a folder), in characters.
        files: a file of a folder, or a row in it, that cannot be read: skip, count and list it, or stop.
            Folders may hold anything, so the default here is to skip.
        unknown_judged: a judgement of a document that the corpus lacks: keep it as trec_eval does, or stop.
            If kept, the document counts as relevant and not found, so results stay comparable. Stopping costs
            one pass over the corpus for each call of `Collection.qrels`.
    """

    malformed: Literal["error", "skip"] = "error"
    duplicates: Literal["error", "first"] = "error"
    encoding: Literal["error", "replace"] = "error"
    too_long: Literal["error", "truncate"] = "error"
    max_characters: int = 10_000_000
    files: Literal["skip", "error"] = "skip"
    unknown_judged: Literal["keep", "error"] = "keep"

    @staticmethod
    def lenient() -> ReadPolicy:
        """The policy that skips and counts everything that can be skipped."""
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
    """Counts of one pass over a collection; filled while the documents are consumed.

    Attributes:
        documents: whole documents yielded.
        passages: items yielded: uncut documents, and the passages of the others.
        empty: of these, those with neither title nor text. They are kept and can be fetched by id.
        files: files read.
        kinds: number of files read, by ending.
        encodings: number of files that are not UTF-8, by encoding.
        skipped: malformed lines and rows skipped.
        duplicates: documents skipped because their id is a duplicate.
        replaced: texts in which bytes or characters were replaced by U+FFFD.
        truncated: texts that were cut at the limit.
        unreadable: number of files of a folder that could not be read.
        not_read: the first of these files, each with the reason.
        other_files: files of a folder with an unsupported type, counted by ending.
        left_out: files and folders excluded by choice (hidden, in `.gitignore`, excluded, …).
        decisions: the first decisions about files: columns, delimiters, encodings.
        notes: the first lines, rows and texts that were skipped or changed, each with file and line.
        absent: metadata fields with a declared type that no document has.
    """

    documents: int = 0
    passages: int = 0
    empty: int = 0
    files: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    encodings: dict[str, int] = field(default_factory=dict)
    skipped: int = 0
    duplicates: int = 0
    replaced: int = 0
    truncated: int = 0
    unreadable: int = 0
    not_read: list[str] = field(default_factory=list)
    other_files: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    decisions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def count(self, document: Document, last: str | None) -> str:
        """Count a yielded item and return the id of its document; `last` is the previous document's id."""
        whole = document.parent or document.id
        self.passages += 1
        self.documents += whole != last
        self.empty += not document.full_text.strip()
        return whole

    def read(self, kind: str) -> None:
        """Count a file that was read."""
        self.files += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def leave_out(self, reason: str) -> None:
        """Count a file or folder that was excluded by choice."""
        self.left_out[reason] = self.left_out.get(reason, 0) + 1

    def cannot_read(self, reason: str) -> None:
        """Count a file of a folder that could not be read, and list it."""
        self.unreadable += 1
        if len(self.not_read) < LISTED:
            self.not_read.append(reason)

    def decide(self, message: str) -> None:
        """Record a decision about a file."""
        if message not in self.decisions and len(self.decisions) < LISTED:
            self.decisions.append(message)

    def note(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        """Record an event, up to a limit."""
        if len(self.notes) < SHOWN_NOTES:
            where = "" if path is None else f"{path}: " if line is None else f"{path}:{line}: "
            self.notes.append(where + message)

    def summary(self) -> str:
        """One line: the number of documents (and passages), and every other count that is not zero."""
        words = {
            "empty": "empty",
            "skipped": "malformed and skipped",
            "duplicates": "duplicates left out",
            "replaced": "with broken characters replaced",
            "truncated": "truncated",
        }
        found = [f"{getattr(self, name):,} {word}" for name, word in words.items() if getattr(self, name)]
        if self.unreadable:
            found.append(f"{counted(self.unreadable, 'file')} could not be read")
        if self.other_files:
            often = sorted(self.other_files.items(), key=lambda item: (-item[1], item[0]))
            kinds = ", ".join(kind for kind, _ in often[:5]) + (", …" if len(often) > 5 else "")
            found.append(f"{counted(sum(self.other_files.values()), 'file')} not read ({kinds})")
        return ", ".join([self.size(), *found])

    def lost(self) -> str:
        """A few lines about what was skipped and why; empty if nothing was."""
        found = [f"{counted(self.unreadable, 'file')} could not be read"] * bool(self.unreadable)
        found += [f"{counted(self.skipped, 'row')} skipped"] * bool(self.skipped)
        return "\n  ".join([", ".join(found), *self.not_read[:SHOWN_NOTES], *self.notes]) if found else ""

    def lacks(self) -> list[str]:
        """A line for each declared metadata field that no document has."""
        return [f"no document has the metadata field {name!r}" for name in self.absent]

    def why_nothing(self) -> str:
        """Why there is no document, as far as known, to append to a message."""
        reasons = {f"{name or 'without an ending'}": n for name, n in self.other_files.items()}
        found = [f"{counted(n, 'file')} {kind}" for kind, n in {**reasons, **self.left_out}.items()]
        if self.unreadable:
            found.append(f"{counted(self.unreadable, 'file')} could not be read, such as {self.not_read[0]}")
        return f". Not read: {'; '.join(found)}" if found else ""

    def size(self) -> str:
        """Number of documents, and of passages if any document was cut."""
        documents = counted(self.documents, "document")
        if self.passages == self.documents:
            return documents
        return f"{documents} in {counted(self.passages, 'passage')}"


def counted(number: int, what: str) -> str:
    """`1 file`, `2,000 files`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
