"""The HTTP server: how fast it answers, quiet and while the index changes, whether rightly, and its memory.

    python benchmarks/speed/serve.py DATA -o WORK [--quick] [--json FILE] [--plot FILE]

DATA is a collection in BEIR layout, such as SciFact; WORK keeps its index. Everything runs on the first two
CPUs: the server as `counterpoint serve` starts it, and clients in a process of their own. Each client has one
connection and sends a query when it has its answer. Queries are those of the collection and titles of its
documents, shuffled; there are more of them than the server caches, so each is encoded.

1. `counterpoint serve` and a plain FastAPI app around `cp.open(INDEX).search` (`serve_plain.py`) answer 1, 8
   and 32 clients for some seconds each;
2. the same for `counterpoint serve` while a writer goes on: it adds 10 documents, replaces 5, and deletes 10,
   each a commit, with a pause after each;
3. a soak: many requests of 8 clients with a writer that pauses longer. Memory is sampled each second.
   "Growth" compares the medians of the last fifth and of the second fifth, in anonymous memory, which leaves
   out the files of the index.

Every answer of every phase is checked. Its commit must be the last one at some time between request and
answer ("stale" if not). It must have the texts that were sent, and the hits and scores of the library on a
copy of that commit ("wrong" if not). For some pairs of a commit and a query, every document is "scored" as
well; "missed" counts those where a better document is proposed by no first stage. Latency is wall time as a
client sees it. "CPU" is that of the server per query, and the share of one CPU that the clients take.
"""

import argparse
import json
import os
import platform
import random
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from threading import Event, Thread

import numpy as np
from engine_measure import alone
from serve_check import Commit, checked

import counterpoint as cp
from counterpoint.data import open_collection

HERE = Path(__file__).parent
NAME = "bench"  # of the index
HELD = 400  # documents that are not in the index at first; fewer than a merge encodes in few bits
ADDED, REPLACED = 10, 5  # documents of a change
WARM = 100  # queries before times are taken
SOAKED = 1200  # different queries of the soak; more than the server caches
PLAIN = "plain FastAPI"
OURS = "counterpoint serve"


def main() -> None:
    options = parser().parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cpus])
    options.output.mkdir(parents=True, exist_ok=True)
    with alone(options.output):
        found = measured(options)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    if options.plot:
        save_plot(found["soak"]["memory"], options.plot)
    bad = {key: found["check"][key] for key in ("failed", "stale", "wrong") if found["check"][key]}
    if bad:
        sys.exit(f"{bad}: {'; '.join(found['check']['faults'])}")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("data")
    found.add_argument("-o", "--output", type=Path, required=True, help="where indexes are written")
    found.add_argument("--model", default="minilm", help="of the index; none for BM25 alone")
    found.add_argument("--documents", type=int, default=0, help="of the collection; 0: all")
    found.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32])
    found.add_argument("--seconds", type=float, help="of each row (default: 15)")
    found.add_argument("--requests", type=int, help="of the soak (default: 50,000)")
    found.add_argument("--pause", type=float, default=1, help="seconds between changes")
    found.add_argument("--soak-pause", type=float, default=30, help="the same in the soak")
    found.add_argument("-k", type=int, default=10, help="documents of an answer")
    found.add_argument("--cpus", type=int, default=2, help="CPUs that everything shares")
    found.add_argument("--quick", action="store_true", help="3 seconds a row, and a soak of 1,000 requests")
    found.add_argument("--json", type=Path)
    found.add_argument("--plot", type=Path, help="a plot of memory over time")
    return found


