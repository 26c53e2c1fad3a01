"""The report is one file that reaches for nothing, and what it shows is escaped."""

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest
from tests.sweep.fake import CountingModel, loader, sweep, write_collection, write_grid

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
VOID = {"meta", "br", "path", "use"}


class Outline(HTMLParser):
    """Tags that are opened and closed in turn, the addresses that they name, and the text between."""

    def __init__(self, page):
        super().__init__()
        self.open, self.counts, self.addresses, self.text = [], {}, [], ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [value for name, value in attrs if re.search("href|src|action|data$", name)]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.counts[tag] = self.counts.get(tag, 0) + 1
        self.addresses += [value for name, value in attrs if re.search("href|src", name)]

    def handle_endtag(self, tag):
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture
def swept(grid, tmp_path):
    """A sweep of two collections, one of them with a name that is markup; a model that is not there."""
    write_collection(tmp_path / "more", queries={"q1": "fox", "q2": "train", "q3": "sea"})
    text = grid.read_text().replace('"none"]', '"none", "not <here>"]')
    name = '<img src=x onerror="alert(1)"> & co'
    write_grid(grid, text + f'[[collections]]\nsource = "more"\nname = {json.dumps(name)}\n')
    report = sweep(grid, tmp_path / "out", loader(one=CountingModel()), command="counterpoint sweep '<&>'")
    return report, tmp_path / "out"


def test_the_page_is_whole_and_reaches_for_nothing(swept):
    report, folder = swept
    page = (folder / "report.html").read_text()
    outline = Outline(page)
    assert outline.open == [] and outline.counts["table"] == 3 and outline.counts["svg"] == 6
    assert outline.counts["details"] == len(report["rows"]) + 1 == 19
    assert all(address.startswith("#") for address in outline.addresses)  # within the drawings
    assert not re.search(r"https?:|//[a-z]|url\((?!#)|@import", page)
    assert "img" not in outline.counts and '<img src=x onerror="alert(1)"> & co' in outline.text
    assert "counterpoint sweep '<&>'" in outline.text
    assert "model not <here>: there is no model 'not <here>'" in outline.text
    for row in report["rows"]:
        assert row["again"] in outline.text and row["cell"] in outline.text


def test_the_best_of_each_column_is_bold(swept):
    report, folder = swept
    page = (folder / "report.html").read_text()
    table = re.findall(r"<tbody>.*?</tbody>", page, re.DOTALL)[1]
    lines = [re.findall(r"<td[^>]*>(.*?)</td>", line) for line in re.findall(r"<tr>.*?</tr>", table)]
    rows = [row for row in report["rows"] if row["collection"] == "animals"]
    assert [line[0] for line in lines] == [str(row["row"]) for row in rows]
    for column, key, best in ((5, "nDCG@5", max), (6, "R@5", max)):
        values = [row["measures"][key] for row in rows]
        shown = [
            f"<strong>{v:.4f}</strong>" if f"{v:.4f}" == f"{best(values):.4f}" else f"{v:.4f}" for v in values
        ]
        assert [line[column] for line in lines] == shown and "<strong>" in "".join(shown)
    cheapest = min(rows, key=lambda row: row["bytes_per_document"])
    assert [line[0] for line in lines if "<strong>" in line[7]] == [str(cheapest["row"])]


def test_the_same_as_json_and_as_a_table(swept):
    report, folder = swept
    assert json.loads((folder / "report.json").read_text()) == report
    table = list(csv.DictReader((folder / "results.csv").read_text().splitlines()))
    assert len(table) == len(report["rows"]) == 18
    for line, row in zip(table, report["rows"], strict=True):
        assert float(line["nDCG@5"]) == row["measures"]["nDCG@5"] and line["cell"] == row["cell"]
        assert float(line["bytes_per_document"]) == row["bytes_per_document"]
        assert (line["model"], line["codec"]) == (
            row["configuration"]["model"],
            row["configuration"]["codec"],
        )


def test_a_grid_of_which_nothing_is_left(grid, tmp_path):
    write_grid(grid, grid.read_text().replace('"one", "none"', '"absent"'))
    report = sweep(grid, tmp_path / "out", loader())
    assert report["rows"] == [] and report["means"] == []
    assert "No cell could be evaluated" in (tmp_path / "out" / "report.html").read_text()


# -- in a browser ----------------------------------------------------------------------------------------


def in_chromium(page, tmp_path, *flags):
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
    command += ["--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}", *flags]
    return subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=180, check=True)


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_it_opens_in_a_browser_from_the_file_alone(swept, tmp_path):
    _, folder = swept
    alone = tmp_path / "alone" / "report.html"
    alone.parent.mkdir()
    shutil.copy(folder / "report.html", alone)
    counted = (
        "addEventListener('load', () => document.title = performance.getEntriesByType('resource').length)"
    )
    text = alone.read_text().replace("</body>", f"<script>{counted}</script></body>")
    alone.write_text(text)
    dom = in_chromium(alone, tmp_path, "--dump-dom").stdout
    assert "<title>0</title>" in dom  # only the file was asked for
    outline = Outline(re.sub(r"<script>.*?</script>", "", dom, flags=re.DOTALL))
    assert outline.counts["table"] == 3 and outline.counts["svg"] == 6 and "img" not in outline.counts
    assert outline.counts["button"] == outline.counts["th"]
    other = tmp_path / "other.html"  # and the counting counts
    other.write_text(text.replace("</body>", '<img src="http://127.0.0.1:9/x.png"></body>'))
    assert "<title>1</title>" in in_chromium(other, tmp_path, "--dump-dom").stdout
    picture = tmp_path / "page.png"
    in_chromium(alone, tmp_path, f"--screenshot={picture}", "--window-size=1200,2000")
    assert picture.read_bytes().startswith(b"\x89PNG") and picture.stat().st_size > 50_000


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_a_click_on_a_heading_sorts(swept, tmp_path):
    report, folder = swept
    page = tmp_path / "clicked.html"
    click = "<script>document.querySelectorAll('table')[1].querySelectorAll('th button')[5].click()</script>"
    page.write_text((folder / "report.html").read_text().replace("</body>", click + "</body>"))
    dom = in_chromium(page, tmp_path, "--dump-dom").stdout
    table = re.findall(r"<tbody>.*?</tbody>", dom, re.DOTALL)[1]
    shown = [float(value) for value in re.findall(r'data-value="([^"]*)"', table)][0::7]
    values = [row["measures"]["nDCG@5"] for row in report["rows"] if row["collection"] == "animals"]
    assert shown == sorted(values, reverse=True) != values
