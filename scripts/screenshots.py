"""Make the README's pictures: a search on a terminal and an explained page, of the quickstart's index.

Needs Chromium and the index of `make quickstart`. Run it from the root of the repository.
"""

import argparse
import io
import shutil
import subprocess
import tempfile
from pathlib import Path

from rich.console import Console

import counterpoint as cp
from counterpoint.explain import html_page, render_answer

QUERY = "kill a child process after a timeout"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
COLUMNS = 96


def main() -> None:
    """Search, draw, and photograph."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--index", type=Path, default=Path("quickstart-index"))
    parser.add_argument("--output", type=Path, default=Path("docs/images"))
    options = parser.parse_args()
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        parser.error(f"no browser: install one of {', '.join(BROWSERS)}")
    options.output.mkdir(parents=True, exist_ok=True)
    with cp.open(options.index) as index, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "search.svg").write_text(terminal(index.search(QUERY, k=2, explain=True)), encoding="utf-8")
        (folder / "explanation.html").write_text(
            html_page(index.search(QUERY, k=1, explain=True)), encoding="utf-8"
        )
        for source, size in (("search.svg", "900,553"), ("explanation.html", "930,620")):
            picture = options.output / f"{Path(source).stem}.png"
            photograph(browser, folder / source, picture, size)
            print(f"{picture}: {picture.stat().st_size:,} bytes")


def terminal(answer: cp.search.Answer) -> str:
    """What `counterpoint search INDEX QUERY --explain` prints, as a drawing."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(
        f'$ counterpoint search quickstart-index "{answer.query}" -k 2 --explain', style="bold", markup=False
    )
    render_answer(answer, console, explained="words")
    return console.export_svg(title="counterpoint")


def photograph(browser: str, source: Path, picture: Path, size: str) -> None:
    """A picture of a file, as a browser without a window shows it."""
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--window-size={size}",
    ]
    command += [
        f"--user-data-dir={source.parent / 'profile'}",
        f"--screenshot={picture.resolve()}",
        source.as_uri(),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
