"""Count the documents of a source that does not state its size: read ahead, or count lines."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterpoint.library import Build
    from counterpoint.types import Document

__all__ = ["ahead", "sized"]

SECONDS = 1.0  # of reading ahead at most, so that the progress bar appears within two
MOST = 20_000  # documents held in memory


def sized(build: Build, source: str, *, whole: bool) -> Build:
    """Return the build with its number of documents, if that can be found quickly.

    Args:
        build: its documents may be readable only once.
        source: what they are read from.
        whole: documents are not cut into passages, so each line of a file is one document.
    """
    if build.size is not None:
        return build
    documents, size = ahead(build.documents)
    return replace(build, documents=documents, size=_lines(Path(source)) if size is None and whole else size)


def ahead(
    documents: Iterable[Document], seconds: float = SECONDS, most: int = MOST
) -> tuple[Iterable[Document], int | None]:
    """Read ahead; return the same documents, and their number if the source ended within the limits.

    An error of reading is raised when the caller reaches that document.
    """
    stream, held = iter(documents), []
    end = time.monotonic() + seconds
    try:
        for document in stream:
            held.append(document)
            if len(held) >= most or time.monotonic() > end:
                return chain(held, stream), None
    except Exception as error:
        return chain(held, _raising(error)), None
    return held, len(held)


def _raising(error: Exception) -> Iterator[Document]:
    raise error
    yield  # makes this a generator, which raises when it is iterated


def _lines(source: Path) -> int | None:
    """Number of lines of a JSON Lines file or of a BEIR folder's corpus; None for other sources."""
    path = source / "corpus.jsonl" if source.is_dir() else source
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
