"""Mined lists on disk: JSON lines, after a header that says what they were mined from and how."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counterpoint.data import ReadPolicy
from counterpoint.data.output import write_lines
from counterpoint.errors import ArtifactError, DataError
from counterpoint.files import writing
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.formats.rows import rows

__all__ = ["Lists", "read_lists", "write_lists"]

Lists = Mapping[str, Sequence[str]]
"""Query id to document ids, best first."""


def write_lists(path: Path, header: Mapping[str, Any], lists: Lists) -> None:
    """Write `[query, document, …]` lines after the header, atomically.

    Raises:
        ArtifactError: the file could not be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps([query, *found], ensure_ascii=False) for query, found in lists.items())
    write_lines(path, (line for part in ([json.dumps(header)], lines) for line in part))


def read_lists(path: Path, header: Mapping[str, Any], data: TrainingSet) -> dict[str, list[str]] | None:
    """Read the lists, one per query. None if there is no file or its header differs.

    Raises:
        ArtifactError: the file is damaged.
    """
    if not path.is_file():
        return None
    try:
        stream = rows(path, ReadPolicy())
        first = next(stream, None)
        if first is None or first.value != header:
            return None
        # Interned: one object per id, however many lists contain it.
        lists = {row.value[0]: [sys.intern(found) for found in row.value[1:]] for row in stream}
        bare = next((example.query for example in data.examples if example.query not in lists), None)
        if bare is not None:
            raise DataError(f"nothing for query {bare!r}")
        unknown = next((d for found in lists.values() for d in found if d not in data.documents), None)
        if unknown is not None:
            raise DataError(f"document {unknown!r} is not in the data")
        return lists
    except (DataError, TypeError, LookupError) as error:
        raise ArtifactError(f"damaged ({error}); remove it to mine it again", path=path) from error
