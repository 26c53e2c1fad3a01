"""Repair a damaged index: recreate files that derive from intact ones, and save documents that can be read.

A folder of an index never changes. So a repair writes a new folder, with links to intact files and with new
files, and one commit names it. A killed repair leaves the damaged index as it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import final

import numpy as np

from counterpoint.errors import ArtifactError, ConfigError
from counterpoint.files import write_atomically
from counterpoint.index.checked import BLOCKS, CheckedFolder
from counterpoint.index.committing import commit, holding
from counterpoint.index.database import DATABASE, Database
from counterpoint.index.deletes import Deletes, with_deletes
from counterpoint.index.kinds import KINDS, counts_in
from counterpoint.index.layout import SetLayout
from counterpoint.index.lexical_builder import terms_again
from counterpoint.index.manifest import Manifest, SegmentEntry
from counterpoint.index.manifest_copy import restore
from counterpoint.index.npy import NOTHING
from counterpoint.index.ours import mark, new_name, remove_temporary
from counterpoint.index.repair_plan import Plan, Plans
from counterpoint.index.salvage import open_damaged, opened_salvage
from counterpoint.index.settings import TextModel
from counterpoint.index.stream import DocumentStream
from counterpoint.index.token_pooling import factors_of

__all__ = ["Repaired", "remedies", "repair"]


@final
@dataclass
class Repaired:
    """The result of a repair.

    Attributes:
        files: damaged files that are repaired.
        encoded: number of documents that the model encoded again.
        dropped: number of documents that were dropped.
        left: files that are still damaged, with the remedy for each.
    """

    files: list[str] = field(default_factory=list)
    encoded: int = 0
    dropped: int = 0
    left: dict[str, str] = field(default_factory=dict)


def remedies(folder: Path, damaged: Mapping[str, str]) -> dict[str, str]:
    """The remedy for every file in `damaged`, which `Manifest.damaged` has returned."""
    return Plans(folder, Manifest.read(folder), damaged).remedies()


def repair(
    folder: Path,
    *,
    load: Callable[[], TextModel | None] | None = None,
    drop: Path | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> Repaired:
    """Repair an index as far as possible, in one commit; without anything to repair, commit nothing.

    Args:
        folder: of the index.
        load: loads the model, which encodes lost vectors again; None to leave these.
        drop: drop documents that cannot be saved otherwise, and list them in this file, as JSON Lines.
        on_progress: called with the number of documents encoded.

    Raises:
        ArtifactError: another process is writing the index, it cannot be written, the model is another one,
            or no document could be saved.
        ConfigError: `load` finds no model.
    """
    restored = restore(folder)
    with holding(folder) as manifest:
        done = _Repair(Plans(folder, manifest, manifest.damaged(folder)), load, drop, on_progress).run()
    if restored is not None:
        done.files.insert(0, restored)
    return done


@final
class _Repair:
    def __init__(
        self,
        plans: Plans,
        load: Callable[[], TextModel | None] | None,
        drop: Path | None,
        on_progress: Callable[[int], None],
    ):
        self._plans, self._folder, self._manifest = plans, plans.folder, plans.manifest
        self._load, self._drop, self._on_progress = load, drop, on_progress
        self._model: TextModel | None = None
        self._given_up: list[dict[str, object]] = []
        self._done = Repaired()

    def run(self) -> Repaired:
        """Repair every segment, list the dropped documents, and commit."""
        entries = [self._repaired(entry) for entry in self._manifest.segments]
        kept = [entry for entry in entries if entry is not None]
        if not kept:
            raise ArtifactError("no document could be saved; build the index again", path=self._folder)
        if self._drop is not None and self._given_up:
            lines = "".join(json.dumps(each) + "\n" for each in self._given_up)
            write_atomically(self._drop, lambda path: path.write_text(lines, encoding="utf-8"))
        if kept != list(self._manifest.segments):
            commit(self._folder, self._manifest, kept)
        told, left = self._plans.remedies(), {name for entry in kept for name in entry.folders()}
        for path in self._plans.damaged:
            if path.rpartition("/")[0] in left or path.startswith("models/"):
                self._done.left[path] = told[path]
            else:
                self._done.files.append(path)
        self._done.dropped = len(self._given_up)
        return self._done

    def _repaired(self, entry: SegmentEntry) -> SegmentEntry | None:
        """A segment after the repair; None if it is dropped."""
        plan, rows_lost = self._plans.plan(entry), self._plans.rows_of(entry) is None
        now, whole = entry, not plan.lost or (plan.texts and self._load is not None)
        if not whole and not rows_lost:
            saved = self._salvaged(entry, plan)
            if saved is not entry:
                return saved
        if whole and plan.damaged:
            now = self._made_again(entry, plan)
        if plan.texts and entry.lexical is not None and self._plans.damaged_in(entry.lexical):
            now = replace(now, lexical=self._terms(entry))
        if whole and not rows_lost and entry.deletes is not None and self._plans.damaged_in(entry.deletes):
            now = self._with_deletes(now)
        return now

    def _made_again(self, entry: SegmentEntry, plan: Plan) -> SegmentEntry:
        """A segment with all its documents: links to intact files, and the others recreated."""
        now, old = replace(entry, name=new_name()), self._folder / entry.path
        path, layouts = self._folder / now.path, entry.layouts(self._plans.layouts)
        mark(path)
        encoded = tuple(f"{each}." for each in plan.sets)
        for file in self._manifest.files_of(entry.path):
            if file != BLOCKS and not file.startswith(encoded):
                if file not in plan.damaged or file in plan.copies:
                    _link(plan.copies.get(file, old / file), path / file)
        for step in plan.steps:
            if not any(file.startswith(encoded) for file in step.makes):
                for file in step.makes:  # never write through a link
                    (path / file).unlink(missing_ok=True)
                step.make(path)
        return self._encoded(now, {x: layouts[x] for x in plan.sets}) if plan.sets else now

    def _encoded(self, entry: SegmentEntry, layouts: Mapping[str, SetLayout]) -> SegmentEntry:
        """A segment after encoding its texts again for some sets."""
        path, model = self._folder / entry.path, self._loaded()
        writers = {
            name: KINDS[layout.kind].write(path, name, layout, NOTHING) for name, layout in layouts.items()
        }
        try:
            database = Database(CheckedFolder(path), entry.documents)
            documents, before = database.read(range(entry.documents)), self._done.encoded
            pool = factors_of(layouts)
            stream = DocumentStream(
                documents, model, lambda done: self._on_progress(before + done), pool=pool
            )
            for batch, vectors in stream.batches():
                for name, writer in writers.items():
                    writer.append((vectors or {})[name], batch)
            database.close()
            for writer in writers.values():
                writer.close()
        finally:
            for writer in writers.values():
                writer.abandon()
        remove_temporary(path)
        self._done.encoded += entry.documents
        counted = {name: writer.vectors for name, writer in writers.items()}
        fitted = any(layout.fitted for layout in layouts.values())
        fit = {"fit": entry.name, "fitted": entry.documents} if fitted else {}
        return replace(entry, vectors={**entry.vectors, **counted}, **fit)

    def _salvaged(self, entry: SegmentEntry, plan: Plan) -> SegmentEntry | None:
        """A segment of the intact documents; the old one if the others may not be dropped."""
        model = self._loaded() if plan.sets and self._load is not None else None
        try:
            segment = open_damaged(self._folder, self._manifest, entry, plan.damaged)
        except ArtifactError:
            if plan.texts:  # the file is intact, but reading it failed
                raise
            return self._all_given_up(entry)
        if entry.deletes is not None:
            segment = segment.at(entry, self._deletes_of(entry))
        try:
            found = opened_salvage(segment, self._plans.layouts, (not plan.texts, plan.sets), model)
            if len(found.lost) and self._drop is None:
                return entry
            for row, name in found.names_lost():
                self._given_up.append({"id": name, "segment": entry.name, "row": row})
            self._done.encoded += len(found.rows) if found.encoded else 0
            return found.write(self._folder, self._manifest, self._model) if len(found.rows) else None
        finally:
            segment.database.close()

    def _all_given_up(self, entry: SegmentEntry) -> SegmentEntry | None:
        if self._drop is None:
            return entry
        rows = np.arange(entry.documents)
        if entry.deletes is not None:
            rows = np.flatnonzero(self._deletes_of(entry).live)
        self._given_up += [{"id": None, "segment": entry.name, "row": row} for row in rows.tolist()]
        return None

    def _deletes_of(self, entry: SegmentEntry) -> Deletes:
        folder, name = str(entry.deletes), self._plans.rows_of(entry)
        if name is None:
            raise ArtifactError("the list of deleted documents is lost", path=self._folder / folder)
        listed = {name: self._manifest.files_of(folder)[name]}
        files = CheckedFolder(self._folder / folder, listed)
        return Deletes(files, entry.documents, entry.deleted, rows=name)

    def _terms(self, entry: SegmentEntry) -> str:
        """Write BM25 of a segment with intact texts; return the folder."""
        where = entry.path
        listed = {DATABASE: self._manifest.files_of(where)[DATABASE]}
        database = Database(CheckedFolder(self._folder / where, listed), entry.documents)
        documents = database.read(range(entry.documents))
        name = terms_again(self._folder, self._manifest, documents, entry.home)
        database.close()
        return name

    def _with_deletes(self, entry: SegmentEntry) -> SegmentEntry:
        """An intact segment with its deletes written and counted again."""
        deletes, files = self._deletes_of(entry), CheckedFolder(self._folder / entry.path)
        counts = counts_in(files, entry.layouts(self._plans.layouts), entry.documents, deletes.rows)
        return with_deletes(self._folder, entry, deletes.live, counts)

    def _loaded(self) -> TextModel:
        if self._model is None:
            self._model = None if self._load is None else self._load()
            if self._model is None:
                raise ConfigError("encoding lost vectors needs the model that the index was built with")
            self._manifest.check_model(self._folder, self._model.fingerprint())
        return self._model


def _link(source: Path, target: Path) -> None:
    """Hard-link a file that never changes; copy it if the file system has no links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
