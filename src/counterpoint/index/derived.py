"""Which files of a segment can be recreated, and from which others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import final

import numpy as np

from counterpoint.index.centroid_lists import write_lists
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.counted import write_counts
from counterpoint.index.database import CHECKS, DATABASE, PASSAGES, Database, document_checks
from counterpoint.index.graph import write_graph
from counterpoint.index.inverted import write_ids, write_postings
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NpyWriter
from counterpoint.index.sketch import write_sketch
from counterpoint.index.sorted_rows import sorted_kinds, write_sorted

__all__ = ["Derivation", "derivations", "steps_for"]

PARENT = 4  # the column of a row, counted from its number


@final
@dataclass(frozen=True)
class Derivation:
    """Files of a segment that derive from others.

    Attributes:
        makes: their names.
        of: names of the files they derive from.
        make: makes them in a folder that has these.
    """

    makes: frozenset[str]
    of: frozenset[str]
    make: Callable[[Path], None]


def derivations(names: Collection[str], layouts: Mapping[str, SetLayout], documents: int) -> list[Derivation]:
    """All derivations in a segment with these files, sets (as they are stored there) and documents."""
    found = [_derivation((CHECKS, PASSAGES), (DATABASE,), partial(_write_checks, documents=documents))]
    for name, layout in layouts.items():
        found += _of_set(name, layout, names, documents)
    return [each for each in found if each.makes <= set(names)]


def steps_for(lost: Collection[str], known: list[Derivation]) -> tuple[list[Derivation], set[str]]:
    """The derivations that recreate lost files, in order; and the files that none recreates."""
    left, steps = set(lost), []
    while True:
        step = next((each for each in known if each.makes & left and not each.of & left), None)
        if step is None:
            return steps, left
        steps.append(step)
        left -= step.makes


def _derivation(makes: Collection[str], of: Collection[str], make: Callable[[Path], None]) -> Derivation:
    return Derivation(frozenset(makes), frozenset(of), make)


def _of_set(name: str, layout: SetLayout, names: Collection[str], documents: int) -> Iterator[Derivation]:
    def files(*kinds: str) -> list[str]:
        return [f"{name}.{kind}.npy" for kind in kinds]

    ids = "ranks" if files("ranks")[0] in names else "ids"
    lengths = [] if layout.pooled else files("offsets" if files("offsets")[0] in names else "lengths")
    if layout.ids:
        counted = ("frequencies",) if ids == "ranks" else ("vocabulary", "frequencies")
        needed = [*files(ids), *(files("vocabulary") if ids == "ranks" else []), *lengths]
        count = partial(write_counts, name=name, layout=layout, documents=documents)
        yield _derivation(files(*counted), needed, count)
    if layout.kind == "exact":
        yield _derivation(
            files("postings", "starts"), files(ids, "vocabulary"), partial(write_postings, name=name)
        )
        yield _derivation(
            files(ids), files("postings", "starts", "vocabulary"), partial(write_ids, name=name, kind=ids)
        )
        rows = files("postings", *CODECS[layout.codec].layout(layout.dim))
        again = partial(write_sorted, name=name, layout=layout, documents=documents)
        yield _derivation(files(*sorted_kinds(layout)), [*rows, *lengths], again)
    if layout.kind == "lists":
        lists = files("lists", "list_counts", "list_ends")
        needed = [*files("centroids", "clusters"), *lengths]
        yield _derivation(lists, needed, partial(write_lists, name=name))
    if layout.pooled:
        rows = [*files(*CODECS[layout.codec].layout(layout.dim)), *(files(ids) if layout.ids else [])]
        for makes, write in ((files("signs", "sign_scales"), write_sketch), ([f"{name}.hnsw"], write_graph)):
            yield _derivation(makes, rows, partial(write, name=name, layout=layout, documents=documents))


def _write_checks(folder: Path, documents: int) -> None:
    """Write checksums of a database's rows, and the list of its passages."""
    database = Database(CheckedFolder(folder), documents)
    with (
        NpyWriter(folder / CHECKS, np.uint64, (2,)) as checks,
        NpyWriter(folder / PASSAGES, np.uint32) as passages,
    ):
        for row, *columns in database.rows():
            checks.append(np.array([document_checks(row, columns)], np.uint64))
            if columns[PARENT - 1] is not None:
                passages.append(np.array([row], np.uint32))
    database.close()
