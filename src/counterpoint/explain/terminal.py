"""Answers on a terminal. All text is escaped `Text`: rich obeys controls and markup in plain strings."""

from __future__ import annotations

from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterpoint.escapes import escaped
from counterpoint.explain.marks import Mark, marks_of, pieces_of
from counterpoint.explain.rows import Keyword, Row, cells_of, keywords_of, rows_of, share_of, weighted_parts
from counterpoint.explain.snippet import snippet
from counterpoint.search.hits import Answer, Hit

__all__ = ["Explained", "answer_console", "render_answer"]

Explained = Literal["no", "words", "full"]
"""How much of an explanation is shown: nothing, one row per query word, or feedback documents as well."""

SNIPPET = 320  # characters of a document shown at most
LINES = 3  # lines of a terminal that they may take
MATCHED = "bold cyan"
UNWRAPPED = 100_000  # columns of a pipe, whose readers expect whole lines
KEYWORDS = 24  # unmatched words shown, and dropped words shown


def answer_console() -> Console:
    """Standard output: as wide as the terminal, and without added line breaks in a pipe."""
    console = Console(highlight=False, soft_wrap=False)
    return console if console.is_terminal else Console(highlight=False, width=UNWRAPPED)


def render_answer(answer: Answer, console: Console, *, explained: Explained = "no") -> None:
    """Print the hits, each with its explanation if asked for and present."""
    if not answer.hits:
        console.print(Text(f"No document matches {answer.query!r} in the workflow {answer.workflow!r}."))
    elif explained != "no" and answer.weights:
        shares = (f"{escaped(part)} {share:.0%}" for part, share in answer.weights.items())
        console.print(Text(f"weights for this query: {', '.join(shares)}\n", "dim"))
    for hit in answer.hits:
        console.print(_hit(hit, explained, console))
        console.print()


def _hit(hit: Hit, explained: Explained, console: Console) -> RenderableType:
    rows = [] if hit.explanation is None else rows_of(hit.explanation, full=explained == "full")
    marks = marks_of(rows)
    shown = Text()
    for piece in snippet(hit.document, marks, min(SNIPPET, LINES * console.width)):
        shown.append(escaped(piece.text), MATCHED if piece.matched else None)
    body: list[RenderableType] = [_head(hit, marks)]
    if shown:
        body.append(shown)
    if rows and explained != "no":
        body.append(_fitting(hit, rows, console))
        body += [_keywords(name, words) for name, words in keywords_of(hit, KEYWORDS).items()]
    return Group(*body)


def _head(hit: Hit, marks: list[Mark]) -> Text:
    document = hit.document
    head = Text(f"{hit.rank}. ", "bold")
    if not document.title:
        head.append(escaped(document.id), "bold")
    for piece in pieces_of(document, marks, "title") if document.title else ():
        matched = piece.mark is not None and piece.mark.score > 0
        head.append(escaped(piece.text), MATCHED if matched else "bold")
    head.append(f"  {hit.score:.4f}", "not bold green")
    if document.title and document.title != document.id:
        head.append(f"  [{escaped(document.id)}]", "not bold dim")
    return head


def _keywords(part: str, keywords: list[Keyword]) -> Text:
    text = Text(f"{escaped(part)} by importance:", "dim")
    for keyword in keywords:
        word = keyword.word
        if word.importance is None:
            continue
        text.append(" ")
        style = MATCHED if keyword.score is not None else "not dim"
        text.append(f"{escaped(word.span.text)} {word.importance:.2f}", style)
        if keyword.score is not None:
            text.append(f" (+{keyword.score:.4f})", "green not dim")
    dropped = [escaped(keyword.word.span.text) for keyword in keywords if keyword.word.importance is None]
    if dropped:
        text.append(f"\n{escaped(part)} dropped: {' '.join(dropped)}")
    return text


def _fitting(hit: Hit, rows: list[Row], console: Console) -> Table:
    """The widest table that fits: with idf, without it, or with shares only. No number is cut."""
    parts = list(hit.parts)
    tables = (_table(hit, rows, *columns) for columns in ((parts, weighted_parts(rows)), (parts, [])))
    room = console.options.update(width=UNWRAPPED)
    fitting = (table for table in tables if console.measure(table, options=room).maximum <= console.width)
    return next(fitting, None) or _table(hit, rows, [], [])


def _table(hit: Hit, rows: list[Row], parts: list[str], weighted: list[str]) -> Table:
    """For each query word, its match, its share, and its contribution to each of `parts`."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("query", overflow="fold")
    table.add_column("matched", overflow="fold")
    table.add_column("share", justify="right", no_wrap=True)
    for name in (*parts, *(f"idf ({part})" for part in weighted)):
        table.add_column(Text(escaped(name)), justify="right", no_wrap=True)
    for row in rows:
        share = share_of(row.score, hit.score)
        cells = cells_of(row, parts, weighted)
        # Not plain strings: an id with square brackets would be read as rich's markup.
        table.add_row(Text(escaped(row.label)), Text(escaped(row.matched) or "–"), share, *cells)
    totals = [f"{hit.parts[part]:.4f}" for part in parts]
    table.add_row(Text("all", "dim"), "", share_of(hit.score, hit.score), *totals, style="dim")
    return table