def measured(options) -> dict:
    """All phases, and what their answers were worth."""
    seconds = options.seconds or (3 if options.quick else 15)
    requests = options.requests or (1000 if options.quick else 50_000)
    machine = f"{platform.processor() or platform.machine()}, {options.cpus} CPUs"
    load = os.getloadavg()[0]
    base, documents, held, texts = prepared(options)
    print(f"{len(documents):,} documents, {len(texts):,} queries; {machine}; load before: {load:.1f}\n")
    rows, counts, queries, asked = [], {}, Queries(options, texts), []
    print(heading(), flush=True)
    for system in (OURS, PLAIN):
        with running(system, base, options.output) as server:
            queries.warm(server)
            for clients in options.clients:
                row, answers = queries.ask(server, clients, seconds)
                rows.append(shown({"server": system, "index": "quiet"} | row))
                asked += answers
    add(counts, checked(asked, [first_commit(base, documents)], options.k, options.cpus))
    folder = options.output / "changed"
    with running(OURS, copy_of(base, folder), options.output) as server:
        queries.warm(server)
        with Writer(server, folder, documents, held, options.pause) as writer:
            asked = []
            for clients in options.clients:
                row, answers = queries.ask(server, clients, seconds)
                rows.append(shown({"server": OURS, "index": "changes"} | row))
                asked += answers
        add(counts, checked(asked, writer.commits, options.k, options.cpus))
    commits = len(writer.commits) - 1
    with running(OURS, copy_of(base, folder), options.output) as server, Sampler(server.pid) as sampler:
        queries.warm(server)
        with Writer(server, folder, documents, held, options.soak_pause) as writer:
            row, answers = queries.ask(server, 8, 3600, requests, SOAKED)
            rows.append(shown({"server": OURS, "index": "soak"} | row))
    add(counts, checked(answers, writer.commits, options.k, options.cpus))
    commits += len(writer.commits) - 1
    soak = summary(sampler.samples)
    print_summary(counts, commits, soak)
    return {"machine": machine, "load": load, "documents": len(documents), "rows": rows} | {
        "check": counts, "commits": commits, "soak": soak,
    }  # fmt: skip


def prepared(options) -> tuple[Path, list[dict], list[dict], list[str]]:
    """The index, its documents, those held back, and queries."""
    collection = open_collection(options.data)
    every = [{"id": d.id, "title": d.title, "text": d.text} for d in collection.documents() if d.text]
    every = every[: options.documents or None]
    held, documents = every[:HELD], every[HELD:]
    texts = sorted({*collection.queries().values(), *(d["title"] for d in every)} - {""})
    random.Random(1).shuffle(texts)
    name = f"{Path(options.data).name}-{options.model}-{len(documents)}"
    base = options.output / name
    if not (base / "manifest.json").exists():
        model = None if options.model == "none" else options.model
        cp.index(documents, base, model=model, overwrite=True).close()
    return base, documents, held, texts


