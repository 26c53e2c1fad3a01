import io
import json
import math
import re
import tempfile
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.fakes import DOCUMENTS, HashModel, UniModel

from counterpoint.explain import answer_console, html_page, keywords_of, render_answer, rows_of
from counterpoint.index import Index, IndexSettings, build_index
from counterpoint.search import Answer, Hit, Searcher, SearchSettings
from counterpoint.search.hits import WeighedWord
from counterpoint.types import Document, Explanation, Span


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explain") / "index"
    build_index(DOCUMENTS, HashModel(), folder)
    with Index(folder) as index:
        return Searcher(index, HashModel()).search("Brown foxes <under>", 4, explain=True)


@pytest.fixture(scope="module")
def weighted(tmp_path_factory):
    """An answer whose words are weighted by idf."""
    folder = tmp_path_factory.mktemp("weighted") / "index"
    search = {"weights": {"mean": 1.0, "words": 1.0}, "idf": {"words": 0.5}}
    build_index(DOCUMENTS, HashModel(), folder, IndexSettings(search=search))
    with Index(folder) as index:
        return Searcher(index, HashModel()).search("brown box", 1, explain=True)


def test_idf_stands_beside_the_word_that_it_weighted(weighted):
    """In six documents brown is in three, box in two: √ln(1 + (N − df + ½) / (df + ½))."""
    wanted = {"brown": math.sqrt(math.log(1 + 3.5 / 3.5)), "box": math.sqrt(math.log(1 + 4.5 / 2.5))}
    rows = {row.label: row for row in rows_of(weighted.hits[0].explanation)}
    for word, weight in wanted.items():
        assert rows[word].idf == {"words": pytest.approx((weight,), rel=1e-6)}
        assert f"{weight:.2f}" in shown(weighted) and f'<td class="n">{weight:.2f}</td>' in html_page(
            weighted
        )
    assert rows["(whole text)"].idf == {}
    assert "idf (words)" in shown(weighted) and "idf (words)" in html_page(weighted)


def test_no_idf_no_column(answer):
    assert "idf (" not in shown(answer) and "idf (" not in html_page(answer)


def shown(answer, explained=True, width=100):
    console = Console(file=io.StringIO(), width=width)
    how = {True: "words", False: "no"}.get(explained, explained)
    render_answer(answer, console, explained=how)
    return console.file.getvalue()


def test_rows_hold_the_whole_score(answer):
    for hit in answer.hits:
        rows = rows_of(hit.explanation)
        assert sum(row.score for row in rows) == pytest.approx(hit.score, abs=1e-5)
        for part, score in hit.parts.items():
            assert sum(row.scores.get(part, 0.0) for row in rows) == pytest.approx(score, abs=1e-5)


def test_rows_follow_the_query_and_gather_the_parts_of_a_word():
    word, piece = Span("foxes", 6, 11), Span("fox", 6, 9)
    tree = Explanation("all", 4.5, (
        Explanation("lexical", 1.0, (Explanation("fox", 1.0, query=word, document=Span("fox", 0, 3)),)),
        Explanation("words", 3.0, (
            Explanation("row 0", 1.0, query=Span("Brown", 0, 5), document=Span("brown", 8, 13)),
            Explanation("row 1", 2.0, query=piece, document=Span("dog", 4, 7)),
        )),
        Explanation("mean", 0.5, (Explanation("(whole text)", 0.5),)),
    ))  # fmt: skip
    rows = rows_of(tree)
    assert [row.label for row in rows] == ["Brown", "foxes", "(whole text)"]
    assert rows[1].scores == {"lexical": 1.0, "words": 2.0}
    assert rows[1].matched == "fox (lexical), dog (words)" and rows[0].matched == "brown"


def test_the_terminal_shows_words_shares_and_parts(answer):
    text = shown(answer)
    first = answer.hits[0]
    assert f"{first.score:.4f}" in text and first.document.id in text
    for word in ("Brown", "foxes", "lexical", "mean", "words", "share", "(whole text)", "100%"):
        assert word in text
    assert f"weights for this query: lexical {answer.weights['lexical']:.0%}, mean" in text
    shares = [int(x) for x in re.findall(r"(-?\d+)%", text.split("share")[1].split("100%")[0])]
    assert abs(sum(shares) - 100) <= len(shares)  # each rounded
    assert "share" not in shown(answer, explained=False)


