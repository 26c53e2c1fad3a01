"""Write a stream of documents into a segment and postings; resume an interrupted build."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast, final

from counterpoint.errors import ConfigError, DataError
from counterpoint.index import progress as progress_module
from counterpoint.index.auto_codec import SAMPLE, choose_codec
from counterpoint.index.lexical_builder import LexicalBuilder
from counterpoint.index.manifest import SegmentEntry
from counterpoint.index.progress import Progress
from counterpoint.index.segment import SegmentWriter
from counterpoint.index.settings import IndexSettings, TextModel
from counterpoint.index.stream import Batch, DocumentStream
from counterpoint.types import Ragged

__all__ = ["Work", "Written", "write_documents"]


@final
@dataclass(frozen=True)
class Work:
    """What to write; `before` is the progress of an interrupted build with the same plan."""

    stream: DocumentStream
    model: TextModel | None
    settings: IndexSettings
    before: Progress | None = None


@final
@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        entry: the segment.
        settings: those used, with the chosen codec.
        auto: how the codec was chosen, see `AutoCodec`; None if it was given.
    """

    entry: SegmentEntry
    settings: IndexSettings
    auto: dict[str, Any] | None


def write_documents(work: Work, segment: Path, lexical: Path | None) -> Written:
    """Write all documents into a segment's folder, and their terms into another.

    Raises:
        ArtifactError: the interrupted build had another plan, or its files are damaged.
        DataError: there are no documents, or not those of the interrupted build.
        ConfigError: a gate that keeps no row.
    """
    before, batches = work.before, work.stream.batches(work.before)
    settings, auto, batches = _with_codec(work, batches)
    plan = _plan(work, settings, auto)
    if before is not None:
        before.check_plan(plan, segment.parents[1])
    most: list[str] = []  # the batch with the most text, for the message if the gate keeps nothing
    terms = None if settings.lexical is None or lexical is None else LexicalBuilder(settings.lexical, lexical)
    with SegmentWriter(segment, settings.layouts(work.model), settings.metadata, before) as writer:
        record = _Record(work, plan, writer)
        for batch, vectors in batches:
            texts = [document.full_text for document in batch]
            most = max(most, texts, key=lambda some: sum(map(len, some)))
            if vectors is None:
                writer.restore(batch)
            else:
                writer.append(batch, vectors)
                record.when_due()
            if terms is not None:
                for text in texts:
                    terms.add(text)
        _check_all_there(writer, before)
        record.at_the_end()
    if work.model is not None and settings.gate is not None:
        _check_gate(work.model, settings.gate, writer, most)
    if terms is not None and lexical is not None:
        terms.write(lexical)
    return Written(SegmentEntry(segment.name, writer.documents, writer.vectors), settings, auto)


def _plan(work: Work, settings: IndexSettings, auto: dict[str, Any] | None) -> dict[str, Any]:
    """Everything that determines the vectors and how they are stored."""
    from counterpoint.version import version

    return {
        "model": None if work.model is None else work.model.fingerprint(),
        "counterpoint": version(),
        "codec": work.settings.codec,
        "metadata": dict(settings.metadata),
        "layouts": {name: layout.to_dict() for name, layout in settings.layouts(work.model).items()},
        "auto": auto,
    }


def _with_codec(
    work: Work, batches: Iterator[Batch]
) -> tuple[IndexSettings, dict[str, Any] | None, Iterable[Batch]]:
    """Settings with a chosen codec, how it was chosen, and all batches, including those read for it."""
    settings, before = work.settings, work.before
    if settings.codec != "auto" or work.model is None:
        return settings, None, batches
    if before is not None:
        auto = before.plan.get("auto")
        return (settings if auto is None else replace(settings, codec=auto["codec"])), auto, batches
    first: list[Batch] = []
    documents = []
    while len(documents) < SAMPLE and (batch := next(batches, None)) is not None:
        first.append(batch)
        documents += batch[0]
    made = [cast("dict[str, Ragged]", vectors) for _, vectors in first]
    vectors = {name: Ragged.concatenate([each[name] for each in made]) for name in (made[0] if made else ())}
    found = choose_codec(documents, vectors, work.model, settings)
    return replace(settings, codec=found.codec), asdict(found), chain(first, batches)


@final
class _Record:
    """Records the progress of a build with a model, so that it can be resumed."""

    def __init__(self, work: Work, plan: dict[str, Any], writer: SegmentWriter):
        self._work, self._plan, self._writer = work, plan, writer
        self._began = self._last = time.monotonic()

    def when_due(self) -> None:
        """Write a record after a batch, if the last one is old enough."""
        if time.monotonic() - self._last >= progress_module.EVERY:
            self._write()

    def at_the_end(self) -> None:
        """Write a record before the files are finished, which may take long."""
        if time.monotonic() - self._began >= progress_module.EVERY:
            self._write()

    def _write(self) -> None:
        if self._work.model is None:
            return  # nothing was encoded
        writer, longer = self._writer, self._work.stream.longer
        written = Progress(self._plan, writer.documents, longer, writer.vectors, writer.sync())
        written.write(writer.folder)
        self._last = time.monotonic()


def _check_all_there(writer: SegmentWriter, before: Progress | None) -> None:
    if before is not None and writer.documents < before.documents:
        raise DataError(
            f"--resume: the source has {writer.documents:,} documents, and {before.documents:,} were encoded "
            "before; give the same source, or build from the start without --resume"
        )
    if writer.documents == 0:
        raise DataError("the source has no documents; there is nothing to index")


def _check_gate(model: TextModel, gate: float, writer: SegmentWriter, texts: Sequence[str]) -> None:
    """Refuse a gate that keeps no row of any document, as such an index finds nothing."""
    for name, rows in writer.vectors.items():
        if rows or not any(model.spans(texts, name, "document")):
            continue
        largest = model.gate_weights(texts, name).values.max()
        raise ConfigError(
            f"gate {gate:g} keeps no row of {name!r} in any of {writer.documents:,} documents; the largest "
            f"value of the gate in {len(texts):,} of them is {largest:.4g}. Choose a gate below that"
        )