def copy_of(base: Path, folder: Path) -> Path:
    """A new copy of an index, and of none of its commits."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(commits_of(folder), ignore_errors=True)
    shutil.copytree(base, folder)
    return folder


def commits_of(folder: Path) -> Path:
    return folder.with_name(folder.name + "-commits")


def first_commit(folder: Path, documents: list[dict]) -> Commit:
    with cp.open(folder, model=None) as notes:
        name = notes.index.manifest.commit
    return Commit(name, float("-inf"), float("-inf"), {d["id"]: checksum(d) for d in documents}, folder)


def checksum(document: Mapping[str, str]) -> int:
    return zlib.crc32(document["text"].encode())


class Server:
    """A server in a process of its own.

    Args:
        pid: of the process.
        port: at which it listens.
        path: of its searches.
    """

    def __init__(self, pid: int, port: int, path: str):
        self.pid, self.port, self.path = pid, port, path

    def send(self, method: str, path: str, body: dict | None = None) -> dict:
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=300) as answer:
            return json.loads(answer.read() or "null")

    def cpu(self) -> float:
        """Seconds of CPU that the process has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def running(system: str, folder: Path, work: Path) -> Iterator[Server]:
    """A server of an index, ready to answer."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    if system == PLAIN:
        command, path = [HERE / "serve_plain.py", folder, port], "/search"
    else:
        command = ["-m", "counterpoint", "serve", f"{NAME}={folder}", "--port", port]
        path = f"/v1/indexes/{NAME}/search"
    with (work / "server.log").open("w") as log:
        process = subprocess.Popen([sys.executable, *map(str, command)], stdout=log, stderr=log)
    server = Server(process.pid, port, path)
    try:
        while True:
            try:
                server.send("GET", "/readyz")
                break
            except OSError:
                if process.poll() is not None:
                    sys.exit(f"{system} ended: {(work / 'server.log').read_text()[-500:]}")
                time.sleep(0.1)
        yield server
    finally:
        process.terminate()
        process.wait()


class Queries:
    """Asks a server queries, each phase the next ones.

    Args:
        options: of the command line.
        texts: the queries, asked in this order again and again.
    """

    def __init__(self, options, texts: list[str]):
        self.k, self.work, self._next = options.k, options.output, 0
        (self.work / "texts.json").write_text(json.dumps(texts))

    def ask(
        self, server: Server, clients: int, seconds: float, requests: int = 10**9, different: int = 10**9
    ) -> tuple[dict, list]:
        """Figures, and the answers to queries of which at most so many are different."""
        began = server.cpu()
        job = {"clients": clients, "seconds": seconds, "requests": requests, "different": different}
        found = self._load(server, job)
        answers = found["answers"]
        times = [1000 * (each["done"] - each["sent"]) for each in answers]
        p50, p95, p99 = np.percentile(times, (50, 95, 99))
        row = {"clients": clients, "queries": len(answers), "rate": len(answers) / found["wall"]}
        row |= {"p50": p50, "p95": p95, "p99": p99, "ratio": p99 / p50, "most": max(times)}
        row |= {"cpu": 1000 * (server.cpu() - began) / len(answers)}
        return row | {"client": found["cpu"] / found["wall"]}, answers

    def warm(self, server: Server) -> None:
        """Load what first answers load: an index switches to compiled kernels after a second of work."""
        self._load(server, {"clients": 2, "seconds": 600, "requests": WARM, "different": WARM})

    def _load(self, server: Server, job: dict) -> dict:
        result = self.work / "load.json"
        job |= {"port": server.port, "path": server.path, "key": None, "k": self.k, "first": self._next}
        job |= {"texts": str(self.work / "texts.json"), "result": str(result)}
        subprocess.run([sys.executable, HERE / "serve_load.py", json.dumps(job)], check=True)
        found = json.loads(result.read_text())
        self._next += len(found["answers"])
        return found


class Writer:
    """Changes an index through its server in a thread, and knows what each commit holds.

    Args:
        server: that serves the index.
        folder: of the index, of which every commit is kept as hard links.
        documents: that it has.
        held: further documents, which come and go.
        pause: seconds after each change.
    """

    def __init__(self, server: Server, folder: Path, documents: list[dict], held: list[dict], pause: float):
        self._server, self._folder, self._pause = server, folder, pause
        self._documents, self._held = documents, held
        first = first_commit(folder, documents)
        self.commits = [self._kept(first.name, -1, first.texts)]
        self._stop, self._thread, self._fault = Event(), Thread(target=self._run), None

    def __enter__(self) -> "Writer":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._fault is not None:
            raise self._fault

    def _run(self) -> None:
        try:
            for number, change in enumerate(cycle((self._add, self._replace, self._delete))):
                change(number // 3)
                if self._stop.wait(self._pause):
                    return
        except Exception as error:
            self._fault = error

    def _add(self, turn: int) -> None:
        some = self._some(turn)
        self._change("POST", {"documents": some}, {d["id"]: checksum(d) for d in some})

    def _replace(self, turn: int) -> None:
        some = random.Random(turn).sample(self._documents[:HELD], REPLACED)
        some = [d | {"text": f"{d['text']} Version {turn}."} for d in some]
        self._change("POST", {"documents": some, "replace": True}, {d["id"]: checksum(d) for d in some})

    def _delete(self, turn: int) -> None:
        names = [d["id"] for d in self._some(turn)]
        self._change("DELETE", {"ids": names}, dict.fromkeys(names))

    def _some(self, turn: int) -> list[dict]:
        at = turn * ADDED % len(self._held)
        return self._held[at : at + ADDED]

    def _change(self, method: str, body: dict, changed: Mapping[str, int | None]) -> None:
        sent = time.monotonic()
        commit = self._server.send(method, f"/v1/indexes/{NAME}/documents", body)["commit"]
        texts = {**self.commits[-1].texts, **changed}
        self.commits.append(self._kept(commit, sent, {i: c for i, c in texts.items() if c is not None}))

    def _kept(self, name: str, sent: float, texts: Mapping[str, int]) -> Commit:
        acknowledged = time.monotonic() if sent >= 0 else float("-inf")
        copy = commits_of(self._folder) / name
        if not copy.exists():
            shutil.copytree(self._folder, copy, copy_function=os.link)
        return Commit(name, sent, acknowledged, texts, copy)


class Sampler:
    """Samples the memory of a process at once, each second, and at the end, in a thread."""

    def __init__(self, pid: int):
        self.samples: list[dict] = []
        self._pid, self._stop, self._thread = pid, Event(), Thread(target=self._run)

    def __enter__(self) -> "Sampler":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        began, ends = time.monotonic(), False
        while not ends:
            ends = bool(self.samples) and self._stop.wait(1)
            lines = Path(f"/proc/{self._pid}/status").read_text().splitlines()
            parts = dict(line.split(":", 1) for line in lines)
            sample = {key: int(parts[key].split()[0]) / 1024 for key in ("VmRSS", "RssAnon")}
            sample |= {"threads": int(parts["Threads"]), "second": time.monotonic() - began}
            self.samples.append(sample | {"files": len(os.listdir(f"/proc/{self._pid}/fd"))})


def summary(samples: list[dict]) -> dict:
    """Memory over time, and its growth from the second fifth of at least two samples to the last."""
    memory, fifth = [each["RssAnon"] for each in samples], max(1, len(samples) // 5)
    early = memory[fifth : 2 * fifth] if len(memory) > 2 else memory[:1]
    middle, last = float(np.median(early)), float(np.median(memory[-fifth:]))
    return {"memory": samples, "growth_mb": last - middle, "growth": last / middle - 1}


COLUMNS = (
    ("server", "{server}"),
    ("index", "{index}"),
    ("clients", "{clients}"),
    ("queries", "{queries:,}"),
    ("queries/s", "{rate:.0f}"),
    ("p50 ms", "{p50:.1f}"),
    ("p95 ms", "{p95:.1f}"),
    ("p99 ms", "{p99:.1f}"),
    ("p99/p50", "{ratio:.1f}"),
    ("longest", "{most:.0f}"),
    ("CPU ms", "{cpu:.1f}"),
    ("clients' CPU", "{client:.0%}"),
)


def heading() -> str:
    return f"| {' | '.join(name for name, _ in COLUMNS)} |\n|{'---|' * len(COLUMNS)}"


def shown(row: dict) -> dict:
    """Print a row of the table."""
    print(f"| {' | '.join(form.format(**row) for _, form in COLUMNS)} |", flush=True)
    return row


def add(counts: dict, more: dict) -> None:
    for key, value in more.items():
        counts[key] = counts.get(key, [] if isinstance(value, list) else 0) + value


def print_summary(counts: dict, commits: int, soak: dict) -> None:
    names = ("answers", "wrong", "stale", "failed", "compared", "scored", "missed")
    print(f"\n| commits | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}")
    print(f"| {' | '.join(f'{each:,}' for each in (commits, *(counts[name] for name in names)))} |")
    print("\n| soak, second | resident MB | anonymous MB | threads | files |\n|---|---|---|---|---|")
    samples = soak["memory"]
    for at in sorted({round(share * (len(samples) - 1) / 10) for share in range(11)}):
        each = samples[at]
        figures = f"{each['VmRSS']:.0f} | {each['RssAnon']:.0f} | {each['threads']} | {each['files']}"
        print(f"| {each['second']:.0f} | {figures} |")
    print(f"\ngrowth: {soak['growth_mb']:+.1f} MB ({soak['growth']:+.1%})")


def save_plot(samples: list[dict], path: Path) -> None:
    """Memory over time."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 4))
    seconds = [each["second"] for each in samples]
    for key, label in (("VmRSS", "resident"), ("RssAnon", "anonymous")):
        axes.plot(seconds, [each[key] for each in samples], label=label)
    axes.set(xlabel="seconds", ylabel="MB", ylim=(0, None))
    axes.legend()
    figure.savefig(path, bbox_inches="tight")
    plt.close(figure)


if __name__ == "__main__":
    main()