@pytest.mark.parametrize("score", [-0.0043, 0.0])
def test_a_score_of_zero_or_below_has_no_shares(answer, score):
    first = replace(answer, hits=(replace(answer.hits[0], score=score),), weights={})
    assert "share" in shown(first) and "%" not in shown(first)
    cell = '<td class="n">100%</td>'
    assert "%</td>" not in html_page(first) and cell in html_page(answer)


@pytest.fixture(scope="module")
def keywords(tmp_path_factory):
    """An answer of a gated model: figure 1 of the ColBERTer paper."""
    folder = tmp_path_factory.mktemp("keywords") / "index"
    model = UniModel(dropped=("the", "a"))
    search = {"weights": {"cls": 1.0, "words": 2.0}, "scale": "none", "exact": ["words"]}
    build_index(DOCUMENTS, model, folder, IndexSettings(codec="float32", search=search))
    with Index(folder) as index:
        return Searcher(index, model).search("the quick brown fox in a box", 4, explain=True)


def test_words_stand_in_the_order_of_importance_with_the_scores_that_ranked(keywords):
    matches = 0
    for hit in keywords.hits:
        words = keywords_of(hit, 100).get("words", [])
        assert [keyword.word for keyword in words] == list(hit.words["words"])
        scores = [keyword.score for keyword in words if keyword.score is not None]
        assert sum(scores) == pytest.approx(hit.parts["words"], abs=1e-5)
        matches += len(scores)
    assert matches >= 3


def test_few_words_are_shown_but_all_that_matched(keywords):
    for hit in keywords.hits:
        everything, few = (keywords_of(hit, most).get("words", []) for most in (100, 1))
        assert [k for k in few if k.score is not None] == [k for k in everything if k.score is not None]
        rest = [k for k in few if k.score is None]
        assert len([k for k in rest if k.word.importance is not None]) <= 1 >= len(rest) - 1
        firsts = [k for k in everything if k.score is None and k.word.importance is not None]
        assert firsts[:1] == [k for k in rest if k.word.importance is not None]


def test_the_terminal_shows_important_and_dropped_words(keywords):
    hit = next(hit for hit in keywords.hits if hit.document.id == "a")
    text = " ".join(shown(Answer("q", "hybrid", (hit,))).split())
    assert "words dropped: the" in text
    listed = text[text.index("words by importance:") : text.index("words dropped:")]
    stored = [word for word in hit.words["words"] if word.importance is not None]
    places = [listed.index(f" {word.span.text} {word.importance:.2f}") for word in stored]
    assert len(places) == 7 and places == sorted(places)
    for keyword in keywords_of(hit, 0)["words"]:
        assert f"{keyword.word.span.text} {keyword.word.importance:.2f} (+{keyword.score:.4f})" in listed
    assert "by importance" not in shown(keywords, explained=False)


def test_the_page_shows_important_and_dropped_words(keywords):
    page = html_page(keywords)
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    hit = next(hit for hit in keywords.hits if hit.document.id == "a")
    one = html_page(Answer("q", "hybrid", (hit,)))
    assert re.findall(r"<s [^>]*>(.*?)</s>", one) == ["the"]
    scores = [float(score) for score in re.findall(r"<small>\+(.*?)</small>", one)]
    assert scores and sum(scores) == pytest.approx(hit.parts["words"], abs=1e-4 * len(scores))


def test_nothing_found_says_so():
    assert "No document matches 'x'" in shown(Answer("x", "lexical", ()))


