"""Render an answer as one self-contained HTML page, without scripts, fonts or external links."""

from __future__ import annotations

from typing import Any

from counterpoint.explain.marks import Mark, Piece, marks_of, pieces_of
from counterpoint.explain.rows import Row, cells_of, keywords_of, rows_of, share_of, weighted_parts
from counterpoint.pages import render
from counterpoint.search.hits import Answer, Hit

__all__ = ["html_page"]

# The Okabe-Ito palette: distinct hues, readable on white and on near-black.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

KEYWORDS = 200  # unmatched words shown, and dropped words shown


def html_page(answer: Answer) -> str:
    """An HTML page of the hits, with words coloured by their contribution to the score."""
    parts = list(dict.fromkeys(part for hit in answer.hits for part in hit.parts))
    colours = {part: PALETTE[i % len(PALETTE)] for i, part in enumerate(parts)}
    hits = [_hit(hit) for hit in answer.hits]
    strongest = max((mark.score for hit in hits for mark in hit["marks"]), default=0.0) or 1.0

    def strength(mark: Mark) -> int:
        """Opacity of a mark, in percent."""
        return round(15 + 50 * max(0.0, mark.score) / strongest)

    return render("explanation.html", answer=answer, colours=colours, hits=hits, strength=strength)


def _hit(hit: Hit) -> dict[str, Any]:
    rows = [] if hit.explanation is None else rows_of(hit.explanation)
    document, marks = hit.document, marks_of(rows)
    title = pieces_of(document, marks, "title") if document.title else [Piece(document.id, None)]
    weighted = weighted_parts(rows)
    return {
        "rank": hit.rank,
        "id": document.id,
        "score": hit.score,
        "whole": share_of(hit.score, hit.score),
        "marks": marks,
        "title": title,
        "text": pieces_of(document, marks, "text"),
        "bar": _bar(hit),
        "parts": hit.parts,
        "weighted": weighted,
        "rows": [_row(hit, row, weighted) for row in rows],
        "keywords": keywords_of(hit, KEYWORDS),
    }


def _row(hit: Hit, row: Row, weighted: list[str]) -> dict[str, Any]:
    return {
        "label": row.label,
        "matched": row.matched,
        "share": share_of(row.score, hit.score),
        "cells": cells_of(row, hit.parts, weighted),
    }


def _bar(hit: Hit) -> list[tuple[str, float, float]]:
    """The share of each part in percent, and its score; a negative contribution has width 0."""
    total = sum(max(0.0, score) for score in hit.parts.values()) or 1.0
    return [(part, 100 * max(0.0, score) / total, score) for part, score in hit.parts.items()]
