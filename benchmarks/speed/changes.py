"""Indexes that change: what a commit costs, when a reader sees it, and what searches take meanwhile.

    export OMP_NUM_THREADS=1
    python benchmarks/speed/changes.py ARXIV SYNTHETIC -o WORK --documents 2000 20000
        --environments PEERS --json FILE --plot FOLDER

The collections are those of `engine.py prepare` and `engine.py synthesise`, the environments those of
`engine.py install`. Every system starts with the same documents and makes the same changes:

1. 20 batches of 100 documents are added, a commit each, then 50 documents one by one;
2. 20 batches of 100 documents are deleted by their ids, a commit each;
3. a reader in a process of its own searches for some seconds; then it goes on while a writer, on another CPU
   if there is one, adds 100 documents, deletes 100 and merges in each of 20 rounds, a second apart, and
   compacts twice. The reader looks for commits every tenth of a second, within the time of a search;
4. half of the documents are deleted, and the index is compacted.

"Seen" is from the call that adds or deletes until an open reader in the same process answers so: the added
document is among the best 10 for its own vectors or terms, the deleted one no longer. "Merging" is what a
system does after commits by itself, where that is not in the commit. Commits leave the encoder out: systems
are given vectors. Times are wall time in milliseconds unless said otherwise. Answers after step 4 are
compared with exact MaxSim, or with BM25 that counts live documents only; those of the default with an index
built anew.
"Wrong" counts answers that are not live documents, "failed" searches during the rounds that raised an error.
"""

import argparse
import json
import os
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from change_exact import bm25_scores, judged, maxsim_scores, same
from change_plan import Plan
from changed import every_system
from changes_table import figures, print_tables, save_plot
from collections_of import files_of
from engine_measure import alone, child

SCRIPT = Path(__file__).parent / "one_changed.py"


def main() -> None:
    options = parser().parse_args()
    rows = []
    for vectors in options.vectors:
        for documents in options.documents:
            rows += print_tables(measured(options, vectors, documents))
            if options.json:
                options.json.write_text(json.dumps(rows, indent=1))
    if options.plot:
        options.plot.mkdir(parents=True, exist_ok=True)
        for row in rows:
            if "timeline" in row:
                save_plot(row, options.plot / f"{named(row['system'])}-{row['documents']}.svg")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("vectors", type=Path, nargs="+", help="folders that engine.py made")
    found.add_argument("-o", "--output", type=Path, required=True, help="where indexes are written")
    found.add_argument("--documents", type=int, nargs="+", default=[2000], help="at first")
    found.add_argument("--size", type=int, default=Plan.size, help="documents of a batch")
    found.add_argument("--batches", type=int, default=Plan.batches)
    found.add_argument("--singles", type=int, default=Plan.singles)
    found.add_argument("--deletes", type=int, default=Plan.deletes)
    found.add_argument("--rounds", type=int, default=Plan.rounds)
    found.add_argument("--every", type=float, default=1.0, help="seconds from round to round")
    found.add_argument("--refresh", type=float, default=0.1, help="seconds until a reader looks for commits")
    found.add_argument("--seconds", type=float, default=20, help="of searching before the rounds")
    found.add_argument("--queries", type=int, default=30)
    found.add_argument("--systems", nargs="+", choices=list(every_system()))
    found.add_argument("--environments", type=Path, help="the folder of engine.py install")
    found.add_argument("--limit", type=float, default=1800, help="seconds for each process")
    found.add_argument("--json", type=Path)
    found.add_argument("--plot", type=Path, help="a folder for plots of latency over time")
    return found


def measured(options, vectors: Path, documents: int):
    """A row for each system."""
    parts = {name: getattr(options, name) for name in ("size", "batches", "singles", "deletes", "rounds")}
    plan = Plan(documents, **parts)
    files = files_of(vectors, plan.total)
    work = options.output / f"{files.about['name']}-{documents}"
    work.mkdir(parents=True, exist_ok=True)
    with alone(work):
        for name, system in every_system().items():
            if system.kind in files.kinds and (not options.systems or name in options.systems):
                one = One(options, plan, vectors, work, name)
                row = {"collection": files.about["name"], "documents": documents, "kind": system.kind}
                yield row | {"system": name, "load": os.getloadavg()[0]} | one.row(files)


