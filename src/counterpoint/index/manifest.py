"""`manifest.json`: the one file that says what an index consists of. Replacing it is the commit.

`manifest.copy.json` has the same bytes. A repair uses it if the disk has damaged the manifest; readers never
do. Every file that either of the two names exists: nothing is removed while they differ.
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
from counterpoint.files import sha256_file, sync_all, temporary_next_to, write_atomically
from counterpoint.headers import Header

if TYPE_CHECKING:
    from counterpoint.index.codec import CodecName
    from counterpoint.index.layout import SetLayout

__all__ = [
    "COPY",
    "NAME",
    "SHARDS",
    "FileEntry",
    "Manifest",
    "OtherVersion",
    "SegmentEntry",
    "checksum_of",
    "home_of",
    "write_bytes",
]

NAME = "manifest.json"
COPY = "manifest.copy.json"
FORMAT = "counterpoint-index"
VERSION = 5
SHARDED = 6  # written only for an index of shards, so that older versions read all others
_REMEDY = "`counterpoint verify INDEX --repair` restores it from its copy if there is one"
READABLE = (1, 2, 3, 4, 5, 6)
"""Format 1 had no BM25 postings, and offsets instead of lengths. 2 had no static sets. 3 had flags instead of
kinds of stores, and no codecs of few bits. 4 had a single segment, BM25 outside of it, and no deletes. 5 had
no shards."""
SHARDS = "shards"


class OtherVersion(ArtifactError):
    """The manifest has a format that this version cannot read."""


HEADER = Header("index", READABLE, _REMEDY, "build the index again", FORMAT, other=OtherVersion)


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
    """One immutable batch of documents with everything that is kept about them, and its deletes.

    Attributes:
        name: its folder below `segments`.
        documents: how many it holds, including deleted ones.
        vectors: number of vectors of each set.
        lexical: folder of its BM25 postings, or None.
        deletes: folder that lists the deleted documents, or None.
        deleted: number of deleted documents.
        codecs: by set, where the codec differs from the settings. Added documents are stored in 8 bits until
            a compaction encodes them in fewer.
        fit: name of the segment to which the means or centroids were fitted; None if nothing was fitted. That
            segment may have been merged since.
        fitted: number of documents it had.
        shard: number of its shard; None in an index without shards.
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
    shard: int | None = None

    @property
    def home(self) -> str:
        """Where its folders are, relative to the index: empty, or the folder of its shard."""
        return home_of(self.shard)

    @property
    def path(self) -> str:
        """Its own folder, relative to the index."""
        return f"{self.home}segments/{self.name}"

    @property
    def live(self) -> int:
        """Number of documents that are not deleted."""
        return self.documents - self.deleted

    def layouts(self, layouts: Mapping[str, SetLayout]) -> dict[str, SetLayout]:
        """How the vector sets of the index are stored in this segment."""
        codecs = {name: self.codecs.get(name, layout.codec) for name, layout in layouts.items()}
        return {name: replace(layout, codec=codecs[name]) for name, layout in layouts.items()}

    def folders(self) -> tuple[str, ...]:
        """Its folders, relative to the index."""
        return tuple(x for x in (self.path, self.lexical, self.deletes) if x is not None)

    def plain(self) -> dict[str, Any]:
        """The entry as plain data, as older versions read it if it has no shard."""
        return {name: value for name, value in vars(self).items() if name != "shard" or value is not None}


def home_of(shard: int | None) -> str:
    """The folder of a shard with a slash, relative to the index; empty for None."""
    return "" if shard is None else f"{SHARDS}/{shard:05d}/"


