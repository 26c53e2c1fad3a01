"""Convert marked-up texts to plain text with the places of headings: Markdown, HTML, reStructuredText."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["PlainText", "from_html", "from_markdown", "from_rst"]

FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?=[\w-]+[ \t]*:)(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*[\"']?(.*?)[\"']?[ \t]*$", re.MULTILINE)
RST_HEADING = re.compile(
    r"^(?P<text>\S[^\n]{0,199})\n(?P<line>([=\-~^\"'`#*+.:_])\3{2,})[ \t]*$", re.MULTILINE
)

DROPPED = frozenset(["script", "style", "nav", "template", "noscript", "svg", "head", "title"])
BULLET = "- "
GAPS = "", " ", "\n", "\n\n"
BLOCKS = frozenset(
    "address article aside blockquote body caption dd details div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr html li main ol p pre section summary table tr ul".split()
)
HEADINGS = frozenset(["h1", "h2", "h3", "h4", "h5", "h6"])


class PlainText(NamedTuple):
    """A text without its markup.

    Attributes:
        text: what a reader sees.
        title: the document's title, if it names one.
        headings: position in `text` and words of each heading, in order.
    """

    text: str
    title: str = ""
    headings: Sequence[tuple[int, str]] = ()


class _Builder:
    """Collects pieces and the gaps between them (space, line end, blank line); the widest gap counts."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.length = 0
        self.headings: list[tuple[int, str]] = []
        self.gap = ""

    def add(self, text: str) -> None:
        if text:
            gap = self.gap if self.length else ""
            self.pieces += [gap, text]
            self.length += len(gap) + len(text)
            self.gap = ""

    def item(self) -> None:
        self.part("\n")
        self.add(BULLET)

    def part(self, gap: str) -> None:
        """Separate the next piece from the previous one by at least this gap."""
        after_bullet = self.pieces[-1:] == [BULLET]
        self.gap = self.gap if after_bullet else max(self.gap, gap, key=GAPS.index)

    def heading(self, text: str) -> None:
        """Append a heading as its own block and record its place."""
        if text := " ".join(text.split()):
            self.part("\n\n")
            self.headings.append((self.length + (len(self.gap) if self.length else 0), text))
            self.add(text)
            self.part("\n\n")

    def finish(self, title: str = "") -> PlainText:
        """The result; the first heading is the title unless another is given."""
        first = self.headings[0][1] if self.headings else ""
        return PlainText("".join(self.pieces), title or first, self.headings)


def from_markdown(source: str) -> PlainText:
    """Convert CommonMark with tables; of a front matter block, only the title is kept."""
    from markdown_it import MarkdownIt

    front = FRONT_MATTER.match(source)
    title = FRONT_TITLE.search(front[1]) if front else None
    tokens = MarkdownIt("commonmark").enable("table").parse(source[front.end() :] if front else source)
    builder = _Builder()
    in_heading = False
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            in_heading = token.type == "heading_open"
        elif token.type == "inline":
            text = _inline(token.children or [])
            builder.heading(text) if in_heading else builder.add(text)
        elif token.type in ("fence", "code_block"):
            builder.add(token.content.rstrip("\n"))
            builder.part("\n\n")
        elif token.type == "html_block":
            builder.add(from_html(token.content).text)
            builder.part("\n\n")
        elif token.type in ("td_close", "th_close"):
            builder.part(" ")
        elif token.type == "list_item_open":
            builder.item()
        elif token.type in ("tr_close", "thead_close", "list_item_close") or (
            token.type == "paragraph_close" and token.hidden
        ):
            builder.part("\n")  # hidden: a paragraph of a list without blank lines
        elif token.type.endswith("_close") and token.block:
            builder.part("\n\n")
    return builder.finish(title[1] if title else "")


def _inline(tokens: list) -> str:
    """The text of a line: the words of links, the description of images, nothing of HTML tags."""
    breaks = {"softbreak": "\n", "hardbreak": "\n", "html_inline": ""}
    return "".join(breaks[token.type] if token.type in breaks else token.content for token in tokens)


def from_html(source: str) -> PlainText:
    """The visible text of a page without scripts, styles and navigation; each block is a paragraph."""
    from bs4 import BeautifulSoup, MarkupResemblesLocatorWarning, XMLParsedAsHTMLWarning
    from bs4.element import Tag

    with warnings.catch_warnings():  # XHTML is read as HTML, and a single word as text
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)
        warnings.simplefilter("ignore", MarkupResemblesLocatorWarning)
        soup = BeautifulSoup(source, "html.parser")
    title = " ".join(soup.title.get_text().split()) if soup.title else ""
    builder = _Builder()
    pre = 0
    for event, node in _events(soup):
        if not isinstance(node, Tag):
            _add_string(builder, str(node), as_it_is=pre > 0)
        elif node.name in HEADINGS:
            builder.heading(node.get_text(" "))
        elif node.name == "li" and event == "start":
            builder.item()
        elif node.name in BLOCKS:
            builder.part("\n" if node.name in ("li", "tr") else "\n\n")
            pre += (node.name == "pre") * (1 if event == "start" else -1)
        elif node.name in ("br", "td", "th"):
            builder.part("\n" if node.name == "br" else " ")
    return builder.finish(title)


def _events(soup) -> Iterator[tuple[str, object]]:
    """Yield start and end of each element and each string, without recursion, because pages nest deeply."""
    from bs4.element import NavigableString, PreformattedString, Tag

    waiting = [iter(soup.contents)]
    opened = []
    while waiting:
        if (node := next(waiting[-1], None)) is None:
            waiting.pop()
            if opened:
                yield "end", opened.pop()
        elif isinstance(node, Tag):
            if node.name not in DROPPED:
                yield "start", node
                if node.name not in HEADINGS:
                    waiting.append(iter(node.contents))
                    opened.append(node)
        elif isinstance(node, NavigableString) and not isinstance(node, PreformattedString):  # no comments
            yield "text", node


def _add_string(builder: _Builder, text: str, *, as_it_is: bool) -> None:
    if as_it_is:
        builder.add(text.lstrip("\n") if builder.gap else text)
        return
    if text[:1].isspace():
        builder.part(" ")
    builder.add(" ".join(text.split()))
    if text[-1:].isspace():
        builder.part(" ")


def from_rst(source: str) -> PlainText:
    """The text unchanged; headings are lines that are underlined to at least their length."""
    headings = [
        (match.start(), match["text"].strip())
        for match in RST_HEADING.finditer(source)
        if len(match["line"]) >= len(match["text"].rstrip())
    ]
    return PlainText(source, headings[0][1] if headings else "", headings)
