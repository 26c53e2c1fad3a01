"""`export.json`: contents of an exported index, and the settings that it was built with."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

from counterpoint.errors import DataError
from counterpoint.folders import FolderKind
from counterpoint.headers import Header
from counterpoint.index.codec import CodecName
from counterpoint.index.layout import AnnName
from counterpoint.index.metadata import MOST
from counterpoint.index.vector_shards import ExportedSet, Shard
from counterpoint.index.where import FieldType
from counterpoint.typed import MISFIT, fitted, shown

__all__ = ["EXPORT", "MODEL", "SETTINGS", "Description", "is_export"]

NAME = "export.json"
MODEL = "model"
EXPORT = FolderKind(NAME, ("corpus.jsonl", "vectors/*.safetensors", f"{MODEL}/*"))
"""Files in the folder of an export."""
FORMAT, VERSION = "counterpoint-export", 1
HEADER = Header("export", (VERSION,), "export the index again", name=FORMAT, error=DataError)

SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "codec": CodecName,
        "sets": tuple[str, ...] | None,
        "lexical": dict | None,
        "search": dict | None,
        "ann": AnnName | None,
        "gate": float | None,
        "metadata": dict,
        "passage_words": int | None,
        "shards": int,
        "pool_factor": float,
    }
)
"""Fields of `IndexSettings` in an export, with their types."""
LEXICAL: Mapping[str, Any] = MappingProxyType({"k1": float, "b": float, "analyzer": str, "identifiers": bool})
SET: Mapping[str, Any] = MappingProxyType(
    {"dim": int, "pooled": bool, "ids": bool, "static": bool, "codec": CodecName}
)
BODY: Mapping[str, Any] = MappingProxyType(
    {
        "software": str,
        "documents": int,
        "passages": int,
        "model": dict | None,
        "settings": dict,
        "report": dict,
        "sets": dict,
        "shards": list,
    }
)
REPORT: Mapping[str, Any] = MappingProxyType({"longest": int, "longer": int})
OLD = frozenset({"sets", "search", "ann", "gate", "metadata", "passage_words", "shards", "pool_factor"})
"""Settings that an index of an older version may lack."""


@final
@dataclass(frozen=True)
class Description:
    """Contents of an export.

    Attributes:
        software: version of counterpoint that wrote it.
        documents: documents in the corpus; a document cut into passages counts once.
        passages: lines of the corpus.
        model: `name` (a folder is relative to the export) and `fingerprint`; None without vectors.
        settings: the settings named in `SETTINGS`.
        report: counts over the documents, if all of the index was exported.
        sets: exported vector sets; empty unless vectors were asked for.
        shards: files of these vectors.
    """

    software: str
    documents: int
    passages: int
    model: Mapping[str, str | None] | None
    settings: Mapping[str, Any]
    report: Mapping[str, int]
    sets: Mapping[str, ExportedSet]
    shards: tuple[Shard, ...]

    def write(self, folder: Path) -> None:
        """Write `export.json`."""
        body = {"format": FORMAT, "version": VERSION, **asdict(self)}
        (folder / NAME).write_text(json.dumps(body, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @staticmethod
    def read(folder: Path) -> Description:
        """Read and check `export.json`.

        Raises:
            DataError: it cannot be read, has another version, or a value has the wrong type.
        """
        path = folder / NAME
        body = HEADER.read(path)
        del body["format"], body["version"]
        if faults := _faults(body):
            raise DataError("; ".join(faults[:3]) + "; export the index again", path=path)
        body["sets"] = {name: ExportedSet(**found) for name, found in body["sets"].items()}
        body["shards"] = tuple(Shard(**found) for found in body["shards"])
        return Description(**body)


def is_export(folder: Path) -> bool:
    """Whether a folder is an exported index."""
    return os.path.isfile(folder / NAME)  # also false for a name that the system refuses


def _faults(body: Mapping[str, Any]) -> list[str]:
    if faults := _of(body, BODY, "export"):
        return faults
    settings = body["settings"]
    if faults := _of(settings, SETTINGS, "settings", OLD):
        return faults
    faults = _of(body["report"], REPORT, "report", frozenset(REPORT))
    if settings["lexical"] is not None:
        faults += _of(settings["lexical"], LEXICAL, "settings.lexical", frozenset(LEXICAL))
    declared = settings.get("metadata", {})
    faults += _of(declared, dict.fromkeys(declared, FieldType), "settings.metadata")
    if len(declared) > MOST:
        faults.append(f"settings.metadata: more than {MOST} fields")
    if body["model"] is not None:
        faults += _of(body["model"], {"name": str | None, "fingerprint": str}, "model")
    for name, found in body["sets"].items():
        faults += _of(found, SET, f"sets.{name}") or _odd_set(name, found)
    if body["shards"] and not body["sets"]:
        faults.append("sets: none, but there are shards with vectors")
    for number, found in enumerate(body["shards"]):
        faults += _of(found, {"documents": int, "sha256": str}, f"shards[{number}]")
        if not faults and not 0 < found["documents"] < 2**32:
            faults.append(f"shards[{number}]: expected 1 to 2**32 - 1 documents, found {found['documents']}")
    return faults


def _odd_set(name: str, found: Mapping[str, Any]) -> list[str]:
    if name.isidentifier() and 0 < found["dim"] < 2**31:
        return []
    return [f"sets.{name[:40]}: expected a name like a Python variable, and a dim from 1 to 2**31 - 1"]


def _of(
    found: Any, hints: Mapping[str, Any], where: str, optional: frozenset[str] = frozenset()
) -> list[str]:
    """Check the types of an object's values; list the faults."""
    if not isinstance(found, dict):
        return [f"{where}: expected an object, found {shown(found)}"]
    faults = [
        f"{where}: {name!r} is missing" for name in hints if name not in found | dict.fromkeys(optional)
    ]
    faults += [f"{where}: {name[:40]!r} is unknown" for name in found if name not in hints]
    for name in hints.keys() & found.keys():
        if not _fits(found[name], hints[name]):
            faults.append(f"{where}: {name!r} cannot be {shown(found[name])}")
    return faults


def _fits(value: Any, hint: Any) -> bool:
    """Check a type; the caller checks the contents of objects and lists."""
    if hint in (dict, list):
        return isinstance(value, hint)
    if hint == dict | None:
        return value is None or isinstance(value, dict)
    return not isinstance(value, dict) and fitted(value, hint) is not MISFIT
