"""The search page in a real browser: results, marks, options, keys, health; hostile documents stay text."""

import re

import pytest
from tests.serve.chromium import chromium
from tests.serve.running import running

import counterpoint as cp
from counterpoint.serve.routes.page import OURS

HOSTILE = (
    "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\"> sea &amp; 🐋 whale"
)
DOCUMENTS = [
    {"id": "hostile", "title": "<b>Sea</b>", "text": HOSTILE, "note": "<i>x</i>"},
    {"id": "sharks", "text": "Sharks are fish of the sea.", "note": "y" * 300},
    {"id": "long" * 50, "title": "Sea" + "withoutspaces" * 40, "text": "sea whale\n" * 200, "note": "z"},
]
VIEWS = {
    "empty": "",
    "results": "?index=vectors&q=sea+whale",
    "options": "?index=vectors&q=sea+whale&workflow=words",
    "document": "?index=vectors&q=sea+whale",
    "error": "?q=sea&where=nope+%3D+1",
    "health": "?index=vectors#health",
}
PHONE = {"width": 390, "height": 800}
SCREEN = {"width": 1000, "height": 800}

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(tmp_path_factory, tiny_model):
    folder = tmp_path_factory.mktemp("page")
    cp.index(DOCUMENTS, folder / "notes", model=None).close()
    with pytest.warns(UserWarning, match="are longer than the 64 word-pieces"):
        cp.index(DOCUMENTS, folder / "vectors", model=tiny_model).close()
    with running({name: folder / name for name in ("notes", "vectors")}) as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def page(browser):
    """A page that fails its test if it has an error, or asks another server for anything."""
    with browser.new_context(viewport=SCREEN) as context:
        made = context.new_page()
        faults, asked = [], []
        made.on("pageerror", lambda error: faults.append(str(error)))
        made.on("request", lambda request: asked.append(re.sub(r"^(https?://[^/]*).*", r"\1", request.url)))
        yield made
        assert not faults and len(set(asked)) == 1


def shown(page, address, view):
    """Open a view and wait until it is all there."""
    page.goto(f"{address}/{VIEWS.get(view, view)}")
    if view == "health":
        page.locator("#health table").wait_for()
    elif view == "error":
        page.locator("#status.fault").wait_for()
    elif view != "empty":
        page.locator("#results li").first.wait_for()
    if view == "document":
        page.locator("#results h2 button").first.click()
    page.locator("#status:not(:empty), #health:not([hidden])").first.wait_for()


def test_a_link_shows_its_results_and_hostile_documents_stay_text(page, address):
    shown(page, address, "?index=notes&q=sea+whale")
    assert page.title() == "Counterpoint"
    assert page.locator("#status").inner_text().startswith("3 results")
    hostile = page.locator("li", has_text="document.title")
    assert hostile.locator(".text").inner_text() == HOSTILE
    assert hostile.locator("h2").inner_text() == "<b>Sea</b>"
    assert page.locator("script").count() == 1 and page.locator("main img").count() == 0
    marks = hostile.locator(".text mark").all_inner_texts()
    assert "whale" in marks and "🐋" not in "".join(marks)
    assert "BM25 100 %" in hostile.locator(".legend").inner_text()


def test_a_wrong_condition_is_told_on_the_page(page, address):
    shown(page, address, "error")
    assert "nope" in page.locator("#status").inner_text()
    assert page.locator("#where").input_value() == "nope = 1" and page.locator("#where").is_visible()
    page.locator("#where").fill("")
    page.locator("#results li").first.wait_for()
    assert page.locator("#status.fault").count() == 0


def test_results_follow_the_keys_and_the_address_names_them(page, address):
    shown(page, address, "empty")
    assert page.locator("#status").inner_text() == "Type to search 3 documents."
    page.keyboard.type("sharks")
    page.locator("li", has_text="Sharks are fish").wait_for()
    page.wait_for_url("**/?q=sharks&index=notes")
    page.reload()
    page.locator("li", has_text="Sharks are fish").wait_for()
    page.keyboard.press("Escape")
    page.locator("#status", has_text="Type to search").wait_for()


def test_a_slow_search_is_followed_by_the_newest_query_only(page, address):
    asked, held = [], []

    def hold(route):
        asked.append(route.request.post_data_json["query"])
        held.append(route)
        if len(held) > 1:
            route.continue_()

    page.route("**/search", hold)
    shown(page, address, "empty")
    page.keyboard.type("shark")
    for _ in range(500):  # the request reaches us after the keys
        if not held:
            page.wait_for_timeout(20)
    held[0].continue_()
    page.locator("#results li").first.wait_for()
    page.wait_for_url("**q=shark&**")
    assert asked == ["s", "shark"]


