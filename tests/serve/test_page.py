"""The search page in a real browser: results, marks, shares; hostile documents stay text."""

import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from tests.serve.running import running

import counterpoint as cp

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
HOSTILE = (
    "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\"> sea &amp; 🐋 whale"
)
DOCUMENTS = [
    {"id": "hostile", "title": "<b>Sea</b>", "text": HOSTILE, "note": "<i>x</i>"},
    {"id": "sharks", "text": "Sharks are fish of the sea.", "note": "y"},
]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page") / "notes"
    cp.index(DOCUMENTS, folder, model=None).close()
    with running({"notes": folder}) as found:
        yield found


def in_chromium(url, tmp_path, *flags):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--virtual-time-budget=4000", *flags, url]
    return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True)


class Page(HTMLParser):
    """The texts of a page's elements, by tag and class."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.texts, self._open = [], {}, []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self._open.append(dict(attributes).get("class") or tag)

    def handle_endtag(self, tag):
        if self._open:
            self._open.pop()

    def handle_data(self, data):
        for name in set(self._open):
            self.texts[name] = self.texts.get(name, "") + data


browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


@pytest.mark.browser
@browser
def test_a_link_shows_its_results_and_hostile_documents_stay_text(address, tmp_path):
    dom = in_chromium(f"{address}/?q=sea+whale", tmp_path, "--dump-dom").stdout
    page = Page(dom)
    assert "<title>Counterpoint</title>" in dom
    assert "2 results" in page.texts["p"]
    assert HOSTILE in page.texts["text"] and "<b>Sea</b>" in page.texts["h3"]
    assert [tag for tag, _ in page.tags].count("script") == 1 and not any(
        tag == "img" for tag, _ in page.tags
    )
    assert "whale" in page.texts["mark"] and "🐋" not in page.texts["mark"]
    assert "BM25 100 %" in page.texts["legend"]


@pytest.mark.browser
@browser
def test_a_wrong_condition_is_told_on_the_page(address, tmp_path):
    dom = in_chromium(f"{address}/?q=sea&where=nope+%3D+1", tmp_path, "--dump-dom").stdout
    assert re.search(r'<p id="status"[^>]*class="fault"[^>]*>[^<]*nope', dom)
    assert 'value="nope = 1"' in dom or "nope" in dom


@pytest.mark.browser
@browser
def test_the_health_of_an_index_is_shown(address, tmp_path):
    page = Page(in_chromium(f"{address}/#health", tmp_path, "--dump-dom").stdout)
    assert "bytes per document" in page.texts["th"] and "lexical" in page.texts["th"]


def test_the_page_asks_nobody_else(address):
    """Its policy forbids it, and none of its files names another address."""
    import httpx

    answer = httpx.get(address)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for name in ("", "page/page.js", "page/style.css", "page/icon.svg"):
        text = httpx.get(f"{address}/{name}").text
        assert not re.search(r"https?://(?!www\.w3\.org)", text), name
        assert "innerHTML" not in text and "eval(" not in text
    assert httpx.get(f"{address}/page/..%2f..%2fpages.py").status_code == 404
