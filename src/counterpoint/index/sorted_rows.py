"""The rows of an exact set a second time, in the order of its postings, so that those of a word lie together.

    <set>.sorted_values.npy     vectors, as in <set>.values.npy (and <set>.sorted_scales.npy)
    <set>.sorted_documents.npy  the document of each

Rows of a frequent word are all over the other files, and with many documents nearly each of them has to be
fetched from memory on its own. Reading them here takes a tenth of the time. Only written for the codecs whose
rows the kernels of exact matching read, and from as many documents as a sketch.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import final

import numpy as np
from jaxtyping import Int

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.layout import SetLayout
from counterpoint.index.npy import NpyWriter, open_npy
from counterpoint.index.rows import Rows

__all__ = ["SortedRows", "sorted_kinds", "write_sorted"]

CHUNK = 2**24  # bytes copied at a time


def sorted_kinds(layout: SetLayout) -> list[str]:
    """The files of such a set, by the part of their names after the set."""
    return [*(f"sorted_{key}" for key in CODECS[layout.codec].layout(layout.dim)), "sorted_documents"]


def write_sorted(folder: Path, name: str, layout: SetLayout, documents: int) -> None:
    """Write the files of a set whose rows and postings are complete; nothing for another codec."""
    rows = Rows(CheckedFolder(folder), name, layout, documents)
    if not rows.factored:
        return
    order, kinds = open_npy(folder / f"{name}.postings.npy"), CODECS[layout.codec].layout(layout.dim)
    step = max(1, CHUNK // max(1, layout.dim))
    with ExitStack() as files:
        made = {
            key: files.enter_context(NpyWriter(folder / f"{name}.{key}.npy", *of))
            for key, of in zip(sorted_kinds(layout), [*kinds.values(), (np.uint32, ())], strict=True)
        }
        for at in range(0, len(order), step):
            some = order[at : at + step].astype(np.int64)
            for key, array in rows.stored(some).items():
                made[f"sorted_{key}"].append(array)
            owners = np.searchsorted(rows.offsets, some, side="right") - 1
            made["sorted_documents"].append(owners.astype(np.uint32))


@final
class SortedRows:
    """These files of one set of a segment, memory-mapped."""

    def __init__(self, files: CheckedFolder, name: str, layout: SetLayout, rows: int):
        *kinds, documents = sorted_kinds(layout)
        self._arrays = [files.array(f"{name}.{key}.npy") for key in kinds]
        self._documents = files.array(f"{name}.{documents}.npy")
        if any(len(each) != rows for each in (*self._arrays, self._documents)):
            raise ArtifactError(f"the sorted rows of {name!r} do not fit the others", path=files.folder)

    def checked(
        self, firsts: Int[np.ndarray, " m"], ends: Int[np.ndarray, " m"]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Integers, factors as uint16, and documents; those of some ranges are checked."""
        *values, factors = (each.checked(firsts, ends) for each in self._arrays)
        integers = values[0] if values else np.zeros((len(factors), 0), np.int8)
        documents = self._documents.checked(firsts, ends)
        return integers, factors.reshape(-1).view(np.uint16), documents
