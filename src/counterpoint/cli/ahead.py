"""How many documents a source has, where it does not say: read ahead a little, or count lines."""

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

SECONDS = 1.0  # read ahead at most, so that there is a bar within two
MOST = 20_000  # documents held


def sized(build: Build, source: str, *, whole: bool) -> Build:
    """The build, told how many documents there are if that can be known at once.

    Args:
        build: its documents may have been read once only.
        source: what they are read from.
        whole: whether each line of a file is one document, since none is cut into passages.
    """
    if build.size is not None:
        return build
    documents, size = ahead(build.documents)
    return replace(build, documents=documents, size=_lines(Path(source)) if size is None and whole else size)


def ahead(
    documents: Iterable[Document], seconds: float = SECONDS, most: int = MOST
) -> tuple[Iterable[Document], int | None]:
    """The same documents, and their number if they end before so much was read.

    What goes wrong in reading is raised where it would have been.
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
    yield  # a generator, which raises when it is asked


def _lines(source: Path) -> int | None:
    """Lines of a JSON Lines file, or of the corpus in BEIR's folder; None of anything else."""
    path = source / "corpus.jsonl" if source.is_dir() else source
    if path.suffix != ".jsonl" or not path.is_file():
        return None
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
