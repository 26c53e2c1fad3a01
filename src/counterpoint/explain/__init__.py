"""Show explanations on a terminal and as an HTML page. All numbers come from the scorers."""

from counterpoint.explain.html import html_page
from counterpoint.explain.rows import Keyword, Row, keywords_of, rows_of
from counterpoint.explain.terminal import Explained, answer_console, render_answer

__all__ = [
    "Explained",
    "Keyword",
    "Row",
    "answer_console",
    "html_page",
    "keywords_of",
    "render_answer",
    "rows_of",
]
