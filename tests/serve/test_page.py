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


@pytest.mark.browser
@browser
def test_the_page_of_the_api_shows_every_request(address, tmp_path):
    """Under the policy of all pages, which allows nothing but files of this server."""
    import httpx

    page = Page(in_chromium(f"{address}/docs", tmp_path, "--dump-dom").stdout)
    shown = page.texts["opblock-summary-path"].replace("\u200b", "")
    paths = httpx.get(f"{address}/openapi.json").json()["paths"]
    assert len(paths) > 10 and all(path in shown for path in paths)
    assert ("p", {"id": "locked", "hidden": ""}) in page.tags


@pytest.mark.browser
@browser
def test_the_page_of_the_api_tells_that_a_key_is_needed(tmp_path):
    cp.index(DOCUMENTS, tmp_path / "notes", model=None).close()
    with running({"notes": tmp_path / "notes"}, read_keys=("r" * 20,)) as address:
        page = Page(in_chromium(f"{address}/docs", tmp_path, "--dump-dom").stdout)
    assert ("p", {"id": "locked"}) in page.tags and "opblock-summary-path" not in page.texts


def test_pages_need_no_key_and_what_they_ask_for_does(serve):
    pytest.importorskip("fastapi_offline")
    client = serve(read_keys=("r" * 20,))
    for name in ("", "docs", "page/docs.js", "page/swagger-ui.css", "page/swagger-ui-bundle.js"):
        answer = client.get(f"/{name}")
        assert answer.status_code == 200 and "default-src 'self'" in answer.headers["content-security-policy"]
    assert client.get("/page/swagger-ui.css").headers["content-type"] == "text/css; charset=utf-8"
    assert client.get("/openapi.json").status_code == 401 and client.get("/page/other.js").status_code == 404


def test_without_its_package_the_api_page_is_missing_and_the_rest_is_not(serve, monkeypatch):
    monkeypatch.setattr("counterpoint.serve.routes.page.find_spec", lambda name: None)
    client = serve()
    found = client.get("/page/swagger-ui.css")
    assert found.status_code == 501 and "optional package" in found.json()["detail"]
    assert client.get("/").status_code == 200


def test_the_page_asks_nobody_else(address):
    """Its policy forbids it, and none of its files names another address."""
    import httpx

    answer = httpx.get(address)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for name in ("", "page/page.js", "page/style.css", "page/icon.svg", "docs", "page/docs.js"):
        text = httpx.get(f"{address}/{name}").text
        assert not re.search(r"https?://(?!www\.w3\.org)", text), name
        assert "innerHTML" not in text and "eval(" not in text
    assert httpx.get(f"{address}/page/..%2f..%2fpages.py").status_code == 404