class One:
    """One system and its processes.

    Args:
        options: of the command line.
        plan: what is changed.
        vectors: folder of the collection.
        work: folder of indexes.
        name: of the system.
    """

    def __init__(self, options, plan: Plan, vectors: Path, work: Path, name: str):
        self.options, self.plan, self.name, self.work = options, plan, name, work
        self.system, self.folder = every_system()[name], work / named(name)
        self.python = Path(sys.executable)
        if self.system.environment:
            self.python = (options.environments or Path()) / self.system.environment / "bin" / "python"
        self.cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]
        self.job = {"system": name, "vectors": str(vectors), "plan": asdict(plan), "cpu": self.cpus[0]}
        self.job |= {name: getattr(options, name) for name in ("queries", "refresh", "seconds", "every")}
        self.job |= {name: str(self.folder / name) for name in ("quiet", "stop")}

    def row(self, files) -> dict:
        """All figures of a system, or `outcome`: why there are none."""
        if not self.python.is_file():
            return {"outcome": "not installed; see engine.py install and --environments"}
        shutil.rmtree(self.folder, ignore_errors=True)
        found = {}
        for job in ("check", "build", "change", "rounds", "halve"):
            each = self.searched_meanwhile() if job == "rounds" else self.do(job)
            if missing := each.get("missing"):
                each = {"outcome": f"not installed: {', '.join(missing)}"}
            if "outcome" in each and job != "rounds":  # a reader that died leaves an index
                return {"outcome": f"{job}: {each['outcome']}"}
            found[job] = each
        return figures(found) | self.quality(files, found["halve"])

    def do(self, job: str, index: str = "files", **more) -> dict:
        folder = self.folder / index
        folder.mkdir(parents=True, exist_ok=True)
        job_and_more = self.job | {"do": job, "folder": str(folder)} | more
        return child(self.python, job_and_more, self.folder, self.options.limit, SCRIPT)

    def searched_meanwhile(self) -> dict:
        """A reader in one process; and in another, once it has searched in quiet, a writer."""
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(self.do, "read")
            try:
                while not (self.folder / "quiet").exists() and not reading.done():
                    time.sleep(0.05)
                written = {} if reading.done() else self.do("rounds", cpu=self.cpus[-1])
            finally:
                (self.folder / "stop").touch()
            read = reading.result()
        return read if "outcome" in read else read | written

    def quality(self, files, found: dict) -> dict:
        """How good the answers are after all changes, before the last compaction and afterwards."""
        queries, live = files.queries(self.options.queries), self.plan.live("halving")
        if self.system.kind == "words":
            wanted = self.do("rebuild", "again")
            if "outcome" in wanted:
                return {"note": wanted["outcome"]}
            judge = lambda names: {"recall": same(names, wanted["found"]), "wrong": wrong(names, live)}  # noqa: E731
        else:
            scores = self.scores(files, queries, live)
            judge = lambda names: judged(names, queries, scores, live)  # noqa: E731
        return {
            f"{figure}_{when}": value
            for when in ("deleted", "compacted")
            for figure, value in judge(found[f"found_{when}"]).items()
        }

    def scores(self, files, queries, live):
        if self.system.kind == "tokens":
            return maxsim_scores(files, queries, self.work / "exact-tokens.npy")
        return bm25_scores(list(files.terms()), live, queries, self.system.k1, self.system.b)


def wrong(found: dict, live) -> int:
    there = set(map(str, live))
    return sum(len(names) - len(there & {*names}) for names in found.values())


def named(system: str) -> str:
    """A system's name as that of a folder."""
    return re.sub(r"\W+", "-", system)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