class Strict(HTMLParser):
    """Every element closed, in order; collects text and attributes."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_is_well_formed_escaped_and_self_contained(answer):
    page = html_page(answer)
    parser = Strict()
    parser.feed(page)
    assert parser.open == []
    assert "Brown foxes <under>" in "".join(parser.text) and "<under>" not in page
    assert not [name for name, _ in parser.attributes if name in ("src", "href")]
    assert "http" not in page and "<script" not in page and "url(" not in page


def test_marks_lie_on_the_matched_words_and_the_text_stays_whole(answer):
    for hit in answer.hits:
        page = html_page(Answer(answer.query, answer.workflow, (hit,)))
        marked = re.findall(r"<mark[^>]*>(.*?)</mark>", page)
        matched = {span.text for row in rows_of(hit.explanation) for span in row.matches.values()}
        assert set(marked) == matched
        text = re.sub("<[^>]+>", "", page[page.index("<article") :])
        assert hit.document.text in text
        if hit.document.title:
            heading = re.sub("<[^>]+>", "", re.findall(r"<h2>(.*?)</h2>", page)[0])
            assert heading == f"{hit.rank}. {hit.document.title}"
            assert hit.document.full_text not in text  # the title is in the heading alone


def test_hostile_text_stays_text():
    evil = '<script>alert("x")</script>&'
    word = Span(evil, 0, len(evil))
    leaf = Explanation(evil, 1.0, query=word, document=word)
    hit = Hit(
        1,
        1.0,
        Document(evil, evil, evil),
        {evil: 1.0},
        Explanation("all", 1.0, (Explanation(evil, 1.0, (leaf,)),)),
    )
    page = html_page(Answer(evil, evil, (hit,)))
    assert "<script" not in page
    parser = Strict()
    parser.feed(page)
    assert parser.open == []


def test_square_brackets_are_no_markup_on_a_terminal():
    id_, word = "app/[slug]/[/x].md", Span("[b]x[/i]", 0, 8)
    leaves = (Explanation(f"(like {id_})", 0.5), Explanation(word.text, 0.5, query=word, document=word))
    tree = Explanation("all", 1.0, (Explanation("words", 1.0, leaves),))
    page = shown(Answer("q", "hybrid", (Hit(1, 1.0, Document(id_, word.text), {"words": 1.0}, tree),)))
    assert f"(like {id_})" in " ".join(page.split()) and page.count(word.text) >= 2


def test_long_documents_show_the_stretch_that_matched():
    text = "filler words " * 100 + "the needle lies here " + "more filler " * 100
    at = text.index("needle")
    leaf = Explanation("needle", 1.0, query=Span("needle", 0, 6), document=Span("needle", at, at + 6))
    hit = Hit(
        1,
        1.0,
        Document("d", text),
        {"words": 1.0},
        Explanation("all", 1.0, (Explanation("words", 1.0, (leaf,)),)),
    )
    assert "the needle lies here" in shown(Answer("needle", "words", (hit,)))


EVIL = "\x1b]52;c;aGlj\x07\x1b[31m\x9b2J\u202e\u2069\r\nmine\ud800"


def test_a_document_cannot_leave_its_line_or_colour_it(answer):
    """Every text that is shown is hostile; the lines are those of the same answer without it."""
    for explained in (True, False):
        plain, evil = (shown(_with_texts(answer, text), explained, 1000) for text in ("x", EVIL))
        assert not set(evil) & set("\x1b\x07\x9b\u202e\u2069\r\ud800")
        assert r"\x1b]52;c;aGlj\x07\x1b[31m\u009b2J\u202e\u2069\r\nmine\ud800" in evil
        assert evil.count("\n") == plain.count("\n")


def test_square_brackets_are_no_markup(answer):
    assert "[red]x[/red] [link=a]" in shown(_with_texts(answer, "[red]x[/red] [link=a]"))
    assert "[bold]nothing" in shown(Answer("[bold]nothing", "hybrid", ()))


def test_a_document_cannot_reverse_or_break_the_page(answer):
    page = html_page(_with_texts(answer, f"{EVIL}<b>"))
    assert page.encode() and not set(page) & set("\x1b\x07\x9b\u202e\u2069\ud800")
    assert r"\u202e\u2069" in page and "<b>" not in page.replace("<b style", "")
    parser = Strict()
    parser.feed(page)


def _with_texts(answer, text):
    """The answer of one hit, every text and name in it replaced by another."""
    hit = answer.hits[0]
    span = Span(text, 0, len(text))
    leaf = Explanation(text, hit.score / 2, query=span, document=span)
    parts = tuple(Explanation(name, hit.score / 2, (leaf,)) for name in (text, f"{text}2"))
    scores = {part.label: part.score for part in parts}
    words = {text: (WeighedWord(span, 1.0), WeighedWord(Span("y", 0, 1), None))}
    document = Document(text, text, title=f"{text}!", metadata={text: text})
    changed = Hit(1, hit.score, document, scores, Explanation(text, hit.score, parts), words)
    return Answer(text, text, (changed,))


# -- feedback, notebooks, JSON -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fed(tmp_path_factory):
    """An answer with feedback from three documents."""
    folder = tmp_path_factory.mktemp("fed") / "index"
    search = {"weights": {"lexical": 1.0, "mean": 1.0}, "feedback": 0.2, "feedback_documents": 3}
    build_index(DOCUMENTS, HashModel(), folder, IndexSettings(search=search))
    with Index(folder) as index:
        return Searcher(index, HashModel()).search("brown foxes", 2, explain=True)


def test_feedback_is_one_row_and_its_documents_stand_in_the_full_explanation(fed):
    hit = fed.hits[0]
    few, full = rows_of(hit.explanation), rows_of(hit.explanation, full=True)
    (row,) = [row for row in few if "feedback" in row.scores]
    likes = [row for row in full if "feedback" in row.scores]
    assert row.label == "feedback" and row.matched == f"{len(likes)} best documents" and len(likes) > 1
    assert row.score == pytest.approx(sum(like.score for like in likes), abs=1e-6)
    assert sum(row.score for row in full) == pytest.approx(hit.score, abs=1e-5)
    words, everything = shown(fed), shown(fed, "full")
    assert "best documents" in words and "(like " not in words
    assert "best documents" not in everything and everything.count("(like ") >= len(likes)


@pytest.mark.parametrize("fusion", ["z-score", "rrf"])
def test_feedback_counts_its_documents_and_no_normalisation(fusion, tmp_path):
    search = {"weights": {"lexical": 1.0, "mean": 1.0}, "feedback": 0.2, "feedback_documents": 3}
    build_index(DOCUMENTS, HashModel(), tmp_path / "index", IndexSettings(search=search))
    with Index(tmp_path / "index") as index:
        searched = SearchSettings.for_index(index).with_fusion(fusion)
        hit = Searcher(index, HashModel(), searched).search("brown foxes", 1, explain=True).hits[0]
    (row,) = [row for row in rows_of(hit.explanation) if "feedback" in row.scores]
    assert row.matched == {"z-score": "3 best documents", "rrf": ""}[fusion]  # ranks belong to no document


def test_pipes_get_no_line_breaks_of_ours(monkeypatch):
    long = Document("d", "an otter " * 30)
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stdout", pipe)
    render_answer(Answer("otter", "hybrid", (Hit(1, 1.0, long, {}),)), answer_console())
    assert [len(line) for line in pipe.getvalue().splitlines()][1] > 250


def test_a_narrow_terminal_is_not_overrun_and_no_number_is_cut(weighted):
    for width in range(40, 110, 5):
        text = shown(weighted, width=width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text and re.search(r"^all .* 100%", text, re.MULTILINE)
    assert "idf (words)" in shown(weighted, width=100) and "idf" not in shown(weighted, width=50)
    columns = re.compile(r"^query .*share .*mean", re.MULTILINE)
    assert columns.search(shown(weighted, width=50)) and not columns.search(shown(weighted, width=40))


def leaves(node):
    yield node
    for child in node.get("children", ()):
        yield from leaves(child)


@settings(deadline=None, max_examples=30)
@given(st.text(alphabet="fox brown\n", max_size=20), st.text(alphabet="fox brown\n", min_size=1, max_size=60))
def test_places_in_json_count_into_what_is_exported(title, text):
    with tempfile.TemporaryDirectory() as folder:
        build_index([Document("a", text + " fox", title)], HashModel(), f"{folder}/index")
        with Index(f"{folder}/index") as index:
            answer = Searcher(index, HashModel()).search("brown fox", 1, explain=True)
    given = json.loads(json.dumps(answer.to_dict()))
    found = 0
    for hit in given["hits"]:
        for node in leaves(hit["explanation"]):
            if "query" in node:
                assert given["query"][node["query"]["start"] : node["query"]["end"]] == node["query"]["text"]
            if "document" in node:
                place, found = node["document"], found + 1
                assert hit[place["field"]][place["start"] : place["end"]] == place["text"]
    assert found
