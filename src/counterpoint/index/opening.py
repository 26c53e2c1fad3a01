"""Open what a commit consists of: segments, their files, and stores over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from counterpoint.errors import ArtifactError
from counterpoint.index.checked import CheckedFolder
from counterpoint.index.codec import CODECS
from counterpoint.index.deletes import Deletes
from counterpoint.index.kinds import KINDS
from counterpoint.index.layout import SetLayout
from counterpoint.index.manifest import Manifest, SegmentEntry
from counterpoint.index.segment import Segment
from counterpoint.index.store import VectorStore

__all__ = ["Opened", "opened", "stores_of"]

OPENINGS = 10  # attempts, if a commit replaces the index each time

Opened = tuple[Manifest, tuple[Segment, ...], Mapping[str, VectorStore]]


def opened(
    folder: Path, known: Sequence[Segment], manifest: Manifest | None = None, *, committed: bool = True
) -> Opened:
    """Open everything an index consists of; try again if a commit replaces it meanwhile.

    Segments in `known` are open already; `manifest` is given if it was just read. If it is not `committed`,
    nothing else is opened in its place.
    """
    left = OPENINGS
    while True:
        now, left = manifest or Manifest.read(folder), left - 1
        try:
            return _open(folder, now, {segment.entry.name: segment for segment in known})
        except ArtifactError:
            if not committed or not left or Manifest.read(folder) == now:
                raise
            manifest = None


def _open(folder: Path, manifest: Manifest, known: Mapping[str, Segment]) -> Opened:
    layouts = {name: SetLayout.from_dict(x) for name, x in manifest.settings["layouts"].items()}
    for each in (layouts, *(entry.layouts(layouts) for entry in manifest.segments)):
        for name, layout in each.items():
            _check_known(folder, name, layout)

    def files(name: str) -> CheckedFolder:
        return CheckedFolder(folder / name, manifest.files_of(name))

    segments = tuple(_segment(entry, known.get(entry.name), files) for entry in manifest.segments)
    return manifest, segments, stores_of(layouts, segments)


def _check_known(folder: Path, name: str, layout: SetLayout) -> None:
    asked = {"is a store of kind": (layout.kind, KINDS), "has the codec": (layout.codec, CODECS)}
    for what, (given, known) in asked.items():
        if given not in known:
            raise ArtifactError(
                f"vector set {name!r} {what} {given!r}, which this version does not know; "
                "install the version that wrote the index or build it again",
                path=folder,
            )


def stores_of(layouts: Mapping[str, SetLayout], segments: Sequence[Segment]) -> Mapping[str, VectorStore]:
    """The store of every vector set over some segments."""
    pieces = [segment.pieces(layouts) for segment in segments]
    return {
        name: KINDS[layout.kind].open(name, layout, [each[name] for each in pieces])
        for name, layout in layouts.items()
    }


def _segment(entry: SegmentEntry, known: Segment | None, files: Callable[[str], CheckedFolder]) -> Segment:
    """A segment as of a commit; files that are open already are shared."""
    if known is not None and known.entry == entry:
        return known
    if known is None or known.entry.lexical != entry.lexical:
        terms = None if entry.lexical is None else files(entry.lexical)
        known = Segment(files(entry.path), entry, terms)
    deletes = None
    if entry.deletes is not None:
        deletes = Deletes(files(entry.deletes), entry.documents, entry.deleted)
    return known.at(entry, deletes)
