"""Measure one system in a process of its own.

    python one_system.py JOB

`engine.py` starts it with the interpreter that has the system. JOB is JSON: `do` is "check", "build" or
"search", `result` the file for the outcome. The process and all threads that a system starts run on one CPU.
CPU time is that of the process and of those it started and waited for. Memory is the most that was resident
at once (VmHWM, which Linux counts for this process alone).
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import time
from pathlib import Path

from collections_of import files_of
from systems import all_systems

WARM = 10  # queries before times are taken


def main(job: dict) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {job["cpu"]})
    system = all_systems()[job["system"]]
    found = {"check": check, "build": build, "search": search}[job["do"]](system, job)
    Path(job["result"]).write_text(json.dumps(found))


def check(system, job) -> dict:
    return checked(system.needs)


def checked(modules) -> dict:
    """What is missing, and the versions of what is there."""
    roots = dict.fromkeys(name.partition(".")[0] for name in modules)  # what has it need not be imported
    missing = [name for name in roots if importlib.util.find_spec(name) is None]
    return {"missing": missing, "versions": {} if missing else versions(modules)}


def versions(modules) -> dict[str, str]:
    of = importlib.metadata.packages_distributions()
    named = {of[name][0] for module in modules if (name := module.partition(".")[0]) in of}
    return {name: importlib.metadata.version(name) for name in sorted(named)}


def build(system, job) -> dict:
    files, _, before = prepared(system, job)
    folder = Path(job["folder"])
    already = list(files.reading.spent)
    spent, _ = timed(lambda: system.build(files, folder))
    read = [after - before for after, before in zip(files.reading.spent, already, strict=True)]
    spent = [all_of_it - reading for all_of_it, reading in zip(spent, read, strict=True)]
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    told = folder / "encoding.json"  # of systems that encode documents
    encoding = json.loads(told.read_text()) if told.exists() else None
    found = {"build": spent, "bytes": size, "documents": files.documents, "encoding": encoding}
    return {**found, "memory": peak(), "memory_before": before}


def search(system, job) -> dict:
    files, imports, _ = prepared(system, job)
    queries = files.queries(job["queries"] + WARM)
    before, arguments, k = peak_from_now(), system.searches[job["search"]], job["k"]
    shown = min(system.shown or k, k)
    opening, ask = timed(lambda: system.open(files, Path(job["folder"]), **arguments))
    first, _ = timed(lambda: ask(queries[-1], shown))
    until = time.perf_counter() + job["seconds"]
    queries, warming = queries[: job["queries"]], queries[job["queries"] :]
    times_of(ask, warming, shown, until, 0)
    times = times_of(ask, queries, shown, until, job["least"])
    result = {"times": times, "opening": opening, "first": first, "imports": imports}
    asked = queries[: len(times)]
    until = float("inf") if system.encodes else time.perf_counter() + job["seconds"]
    result["again"] = times_of(ask, asked, shown, until, job["least"])
    memory = {"memory": peak(), "memory_before": before}
    found = {query.id: [named(files, each) for each in ask(query, k)] for query in asked}
    return result | memory | {"found": found}


def times_of(ask, queries, k, until, least) -> list[list[float]]:
    """CPU and wall seconds of each answer; none is begun after `until`, once there are enough."""
    times = []
    for query in queries:
        if len(times) >= least and time.perf_counter() > until:
            break
        times.append(timed(lambda query=query: ask(query, k))[0])
    return times


def named(files, document) -> str:
    return files.ids[document] if isinstance(document, int) else document


def prepared(system, job):
    """The collection; the seconds that importing takes; and the memory in use before anything is done."""
    spent, _ = timed(lambda: [importlib.import_module(name) for name in system.needs])
    files = files_of(Path(job["vectors"]), job["documents"])
    if job["do"] == "search":
        files.ready()
    return files, spent, peak_from_now()


def timed(work):
    """CPU and wall seconds of a call, and its result."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = work()
    return [cpu_seconds() - cpu, time.perf_counter() - wall], result


def cpu_seconds() -> float:
    of = os.times()
    return time.process_time() + of.children_user + of.children_system


def peak() -> float:
    """The most memory that was resident at once, in MB."""
    return status("VmHWM")


def peak_from_now() -> float:
    """Forget what was resident before; memory that is resident now, in MB."""
    forget = Path("/proc/self/clear_refs")
    if forget.exists():
        forget.write_text("5")  # sets VmHWM to VmRSS
    return status("VmRSS")


def status(name: str) -> float:
    path = Path("/proc/self/status")
    if not path.exists():
        return float("nan")
    line = next(line for line in path.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