@dataclass(frozen=True)
class Manifest:
    """What an index consists of.

    Attributes:
        created: time of the commit, ISO 8601, UTC.
        software: version of counterpoint that wrote it.
        model: how to load the model, and its required fingerprint.
        settings: the `IndexSettings`, the `layouts` of vector sets and, if the codec was chosen
            automatically, how (`auto`, see `counterpoint.index.auto_codec`).
        segments: in the order of their documents.
        files: every other file of the index, by path relative to it.
        report: counts of the documents (`DocumentStream.report`); empty in older versions.
        cost: of the build: `seconds`, of these `encoder_seconds`, and `peak_resident_bytes` of its process
            (`counterpoint.memory.peak_resident`). Empty in older versions.
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
    def shards(self) -> int:
        """Number of shards; 1 for an index without."""
        return self.settings.get("shards", 1)

    @property
    def has_lexical(self) -> bool:
        """Whether the index has BM25."""
        return self.settings["lexical"] is not None

    def write(self, folder: Path) -> None:
        """Commit: replace the index's manifest by this one."""
        body = self._body()
        body["checksum"] = checksum_of(body)
        write_bytes(folder, _lines(body).encode())

    @property
    def commit(self) -> str:
        """Short name of the commit; the same contents have the same name."""
        return checksum_of(self._body())[:16]

    def _body(self) -> dict[str, Any]:
        sharded = any(segment.shard is not None for segment in self.segments)
        body = {"format": FORMAT, "version": SHARDED if sharded else VERSION, **vars(self)}
        body["segments"] = [segment.plain() for segment in self.segments]
        body["files"] = {name: vars(entry) for name, entry in self.files.items()}
        return body

    @staticmethod
    def read(folder: Path, name: str = NAME) -> Manifest:
        """Read and check a manifest.

        Args:
            folder: of the index.
            name: of the file; a repair asks for `COPY`.

        Raises:
            OtherVersion: its format cannot be read by this version of counterpoint.
            ArtifactError: there is no index, it is unfinished, or the manifest is damaged.
        """
        path = folder / name
        if not path.exists():
            raise ArtifactError(_why_absent(folder), path=folder)
        body = HEADER.read(path)
        if body.pop("checksum", None) != checksum_of(body):
            raise ArtifactError(
                f"the checksum does not match; the file was damaged or edited, {_REMEDY}", path=path
            )
        del body["format"], body["version"]
        segments = [SegmentEntry(**segment) for segment in body["segments"]]
        if (lexical := body.pop("lexical", None)) is not None:  # up to format 4
            segments[0] = replace(segments[0], lexical=lexical)
        body["segments"] = tuple(segments)
        body["files"] = {name: FileEntry(**entry) for name, entry in body["files"].items()}
        return Manifest(**body)

    def check_model(self, folder: Path, fingerprint: str) -> None:
        """Check that a model is the one the index in `folder` was built with.

        Raises:
            ArtifactError: it is another model; the message gives both fingerprints.
        """
        built_with = (self.model or {}).get("fingerprint")
        if fingerprint != built_with:
            raise ArtifactError(
                f"built with the model {str(built_with)[:12]}, but this model is {fingerprint[:12]}; "
                "search with the model of the index, or build the index again with this one",
                path=folder,
            )

    def files_of(self, folder: str) -> dict[str, FileEntry]:
        """The files listed for one folder of the index, by name in the folder."""
        return {
            path.removeprefix(f"{folder}/"): entry
            for path, entry in self.files.items()
            if path.startswith(f"{folder}/")
        }

    def faults(self, folder: Path) -> list[str]:
        """Files that are missing, or differ from their listed size or checksum; reads every byte."""
        return [f"{folder / name}: {what}" for name, what in self.damaged(folder).items()]

    def damaged(self, folder: Path) -> dict[str, str]:
        """The same, by path: what is wrong with each file."""
        faults = {name: _fault(folder / name, entry) for name, entry in self.files.items()}
        return {name: fault for name, fault in faults.items() if fault}


def write_bytes(folder: Path, content: bytes) -> None:
    """Write a manifest into a folder, and its copy just before it. Both are synced at once.

    Raises:
        ArtifactError: it could not be written; the message says which manifest is there now.
    """

    def write(path: Path) -> None:
        path.write_bytes(content)
        copy = temporary_next_to(folder / COPY)
        try:
            copy.write_bytes(content)
            sync_all([path, copy])
            os.replace(copy, folder / COPY)
        finally:
            with suppress(OSError):
                copy.unlink(missing_ok=True)

    write_atomically(folder / NAME, write)


def _fault(path: Path, entry: FileEntry) -> str | None:
    try:
        if not path.is_file():
            return "missing"
        if (size := path.stat().st_size) != entry.bytes:
            return f"{size:,} bytes, the manifest says {entry.bytes:,}"
        if sha256_file(path) != entry.sha256:
            return f"its content does not match the checksum in {NAME}"
    except OSError as error:  # a failing disk
        return f"cannot be read: {error.strerror}"
    return None


def checksum_of(body: Mapping[str, Any]) -> str:
    """SHA-256 of plain data, in hexadecimal."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lines(body: Mapping[str, Any]) -> str:
    """One line per field and per file: many times faster to write than with `indent`.

    Plain ASCII, as a model's folder may have any name.
    """

    def line(key: str, value: object) -> str:
        return f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"

    files = ",\n  ".join(line(name, entry) for name, entry in body["files"].items())
    fields = [line(key, value) for key, value in body.items() if key != "files"]
    return "{\n " + ",\n ".join([*fields, f'"files": {{\n  {files}\n }}']) + "\n}\n"


def _why_absent(folder: Path) -> str:
    if not folder.exists():
        return "there is no such folder; build an index with: counterpoint index SOURCE -o INDEX"
    if (folder / COPY).exists():
        return f"{NAME} is missing; `counterpoint verify INDEX --repair` restores it from its copy"
    if (folder / "segments").exists():
        return "an unfinished index (its build was interrupted); run `counterpoint index` again with --resume"
    return "not a Counterpoint index (no manifest.json); build one with: counterpoint index SOURCE -o INDEX"
