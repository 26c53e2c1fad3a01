"""Change one system's index, or search it meanwhile, in a process of its own.

    python one_changed.py JOB

`changes.py` starts it with the interpreter that has the system. JOB is JSON; `do` is the name of one of
`JOBS`. The process and all threads that a system starts run on one CPU.
"""

import importlib
import json
import os
import sys
import time
from itertools import cycle, islice
from pathlib import Path

from change_plan import Plan
from changed import every_system
from collections_of import files_of
from one_system import checked, timed
from some_documents import Documents

PATIENCE = 5  # seconds that an open reader has to find a change
K = 10


def main(job: dict) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {job["cpu"]})
    Path(job["result"]).write_text(json.dumps(JOBS[job["do"]](Work(job))))


class Work:
    """What a job works with.

    Attributes:
        job: as it was given.
        system: that is measured.
        files: the collection.
        plan: what is changed.
        documents: of the collection.
        folder: of the index.
    """

    def __init__(self, job: dict):
        self.job, self.system = job, every_system()[job["system"]]
        self.plan, self.folder = Plan(**job["plan"]), Path(job["folder"])
        self.files = files_of(Path(job["vectors"]), self.plan.total)
        self.documents = Documents(self.files, self.system.kind)

    def writer(self):
        self._import()
        return self.system.writer(self.files, self.folder)

    def reader(self):
        self._import()
        return self.system.reader(self.files, self.folder)

    def _import(self):
        """What a program that has worked for a second has imported, compiled kernels included."""
        for name in self.system.needs:
            importlib.import_module(name)

    def queries(self):
        return self.files.queries(self.job["queries"])

    def some(self, step):
        """The documents that a step adds."""
        return self.documents.some(step.numbers[0], len(step.numbers))

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


def check(work: Work) -> dict:
    return checked(work.system.needs)


def build(work: Work) -> dict:
    """Index the first documents."""
    writer = work.writer()
    spent, _ = timed(lambda: writer.create(work.documents.chunks(work.plan.documents)))
    writer.close()
    return {"build": spent, "bytes": work.bytes()}


def rebuild(work: Work) -> dict:
    """Index the documents that are live at the end, and nothing else, and answer."""
    live, first, writer = work.plan.live("halving"), 0, work.writer()
    ends = [at + 1 for at in range(len(live)) if at + 1 == len(live) or live[at + 1] != live[at] + 1]

    def runs():
        nonlocal first
        for end in ends:
            yield work.documents.some(live[first], end - first)
            first = end

    writer.create(runs())
    writer.close()
    return {"found": answers(work)}


def change(work: Work) -> dict:
    """Add batches, add one by one, delete: how long a commit takes, and until an open reader has it."""
    writer, reader, found = work.writer(), work.reader(), {}
    for query in work.queries():
        reader.search(query, K)
    for phase in ("batches", "singles", "deletes"):
        found[phase] = [changed(work, step, writer, reader) for step in work.plan.steps(phase)]
    writer.close()
    return found | {"documents": work.plan.batches * work.plan.size}


def changed(work: Work, step, writer, reader) -> dict:
    """One commit: its CPU and wall seconds, those of the merges after it, and until a reader has it."""
    some = work.some(step) if step.adds else None
    query = (some or work.documents.some(step.numbers[-1], 1)).asking(-1)
    began = time.perf_counter()
    spent, _ = timed(lambda: writer.add(some) if some else writer.delete(list(map(str, step.numbers))))
    seen = None
    while seen is None and time.perf_counter() - began < PATIENCE:
        reader.refresh()
        if (query.id in reader.search(query, K)) == step.adds:
            seen = time.perf_counter() - began
    tidied, _ = timed(writer.tidy)
    return {"commit": spent, "seen": seen, "tidy": tidied}


def read(work: Work) -> dict:
    """Search for some seconds, say so, and go on until there is a file `stop`."""
    reader, queries, stop = work.reader(), cycle(work.queries()), Path(work.job["stop"])
    for query in islice(queries, work.job["queries"]):
        reader.search(query, K)
    found, faults, refreshed = {"quiet": [], "writing": []}, [], 0.0
    until = time.monotonic() + work.job["seconds"]
    for phase, times in found.items():
        while time.monotonic() < until if phase == "quiet" else not stop.exists():
            at, cpu, refreshing = time.monotonic(), time.process_time(), 0.0
            try:
                if at - refreshed >= work.job["refresh"]:
                    reader.refresh()
                    refreshed, refreshing = at, time.monotonic() - at
                reader.search(next(queries), K)
            except Exception as error:  # of any kind: peers have their own
                faults.append([at, f"{type(error).__name__}: {str(error).strip()[:200]}"])
                continue
            times.append([at, time.monotonic() - at, time.process_time() - cpu, refreshing])
        Path(work.job["quiet"]).touch()
    return found | {"faults": faults}


def rounds(work: Work) -> dict:
    """Add and delete a batch in each round; compact half-way and at the end. What was done, and when."""
    writer, steps, done = work.writer(), work.plan.steps("rounds"), []
    prepared = [(step, work.some(step) if step.adds else None) for step in steps]

    def log(name, call):
        at = time.monotonic()
        call()
        done.append([name, at, time.monotonic()])

    began = time.monotonic()
    for number, (step, some) in enumerate(prepared):
        if step.adds:
            time.sleep(max(0, began + number // 2 * work.job["every"] - time.monotonic()))
            log("add", lambda some=some: writer.add(some))
        else:
            log("delete", lambda step=step: writer.delete(list(map(str, step.numbers))))
        log("merge", writer.tidy)
        if number + 1 in (len(prepared) // 2, len(prepared)):
            log("compact", lambda: writer.compact(False))
    writer.close()
    return {"actions": done}


def halve(work: Work) -> dict:
    """Delete half of the documents: bytes and answers, before compaction and afterwards."""
    writer, found = work.writer(), {"bytes_full": work.bytes()}
    for step in work.plan.steps("halving"):
        found["delete"], _ = timed(lambda step=step: writer.delete(list(map(str, step.numbers))))
    found |= {"bytes_deleted": work.bytes(), "found_deleted": answers(work)}
    found["compact"], _ = timed(lambda: (writer.tidy(), writer.compact(True)))
    writer.close()
    return found | {"bytes_compacted": work.bytes(), "found_compacted": answers(work)}


def answers(work: Work) -> dict[str, list[str]]:
    """What is found by a reader that opens the index now."""
    reader = work.reader()
    return {query.id: reader.search(query, K) for query in work.queries()}


JOBS = {job.__name__: job for job in (check, build, rebuild, change, read, rounds, halve)}

if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
