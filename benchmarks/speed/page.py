"""How soon the search page shows results after the last key of a query, in Chromium.

    python benchmarks/speed/page.py quickstart-index

Serves an index, types 50 queries about the quickstart's index, and prints the median and the 95th percentile
of the times from the last key to the frame with its results. Needs the extra `test`, and Chromium.
"""

import argparse
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

QUERIES = """
kill a child process after a timeout, wait until several coroutines are done, parse dates, read a csv file,
scratch folder that disappears, itertools groupby, open a socket with timeout, compress bytes with gzip,
walk a directory tree, json encoder for dates, send an email, hash a password, random sample, time a function,
format a number with commas, copy a file with its permissions, run a function in a thread, decode base64,
a queue between processes, shared memory of processes, parse command line arguments, read an ini file,
log to a rotating file, a heap of the smallest items, search in a sorted list, count the words of a text,
join paths, temporary directory, regular expression named groups, parse an html page, fetch a url,
an http server, weak references, abstract base class, data class with defaults, enumerate members,
decimal rounding, fractions of numbers, pretty print a dictionary, compare two texts by lines,
unicode normalisation, sqlite database in memory, zip archive of a folder, trace memory allocations,
profile a program, call a c library, signal handler, schedule events, fold a list with a function,
email header
"""
WATCH = """() => {
  window.times = { key: 0, shown: 0 };
  const results = document.getElementById("results");
  document.addEventListener("input", () => { times.key = performance.now(); }, true);
  const shown = () => requestAnimationFrame(() => { times.shown = performance.now(); });
  new MutationObserver(shown).observe(results, { childList: true });
}"""
DONE = "() => times.shown > times.key && !document.getElementById('results').ariaBusy"


def main():
    """Serve, type, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("index", type=Path)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--delay", type=int, default=100, help="milliseconds between two keys")
    options = parser.parse_args()
    serve = [sys.executable, "-m", "counterpoint", "serve", str(options.index), "--port", str(options.port)]
    process = subprocess.Popen(serve, stderr=subprocess.DEVNULL)
    try:
        address = f"http://127.0.0.1:{options.port}"
        wait_for(f"{address}/readyz")
        times = typed(address, [" ".join(query.split()) for query in QUERIES.split(",")], options.delay)
    finally:
        process.terminate()
        process.wait()
    p50, p95 = np.percentile(times, [50, 95])
    print(f"{len(times)} queries: p50 {p50:.0f} ms, p95 {p95:.0f} ms, most {max(times):.0f} ms")


def wait_for(address):
    """Return once a server answers."""
    for _ in range(600):
        try:
            urllib.request.urlopen(address)
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{address} does not answer")


def typed(address, queries, delay):
    """Milliseconds from the last key of each query to its results."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with sync_playwright() as started, started.chromium.launch(executable_path=browser) as chromium:
        page = chromium.new_page(bypass_csp=True)
        page.goto(address)
        page.locator("#status:not(:empty)").wait_for()
        page.evaluate(WATCH)
        times = []
        for query in [queries[-1], *queries]:  # the first one warms up
            page.locator("#query").fill("")
            page.wait_for_timeout(200)
            page.keyboard.type(query, delay=delay)
            page.wait_for_timeout(200)  # a search for the last key may wait for the one before
            page.wait_for_function(DONE)
            times.append(page.evaluate("times.shown - times.key"))
    return times[1:]


if __name__ == "__main__":
    main()
