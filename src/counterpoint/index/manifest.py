"""`manifest.json`: the one file that says what an index consists of. Replacing it is the commit.

`manifest.copy.json` has the same bytes, for a repair when the disk has damaged the first. A reader never
takes it for the manifest. Whatever either names is on the disk: nothing is removed while they differ.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ArtifactError
from counterpoint.files import sha256_file, sync_all, temporary_beside, write_atomically

if TYPE_CHECKING:
    from counterpoint.index.codec_names import CodecName

__all__ = ["FileEntry", "Manifest", "OtherVersion", "SegmentEntry", "checksum_of", "write_bytes"]

NAME = "manifest.json"
COPY = "manifest.copy.json"
FORMAT = "counterpoint-index"
VERSION = 5
_REMEDY = "`counterpoint verify INDEX --repair` puts its copy in place if there is one"
READABLE = (1, 2, 3, 4, 5)
"""1 had no postings of words, and offsets in place of lengths; 2 had no static sets; 3 had flags in place of
kinds of stores, and no codecs of few bits; 4 had one segment, BM25 beside it, and no deletes."""


class OtherVersion(ArtifactError):
    """A manifest that another version of counterpoint reads."""


@dataclass(frozen=True)
class FileEntry:
    """Size and checksum of one file of the index."""

    bytes: int
    sha256: str

    @staticmethod
    def of(path: Path) -> FileEntry:
        """Measure a file."""
        return FileEntry(path.stat().st_size, sha256_file(path))


@dataclass(frozen=True)
class SegmentEntry:
    """One immutable batch of documents with all that is kept of them, and which of them are deleted.

    Attributes:
        name: its folder below `segments`.
        documents: that it holds, deleted ones among them.
        vectors: how many each set has.
        lexical: folder of its BM25 postings, or None.
        deletes: folder that says which documents are deleted, or None.
        deleted: how many these are.
        codecs: of sets that are stored otherwise than the settings say: documents that were added wait in
            8 bits for the compaction that codes them in fewer.
        fit: the segment whose means of words or centroids its rows are differences from, by name; None where
            nothing was fitted. It may have become another by now.
        fitted: how many documents that had.
    """

    name: str
    documents: int
    vectors: Mapping[str, int]
    lexical: str | None = None
    deletes: str | None = None
    deleted: int = 0
    codecs: Mapping[str, CodecName] = field(default_factory=dict)
    fit: str | None = None
    fitted: int = 0

    @property
    def live(self) -> int:
        """How many documents are not deleted."""
        return self.documents - self.deleted

    def folders(self) -> tuple[str, ...]:
        """Its folders, relative to the index."""
        return tuple(x for x in (f"segments/{self.name}", self.lexical, self.deletes) if x is not None)


@dataclass(frozen=True)
class Manifest:
    """What an index is made of.

    Attributes:
        created: time of the commit, ISO 8601, UTC.
        software: version of counterpoint that wrote it.
        model: how to get the model, and the fingerprint it must have.
        settings: what `IndexSettings` said, the `layouts` of vector sets, and where the codec was chosen, how
            (`auto`, see `counterpoint.index.auto_codec`).
        segments: in the order of their documents.
        files: every other file of the index, by path relative to it.
        report: what was counted of the documents (`DocumentStream.report`); older versions counted nothing.
        cost: what the build took: `seconds`, of them `encoder_seconds`, and `peak_resident_bytes` of its
            process (`counterpoint.memory.peak_resident`). Older versions measured nothing.
    """

    created: str
    software: str
    model: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    segments: tuple[SegmentEntry, ...]
    files: Mapping[str, FileEntry]
    report: Mapping[str, int] = field(default_factory=dict)
    cost: Mapping[str, float | None] = field(default_factory=dict)

    @property
    def documents(self) -> int:
        """Number of documents that are not deleted (passages, where documents were cut)."""
        return sum(segment.live for segment in self.segments)

    @property
    def has_lexical(self) -> bool:
        """Whether there is BM25."""
        return self.settings["lexical"] is not None

    def write(self, folder: Path) -> None:
        """Commit: after this call the index is what this manifest says; before it, what it was."""
        body = {"format": FORMAT, "version": VERSION, **vars(self)}
        body["segments"] = [vars(segment) for segment in self.segments]
        body["files"] = {name: vars(entry) for name, entry in self.files.items()}
        body["checksum"] = checksum_of(body)
        write_bytes(folder, _lines(body).encode())

    @staticmethod
    def read(folder: Path, name: str = NAME) -> Manifest:
        """Read and check a manifest.

        Args:
            folder: of the index.
            name: of the file; a repair asks for `COPY`.

        Raises:
            OtherVersion: another version of counterpoint reads it.
            ArtifactError: no index here, an unfinished one, or a damaged manifest.
        """
        path = folder / name
        try:
            body = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise ArtifactError(_why_absent(folder), path=folder) from error
        except OSError as error:
            raise ArtifactError(f"cannot be read: {error.strerror}", path=path) from error
        except ValueError as error:
            raise ArtifactError(f"not valid JSON; the file is damaged, {_REMEDY}", path=path) from error
        if not isinstance(body, dict) or body.pop("format", None) != FORMAT:
            raise ArtifactError("not the manifest of a Counterpoint index", path=path)
        version = body.pop("version", None)
        if version not in READABLE:
            raise OtherVersion(
                f"index format {version!r}, this version of counterpoint reads {_listed(READABLE)}; "
                "build the index again or install the version that wrote it",
                path=path,
            )
        if body.pop("checksum", None) != checksum_of({"format": FORMAT, "version": version, **body}):
            raise ArtifactError(
                f"the checksum does not match; the file was damaged or edited, {_REMEDY}", path=path
            )
        segments = [SegmentEntry(**segment) for segment in body["segments"]]
        if (lexical := body.pop("lexical", None)) is not None:  # up to format 4
            segments[0] = replace(segments[0], lexical=lexical)
        body["segments"] = tuple(segments)
        body["files"] = {name: FileEntry(**entry) for name, entry in body["files"].items()}
        return Manifest(**body)

    def check_model(self, folder: Path, fingerprint: str) -> None:
        """Refuse a model that is not the one the index in `folder` was built with.

        Raises:
            ArtifactError: saying both fingerprints.
        """
        built_with = (self.model or {}).get("fingerprint")
        if fingerprint != built_with:
            raise ArtifactError(
                f"built with the model {str(built_with)[:12]}, this one is {fingerprint[:12]}; "
                "search with the model that it was built with, or build it again with this one",
                path=folder,
            )

    def files_of(self, folder: str) -> dict[str, FileEntry]:
        """What is listed of one of the index's folders, by name in it."""
        return {
            path.removeprefix(f"{folder}/"): entry
            for path, entry in self.files.items()
            if path.startswith(f"{folder}/")
        }

    def faults(self, folder: Path) -> list[str]:
        """Files that are missing, or not of the listed size or content; reads every byte."""
        return [f"{folder / name}: {what}" for name, what in self.damaged(folder).items()]

    def damaged(self, folder: Path) -> dict[str, str]:
        """The same, by name: what is wrong with each file."""
        faults = {name: _fault(folder / name, entry) for name, entry in self.files.items()}
        return {name: fault for name, fault in faults.items() if fault}


