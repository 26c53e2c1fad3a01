"""`counterpoint add` and `counterpoint replace`: add documents to an existing index."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from counterpoint.cli import options as shared
from counterpoint.cli.console import Json, emit, note
from counterpoint.cli.dry_index import told
from counterpoint.cli.progress import loading, progress
from counterpoint.library.options import AddOptions

__all__ = ["add", "replace"]

NONE_REPLACED = (
    "no document was replaced, as the index had none of these ids; if it was built with --id, --title or "
    "--text, give them again"
)


def _command(replaces: bool, line: str) -> Callable[..., None]:
    """Make a command that adds documents; `add` and `replace` have the same options."""

    def command(
        index: shared.IndexFolder,
        source: shared.Source,
        passage_words: shared.PassageWords = None,
        id: shared.IdField = None,
        title: shared.TitleField = None,
        text: shared.TextField = None,
        include: shared.Include = None,
        exclude: shared.Exclude = None,
        gitignore: shared.Gitignore = True,
        lenient: shared.Lenient = None,
        compact: shared.Compact = True,
        model: shared.ModelName = None,
        json: Json = False,
    ) -> None:
        options = AddOptions(
            replace=replaces, passage_words=passage_words, lenient=lenient, id=id, title=title, text=text,
            include=include, exclude=exclude, gitignore=gitignore,
        )  # fmt: skip
        _add(index, source, options, model, compact, json)

    command.__doc__ = line
    return command


add = _command(
    False,
    "Add the documents of SOURCE to INDEX, all in one commit.\n\n"
    "They are cut into passages as INDEX was, unless --passage-words is given.",
)
replace = _command(
    True,
    "Add the documents of SOURCE to INDEX; replace documents that have the same ids.\n\n"
    "They are cut into passages as INDEX was, unless --passage-words is given.",
)


def _add(index: Path, source: str, options: AddOptions, model: str | None, compact: bool, json: bool) -> None:
    from counterpoint.data.policy import counted
    from counterpoint.index.disk_usage import counted_text, units_of
    from counterpoint.library import OpenIndex
    from counterpoint.library.changes import reading_for

    with OpenIndex(index, model) as opened:
        reading = reading_for(opened.index, source, options)
        note(*reading.decided)
        if opened.index.layouts:
            with loading((opened.index.manifest.model or {}).get("name")):
                _ = opened.model  # load it here, so that a terminal shows a note
        with (
            progress("adding", units_of(opened.index.disk_usage()), reading.size) as update,
            opened.writing(update, compact=compact) as changes,
        ):
            added = changes.read(reading, replace=options.replace)
        note(reading.report.summary(), *told(reading.report, reading.decided))
        replaced, new = changes.replaced, reading.report.documents - changes.replaced
        if options.replace and new and not replaced:
            note(NONE_REPLACED)
        info = opened.index.disk_usage()
        result = {
            "index": str(index), "added": added, "replaced": replaced, "new": new,
            "documents": info["documents"], "passages": info["passages"], "deleted": info["deleted"],
            "segments": info["segments"], "read": asdict(reading.report),
        }  # fmt: skip
        written = counted(added, units_of(info).removesuffix("s"))
        what = f"{written} added"
        if options.replace:
            cut = f" ({written})" if added != replaced + new else ""
            what = f"{counted(replaced, 'document')} replaced, {new:,} new{cut}"
        emit(result, lambda: f"{what}; the index now has {counted_text(info)}", json)
