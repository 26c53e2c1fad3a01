"""Answers on a terminal. Rich would obey controls and markup in plain strings: all text is escaped `Text`."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from counterpoint.escapes import escaped
from counterpoint.explain.rows import Keyword, Row, idf_text, keywords_of, rows_of, weighted_parts
from counterpoint.search.hits import Answer, Hit

__all__ = ["render_answer"]

SNIPPET = 320  # characters of a document that are shown
KEYWORDS = 24  # words without a match that are shown, and dropped ones


def render_answer(answer: Answer, console: Console, *, explained: bool) -> None:
    """Print the hits, each with its explanation if asked (and if it has one)."""
    if not answer.hits:
        console.print(Text(f"No document matches {answer.query!r} in the workflow {answer.workflow!r}."))
    for hit in answer.hits:
        console.print(_hit(hit, explained))
        console.print()


def _hit(hit: Hit, explained: bool) -> RenderableType:
    document = hit.document
    head = Text.assemble(
        (f"{hit.rank}. ", "bold"),
        (escaped(document.title or document.id), "bold"),
        (f"  {hit.score:.4f}", "green"),
    )
    if document.title and document.title != document.id:
        head.append(f"  [{escaped(document.id)}]", "dim")
    rows = [] if hit.explanation is None else rows_of(hit.explanation)
    body: list[RenderableType] = [head, Text(escaped(_snippet(hit, rows)))]
    if rows and explained:
        body.append(_table(hit, rows))
        body += [_keywords(name, words) for name, words in keywords_of(hit, KEYWORDS).items()]
    return Group(*body)


def _keywords(part: str, keywords: list[Keyword]) -> Text:
    """The document's words, the most important first, matched ones with what they added."""
    text = Text(f"{escaped(part)} by importance:", "dim")
    for keyword in keywords:
        word = keyword.word
        if word.importance is None:
            continue
        text.append(" ")
        style = "bold cyan" if keyword.score is not None else "not dim"
        text.append(f"{escaped(word.span.text)} {word.importance:.2f}", style)
        if keyword.score is not None:
            text.append(f" (+{keyword.score:.4f})", "green not dim")
    dropped = [escaped(keyword.word.span.text) for keyword in keywords if keyword.word.importance is None]
    if dropped:
        text.append(f"\n{escaped(part)} dropped: {' '.join(dropped)}")
    return text


def _table(hit: Hit, rows: list[Row]) -> Table:
    parts = list(hit.parts)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("query")
    table.add_column("matched", overflow="fold")
    table.add_column("share", justify="right")
    weighted = weighted_parts(rows)
    for part in parts:
        table.add_column(Text(escaped(part)), justify="right")
    for part in weighted:
        table.add_column(Text(escaped(f"idf ({part})")), justify="right")
    for row in rows:
        share = row.score / hit.score if hit.score else 0.0
        cells = [f"{row.scores[part]:.4f}" if part in row.scores else "" for part in parts]
        cells += [idf_text(row, part) for part in weighted]
        # Not plain strings: an id with square brackets would be read as rich's markup.
        table.add_row(Text(escaped(row.label)), Text(escaped(row.matched) or "–"), f"{share:.0%}", *cells)
    totals = [f"{hit.parts[part]:.4f}" for part in parts]
    table.add_row(Text("all", "dim"), "", "100%", *totals, style="dim")
    return table


def _snippet(hit: Hit, rows: list[Row]) -> str:
    """The stretch of the text that holds most of the score."""
    text = hit.document.full_text
    if len(text) <= SNIPPET:
        return " ".join(text.split())
    marks = [
        (span.start, score)
        for row in rows
        for part, span in row.matches.items()
        if (score := row.scores.get(part, 0.0)) > 0
    ]
    starts = [max(0, at - 40) for at, _ in marks] or [0]
    start = max(starts, key=lambda s: sum(score for at, score in marks if s <= at < s + SNIPPET))
    start = text.rfind(" ", 0, start) + 1 if start else 0
    shown = " ".join(text[start : start + SNIPPET].split())
    return f"{'… ' if start else ''}{shown}{' …' if start + SNIPPET < len(text) else ''}"
