"""Answers as one self-contained page: no script, no font, no address outside the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from counterpoint.escapes import html_text as escape
from counterpoint.explain.rows import Keyword, Row, idf_text, keywords_of, rows_of, weighted_parts
from counterpoint.search.hits import Answer, Hit

__all__ = ["html_page"]

# Distinct in hue and readable on white and on near-black (the Okabe-Ito palette).
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

KEYWORDS = 200  # words without a match that are shown, and dropped ones

STYLE = MappingProxyType(
    {
        ":root": "color-scheme: light dark",
        "body": "font: 16px/1.55 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem",
        "h1": "font-size: 1.3rem; margin: 0",
        "h2": "font-size: 1.05rem; margin: 0 0 .3rem",
        ".quiet": "opacity: .7; font-size: .85rem",
        "article": "border-top: 1px solid #8885; padding: 1rem 0",
        "mark": "color: inherit; border-radius: .2em; padding: 0 .1em",
        ".bar": "display: flex; height: .5rem; border-radius: .25rem; overflow: hidden; margin: .4rem 0",
        "table": "border-collapse: collapse; font-size: .9rem; margin-top: .6rem",
        "th, td": "text-align: left; padding: .1rem .9rem .1rem 0; font-variant-numeric: tabular-nums",
        "th": "font-weight: normal; opacity: .7",
        ".n": "text-align: right",
        "summary": "cursor: pointer",
        ".word": "white-space: nowrap; margin-right: .6em",
        ".word s": "opacity: .5",
    }
)


def html_page(answer: Answer) -> str:
    """A page with the hits, their words coloured by what they added to the score."""
    parts = list(dict.fromkeys(part for hit in answer.hits for part in hit.parts))
    colours = {part: PALETTE[i % len(PALETTE)] for i, part in enumerate(parts)}
    style = "\n".join(f"{selector} {{ {rules} }}" for selector, rules in STYLE.items())
    legend = " ".join(f'<span style="color:{colours[part]}">■</span> {escape(part)}' for part in parts)
    hits = "\n".join(_hit(hit, colours) for hit in answer.hits) or "<p>No document matches.</p>"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(answer.query)} – Counterpoint</title><style>{style}</style></head><body>
<h1>{escape(answer.query)}</h1>
<p class="quiet">workflow {escape(answer.workflow)} · {len(answer.hits)} hits · {legend}</p>
{hits}
</body></html>
"""


def _hit(hit: Hit, colours: Mapping[str, str]) -> str:
    rows = [] if hit.explanation is None else rows_of(hit.explanation)
    document = hit.document
    table = _table(hit, rows, colours) if rows else ""
    table += "".join(_keywords(part, words, colours) for part, words in keywords_of(hit, KEYWORDS).items())
    return f"""<article><h2>{hit.rank}. {escape(document.title or document.id)}</h2>
<div class="quiet">{escape(document.id)} · score {hit.score:.4f}</div>{_bar(hit, colours)}
<div>{_text(document.full_text, rows, colours)}</div>{table}</article>"""


def _bar(hit: Hit, colours: Mapping[str, str]) -> str:
    """Shares of the parts; a part that took away from the score has no width."""
    gains = {part: max(0.0, score) for part, score in hit.parts.items()}
    total = sum(gains.values()) or 1.0
    pieces = "".join(
        f'<div style="width:{gain / total:.2%};background:{colours[part]}" '
        f'title="{escape(part)} {hit.parts[part]:.4f}"></div>'
        for part, gain in gains.items()
    )
    return f'<div class="bar">{pieces}</div>'


def _text(text: str, rows: Sequence[Row], colours: Mapping[str, str]) -> str:
    """The document's text, each matched word shaded by the largest thing it added."""
    marks: dict[tuple[int, int], tuple[float, str, str]] = {}
    for row in rows:
        for part, span in row.matches.items():
            mark = (row.scores.get(part, 0.0), part, row.label)
            marks[span.start, span.end] = max(marks.get((span.start, span.end), mark), mark)
    strongest = max((score for score, _, _ in marks.values()), default=0.0) or 1.0
    pieces, at = [], 0
    for (start, end), (score, part, query) in sorted(marks.items()):
        if start < at:  # a word inside a word that is already marked
            continue
        strength = round(15 + 50 * max(0.0, score) / strongest)
        pieces.append(escape(text[at:start]))
        pieces.append(
            f'<mark style="background:color-mix(in srgb, {colours[part]} {strength}%, transparent)" '
            f'title="{escape(query)}: {escape(part)} {score:.4f}">{escape(text[start:end])}</mark>'
        )
        at = end
    return "".join(pieces) + escape(text[at:])


def _keywords(part: str, keywords: Sequence[Keyword], colours: Mapping[str, str]) -> str:
    """The document's words by importance: matched ones with what they added, dropped ones struck through."""
    pieces = []
    for keyword in keywords:
        text, importance = escape(keyword.word.span.text), keyword.word.importance
        if importance is None:
            shown = f'<s title="dropped by the gate">{text}</s>'
        elif keyword.score is None:
            shown = f'<span title="importance {importance:.4f}">{text}</span>'
        else:
            shown = (
                f'<b style="color:{colours[part]}" title="importance {importance:.4f}">{text}</b> '
                f"<small>+{keyword.score:.4f}</small>"
            )
        pieces.append(f'<span class="word">{shown}</span>')
    words = " ".join(pieces)
    return (
        f'<details open><summary class="quiet">{escape(part)} by importance</summary>'
        f"<div>{words}</div></details>"
    )


def _table(hit: Hit, rows: Sequence[Row], colours: Mapping[str, str]) -> str:
    parts = list(hit.parts)
    weighted = weighted_parts(rows)
    head = "".join(f'<th class="n" style="color:{colours[part]}">{escape(part)}</th>' for part in parts)
    head += "".join(f'<th class="n">idf ({escape(part)})</th>' for part in weighted)
    body = "".join(
        f"<tr><td>{escape(row.label)}</td><td>{escape(row.matched)}</td>"
        f'<td class="n">{row.score / hit.score if hit.score else 0:.0%}</td>'
        + "".join(
            f'<td class="n">{row.scores[p]:.4f}</td>' if p in row.scores else "<td></td>" for p in parts
        )
        + "".join(f'<td class="n">{idf_text(row, part)}</td>' for part in weighted)
        + "</tr>"
        for row in rows
    )
    totals = "".join(f'<td class="n">{hit.parts[part]:.4f}</td>' for part in parts)
    body += f'<tr class="quiet"><td>all</td><td></td><td class="n">100%</td>{totals}</tr>'
    return (
        f'<details open><summary class="quiet">why</summary><table><tr><th>query</th><th>matched</th>'
        f'<th class="n">share</th>{head}</tr>{body}</table></details>'
    )