def write_bytes(folder: Path, content: bytes) -> None:
    """Put a manifest into a folder, and its copy just before it. Both are synced at once.

    Raises:
        ArtifactError: it could not be written; the message says which manifest is there now.
    """

    def write(path: Path) -> None:
        path.write_bytes(content)
        copy = temporary_beside(folder / COPY)
        try:
            copy.write_bytes(content)
            sync_all([path, copy])
            os.replace(copy, folder / COPY)
        finally:
            with suppress(OSError):
                copy.unlink(missing_ok=True)

    write_atomically(folder / NAME, write)


def _fault(path: Path, entry: FileEntry) -> str | None:
    """What is wrong with a file; None where it is as listed."""
    try:
        if not path.is_file():
            return "missing"
        if (size := path.stat().st_size) != entry.bytes:
            return f"{size:,} bytes, the manifest says {entry.bytes:,}"
        if sha256_file(path) != entry.sha256:
            return f"its content does not match the checksum in {NAME}"
    except OSError as error:  # what a failing disk says
        return f"cannot be read: {error.strerror}"
    return None


def checksum_of(body: Mapping[str, Any]) -> str:
    """SHA-256 of plain data, in hexadecimal."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(body: Mapping[str, Any]) -> str:
    """A line for each field and for each file, which is written many times faster than with `indent`.

    ASCII: a model's folder may have any name.
    """

    def line(key: str, value: object) -> str:
        return f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"

    files = ",\n  ".join(line(name, entry) for name, entry in body["files"].items())
    fields = [line(key, value) for key, value in body.items() if key != "files"]
    return "{\n " + ",\n ".join([*fields, f'"files": {{\n  {files}\n }}']) + "\n}\n"


def _listed(versions: tuple[int, ...]) -> str:
    return f"{', '.join(map(str, versions[:-1]))} and {versions[-1]}"


def _why_absent(folder: Path) -> str:
    if not folder.exists():
        return "there is no such folder; build an index with: counterpoint index SOURCE -o INDEX"
    if (folder / COPY).exists():
        return f"{NAME} is missing; `counterpoint verify INDEX --repair` puts its copy in place"
    if (folder / "segments").exists():
        return "an unfinished index (its build was interrupted); run `counterpoint index` again with --resume"
    return "not a Counterpoint index (no manifest.json); build one with: counterpoint index SOURCE -o INDEX"