def test_switches_rank_again_at_once(page, address):
    expect = pytest.importorskip("playwright.sync_api").expect
    shown(page, address, "options")
    before = page.locator(".legend").all_inner_texts()
    with page.expect_request("**/search") as request:
        page.locator("#workflow").select_option("hybrid")
    assert request.value.post_data_json["workflow"] == "hybrid"
    page.locator(".legend", has_text="BM25").first.wait_for()
    hybrid = page.locator(".legend").all_inner_texts()
    assert hybrid != before
    with page.expect_request("**/search") as request:
        page.locator("#sliders input[name=lexical]").fill("0.01")
    assert "lexical=0.01" in request.value.post_data_json["weights"].split()
    page.wait_for_url("**weights=*")
    expect(page.locator(".legend")).not_to_have_text(hybrid, use_inner_text=True)
    page.locator("#default-weights").click()
    page.wait_for_url(lambda url: "weights" not in url)
    expect(page.locator(".legend")).to_have_text(hybrid, use_inner_text=True)


def test_a_score_of_zero_or_below_has_no_shares(page, address):
    def lowered(route):
        answer = route.fetch()
        found = answer.json()
        for hit in (hits := (found.get("answers") or [found])[0]["hits"]):
            hit["score"] = -0.0043
        assert hits
        route.fulfill(response=answer, json=found)

    page.route("**/search", lowered)
    shown(page, address, "results")
    legend = page.locator(".legend").first.inner_text()
    assert "score -0.0043" in legend and "BM25" in legend and "%" not in legend


def test_only_workflows_of_the_index_are_offered(page, address):
    shown(page, address, "?index=notes&q=sea&workflow=dense")
    assert page.locator("#workflow option:not([hidden])").all_inner_texts() == ["hybrid", "BM25"]
    assert page.locator("#workflow").input_value() == "hybrid"


def test_everything_can_be_done_by_keys(page, address):
    shown(page, address, "results")
    titles = page.locator("#results h2 button")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent") == titles.nth(1).inner_text()
    page.keyboard.press("Enter")
    dialog = page.locator("#document[open]")
    assert dialog.locator("dd").nth(0).inner_text() in {each["id"] for each in DOCUMENTS}
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.evaluate("document.activeElement.textContent") == titles.nth(1).inner_text()
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.locator("#similar").click()
    assert page.locator("#query").input_value() not in ("", "sea whale")


def test_the_health_of_an_index_is_shown(page, address):
    shown(page, address, "health")
    text = page.locator("#health").inner_text()
    for expected in ("vectors: mean", "Truncated texts", "mean cosine", "BM25 + vector", "of which"):
        assert expected in text
    assert page.locator("#health svg").count() >= 2
    page.locator("#query").fill("sea")  # typing leaves the view
    page.locator("#results li").first.wait_for()
    assert page.locator("#health").is_hidden()


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(page, address, scheme, view):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page.emulate_media(color_scheme=scheme)
    shown(page, address, view)
    found = axe.run(page)
    assert not found.violations_count, found.generate_report()


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_fits_a_phone(page, address, view):
    page.set_viewport_size(PHONE)
    shown(page, address, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_key_is_asked_for(browser, tmp_path):
    cp.index(DOCUMENTS, tmp_path / "notes", model=None).close()
    key = "k" * 20
    with running({"notes": tmp_path / "notes"}, read_keys=(key,)) as guarded, browser.new_page() as page:
        page.goto(f"{guarded}/?q=sea")
        page.locator("#key").fill(key)
        page.keyboard.press("Enter")
        page.locator("#results li").first.wait_for()


def test_the_page_of_the_api_shows_every_request(page, address):
    """Under the policy of all pages, which allows nothing but files of this server."""
    import httpx

    pytest.importorskip("fastapi_offline")
    page.goto(f"{address}/docs")
    page.locator(".opblock-summary-path").first.wait_for()
    shown = "".join(page.locator(".opblock-summary-path").all_inner_texts()).replace("\u200b", "")
    paths = httpx.get(f"{address}/openapi.json").json()["paths"]
    assert len(paths) > 10 and all(path in shown for path in paths)
    assert page.locator("p#locked").is_hidden()


def test_the_page_of_the_api_tells_that_a_key_is_needed(page, tmp_path):
    pytest.importorskip("fastapi_offline")
    cp.index(DOCUMENTS, tmp_path / "notes", model=None).close()
    with running({"notes": tmp_path / "notes"}, read_keys=("r" * 20,)) as address:
        page.goto(f"{address}/docs")
        page.locator("p#locked:not([hidden])").wait_for()
        assert page.locator(".opblock-summary-path").count() == 0


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


def test_the_files_name_no_other_address(address):
    import httpx

    answer = httpx.get(address)
    assert "default-src 'self'" in answer.headers["content-security-policy"]
    for name in ("", "docs", *(f"page/{name}" for name in OURS)):
        text = httpx.get(f"{address}/{name}").text
        assert not re.search(r"https?://(?!www\.w3\.org)", text), name
        assert "innerHTML" not in text and "eval(" not in text
    assert httpx.get(f"{address}/page/..%2f..%2fpages.py").status_code == 404
