"""`counterpoint index --dry-run`, and the notes of index commands on what they read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from counterpoint.cli.console import emit
from counterpoint.cli.progress import progress
from counterpoint.escapes import escaped
from counterpoint.library.options import BuildOptions

if TYPE_CHECKING:
    from counterpoint.data import ReadReport
    from counterpoint.library import Survey

__all__ = ["tell", "told"]

LISTED = 10  # lines of each list; --json has more
SHOWN = 70  # characters of a text


def tell(source: str, chosen: BuildOptions, json: bool) -> None:
    """Read a source; print its contents, what was left out and why, and the decisions made about it."""
    from counterpoint.library import survey

    asked = {name: getattr(chosen, name) for name in BuildOptions.__dataclass_fields__}
    with progress("reading", "documents") as update:
        found = survey(source, on_progress=update, **asked)
    result: dict[str, Any] = {
        "source": source,
        "documents": found.report.documents,
        "passages": found.report.passages,
        "decided": list(found.decided),
        "first": [
            {"id": each.id, "title": each.title, "text": each.text[:SHOWN], "metadata": dict(each.metadata)}
            for each in found.first
        ],
        "queries": found.queries,
        "judged": dict(found.judged),
        "read": asdict(found.report),
        "written": False,
    }
    emit(result, lambda: "\n".join(_lines(source, found)), json)


def told(report: ReadReport, before: Iterable[str] = ()) -> list[str]:
    """Lines with the decisions about files, what could not be read, and metadata that no document has.

    Args:
        report: of all that was read.
        before: decisions that were printed already.
    """
    decisions = [line for line in report.decisions if line not in set(before)]
    unread = [f"not read: {line}" for line in report.not_read]
    more = report.unreadable - len(report.not_read)
    return [*_few(decisions), *_few(unread, more), *report.notes, *report.lacks()]


def _lines(source: str, found: Survey) -> Iterator[str]:
    report, decided = found.report, found.decided
    yield escaped(f"{source}: {report.size()}; nothing is written")
    if report.kinds:
        yield escaped("files: " + _counts(report.kinds))
    if report.encodings:
        yield escaped("not UTF-8: " + _counts(report.encodings))
    if report.other_files:
        yield escaped("unsupported file types: " + _counts(report.other_files))
    if report.left_out:
        yield escaped("left out: " + _counts(report.left_out))
    yield escaped(report.summary())
    yield from map(escaped, decided)
    yield from map(escaped, told(report, decided))
    if found.queries or found.judged:
        splits = [f"{split} ({number:,} judged)" for split, number in found.judged.items()]
        yield escaped(f"queries: {found.queries:,}; judgements: {', '.join(splits) or 'none'}")
    for document in found.first:
        text = " ".join(document.text.split())
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
        yield escaped(f"  {document.id} | {document.title} | {shown}")


def _counts(counts: dict[str, int]) -> str:
    often = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{number:,} {name}" for name, number in often)


def _few(lines: list[str], more: int = 0) -> list[str]:
    more += max(0, len(lines) - LISTED)
    return lines[:LISTED] + ([f"… and {more:,} more; --json lists them"] if more else [])
