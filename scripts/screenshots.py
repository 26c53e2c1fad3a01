"""Make the pictures of the README and of docs/serve.md, all of the quickstart's index.

Needs Chromium, the extra `test`, the index of `make quickstart` and, in another terminal, a server of it
(`counterpoint serve quickstart-index`). Run it from the root of the repository.
"""

import argparse
import io
import shutil
import tempfile
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, sync_playwright
from rich.console import Console

import counterpoint as cp
from counterpoint.explain import html_page, render_answer

QUERY = "kill a child process after a timeout"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
COLUMNS = 96
PAGES: dict[str, tuple[str, tuple[int, int], Literal["light", "dark"]]] = {
    "serve": (f"?q={QUERY.replace(' ', '+')}", (960, 800), "light"),
    "serve-phone": (f"?q={QUERY.replace(' ', '+')}", (390, 760), "dark"),
    "serve-health": ("#health", (960, 1330), "light"),
}


def main() -> None:
    """Search, draw, and photograph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--index", type=Path, default=Path("quickstart-index"))
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    parser.add_argument("--server", default="http://127.0.0.1:8000")
    options = parser.parse_args()
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        parser.error(f"no browser: install one of {', '.join(BROWSERS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=found)
        with cp.open(options.index) as index, tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            drawing, page = folder / "search.svg", folder / "explanation.html"
            drawing.write_text(terminal(index.search(QUERY, k=2, explain=True)), encoding="utf-8")
            page.write_text(html_page(index.search(QUERY, k=1, explain=True)), encoding="utf-8")
            photograph(browser, drawing.as_uri(), options.output / "search.png", (900, 553))
            photograph(browser, page.as_uri(), options.output / "explanation.png", (930, 620))
        for name, (view, size, scheme) in PAGES.items():
            photograph(browser, f"{options.server}/{view}", options.output / f"{name}.png", size, scheme)
        browser.close()


def terminal(answer: cp.search.Answer) -> str:
    """What `counterpoint search INDEX QUERY --explain` prints, as a drawing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(
        f'$ counterpoint search quickstart-index "{answer.query}" -k 2 --explain', style="bold", markup=False
    )
    render_answer(answer, console, explained="words")
    return console.export_svg(title="counterpoint")


def photograph(
    browser: Browser,
    address: str,
    picture: Path,
    size: tuple[int, int],
    scheme: Literal["light", "dark"] = "light",
) -> None:
    """A picture of a page, with as many colours as a small file can have."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_load_state("networkidle", timeout=120_000)
    page.screenshot(path=picture)
    page.close()
    Image.open(picture).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(picture, optimize=True)
    print(f"{picture}: {picture.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
