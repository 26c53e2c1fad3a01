"""Print how long the sentences of every page are, and where words stand that we do not use.

    python scripts/prose.py [--longest N] [FILE…]

A file is a page, or a Python file, in which only unwanted words are looked for: in comments, docstrings and
other texts. Without names, it reads README.md, CONTRIBUTING.md, CHANGELOG.md, docs/ and all Python files.
Of a page, tables, code blocks and headings are not counted. Code in a sentence counts as one word. The exit
code is 1 if a page has more than 25 words per sentence, all pages together more than 20, or a word of `WORDS`
is found.
"""

import argparse
import io
import re
import statistics
import sys
import tokenize
from pathlib import Path

from bs4 import BeautifulSoup
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[1]
A_PAGE, ALL_PAGES = 25, 20  # the most words a sentence has on average
# Words that made readers stop, and what to write in their place.
WORDS = {
    r"\bst(?:ands?|ood|anding) in\b": "replaces, is used in place of",
    r"\bbeside\b": "next to, with, as well as",
    r"(?<!left )(?<!stays )\bbehind\b": "after, of, under",
    r"\bby the like of\b": "similar documents",
    r"\bwhat is to be\b": "say which thing",
    r"\bwho knows\b": "if you know",
    r"\ba (?:line|vector|file|row) an? (?:query|text|document|line|run|topic)\b": "one … per …",
    r"\bmaterial\b": "training data",
}
TEXT = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}  # Python 3.12 splits f-strings
CODE_IN = ("src", "benchmarks", "scripts", "tests")
CODE = re.compile(r"`[^`]*`")
SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9`⌘])")
SHORT_FORMS = re.compile(r"\b(e\.g|i\.e|vs|cf|et al|eq|no|p|approx)\.", re.IGNORECASE)


def named_or_all(named):
    """The pages and the Python files that are read, in order."""
    if named:
        files = [Path(name) for name in named]
        return [f for f in files if f.suffix != ".py"], [f for f in files if f.suffix == ".py"]
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    files = sorted(path for folder in CODE_IN for path in (ROOT / folder).rglob("*.py"))
    return pages + sorted((ROOT / "docs").glob("*.md")), [f for f in files if f != Path(__file__)]


def sentences(page):
    """The sentences of a page's paragraphs and list items."""
    html = MarkdownIt("commonmark").enable("table").render(page.read_text(encoding="utf-8"))
    soup = BeautifulSoup(html, "html.parser")
    for element in soup(["pre", "table", "h1", "h2", "h3", "h4", "h5", "script", "style"]):
        element.decompose()
    for code in soup("code"):
        code.replace_with("⌘")
    for nested in soup.select("li ul, li ol"):
        nested.parent.insert_after(nested.extract())
    for block in soup(["p", "li", "dd"]):
        if block.name == "li" and block.find("p"):
            continue
        text = SHORT_FORMS.sub(r"\1", " ".join(block.get_text(" ").split()))
        yield from (s for s in SENTENCE.split(text) if re.search(r"\w", s))


def length(sentence):
    """How many words a sentence has."""
    return len(re.findall(r"[\w⌘][\w⌘'’.,@/+-]*", sentence))


def unwanted(lines):
    """(line number, word found, what to write) of numbered lines, without their code."""
    for number, line in lines:
        for word, better in WORDS.items():
            for match in re.finditer(word, CODE.sub("", line), re.IGNORECASE):
                yield number, match.group(), better


def lines_of_page(page):
    """The numbered lines of a page that are not code."""
    fenced = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def lines_of_code(path):
    """The numbered lines of a Python file's comments, docstrings and other texts of several words."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT or (token.type in TEXT and " " in token.string):
            yield from enumerate(token.string.splitlines(), token.start[0])


def told(name, lines):
    """Print what is unwanted in numbered lines; whether there was any."""
    found = list(unwanted(lines))
    for number, word, better in found:
        print(f"      {name}:{number}: '{word}' → {better}")
    return bool(found)


def main():
    """Print one line per page, then what was found; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument(
        "--longest", type=int, default=0, metavar="N", help="print the N longest sentences of each page, too"
    )
    arguments = parser.parse_args()
    pages, files = named_or_all(arguments.files)
    every, bad = [], False
    for page in pages:
        found = list(sentences(page))
        lengths = [length(s) for s in found]
        every += lengths
        mean = statistics.fmean(lengths) if lengths else 0.0
        bad |= mean > A_PAGE
        long = sum(n > A_PAGE for n in lengths)
        print(f"{mean:5.1f} words  {len(lengths):4} sentences  {long:3} above {A_PAGE}  {page.name}")
        for sentence in sorted(found, key=length, reverse=True)[: arguments.longest]:
            print(f"      {length(sentence)}: {sentence}")
        bad |= told(page.name, lines_of_page(page))
    for path in files:
        bad |= told(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path, lines_of_code(path))
    mean = statistics.fmean(every) if every else 0.0
    print(f"{mean:5.1f} words  {len(every):4} sentences  all pages")
    return int(bad or mean > ALL_PAGES)


if __name__ == "__main__":
    sys.exit(main())
