"""Running systems in processes of their own, and what comes out of it: a row for each way to search."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from collections_of import files_of
from exact import exact_best
from filelock import FileLock, Timeout
from systems import System, all_systems

SCRIPT = Path(__file__).parent / "one_system.py"
REFERENCE = "the default in float32, every document"
KINDS = ("encoding", "texts", "words", "tokens", "pooled", "lexical")
LEAST = 5  # queries that a system answers however long they take
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")  # LanceDB waits for ever with one thread of its own


@dataclass(frozen=True)
class Options:
    """What is measured; see the options of `engine.py run`."""

    vectors: Path
    documents: int
    pythons: dict[str, Path]
    output: Path
    queries: int
    k: int
    kinds: list[str]
    systems: list[str] | None
    environments: Path | None
    limit: float
    seconds: float
    again: bool

    def python(self, name: str, system: System) -> Path | None:
        """The interpreter that has a system; None where its environment was not made."""
        if name in self.pythons:
            return self.pythons[name]
        if not system.environment:
            return Path(sys.executable)
        found = (self.environments or Path()) / system.environment / "bin" / "python"
        return found if self.environments and found.is_file() else None


def measured(options: Options) -> Iterator[dict[str, Any]]:
    """A row for each search of each system that the collection has vectors for."""
    files = files_of(options.vectors, options.documents)
    work = options.output / f"{files.about['name']}-{files.documents}"
    work.mkdir(parents=True, exist_ok=True)
    judge = Judge(files, options, work)
    with alone(work):
        for name, system in chosen(options, files.kinds).items():
            common = {"collection": files.about["name"], "documents": files.documents, "kind": system.kind}
            for row in rows_of(name, system, options, work):
                judge.judge(name, system, row)
                yield common | {"system": name} | row


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """One run at a time uses a folder of indexes.

    Raises:
        ValueError: another one does.
    """
    lock = FileLock(work / ".lock", blocking=False)
    try:
        lock.acquire()
    except Timeout as error:
        raise ValueError(f"{work}: another run uses it; wait for it, or choose another -o") from error
    try:
        yield
    finally:
        lock.release()


def chosen(options: Options, kinds: tuple[str, ...]) -> dict[str, System]:
    """The systems asked for; what measures others by comes first.

    Raises:
        ValueError: there is no such system.
    """
    every = all_systems()
    if unknown := [name for name in options.systems or () if name not in every]:
        raise ValueError(f"--systems: no system {unknown[0]!r}; there are {', '.join(every)}")
    names = sorted(
        options.systems or every, key=lambda name: (KINDS.index(every[name].kind), name != REFERENCE)
    )
    wanted = [kind for kind in kinds if kind in options.kinds]
    return {name: every[name] for name in names if every[name].kind in wanted}


def rows_of(name: str, system: System, options: Options, work: Path) -> Iterator[dict[str, Any]]:
    """Builds a system's index, or takes the one that is there, and searches it in every way."""
    folder = work / re.sub(r"\W+", "-", name)
    python = options.python(name, system)
    job = {"system": name, "vectors": str(options.vectors), "documents": options.documents}
    job |= {"folder": str(folder / "files"), "queries": options.queries, "k": options.k, "least": LEAST}
    job |= {"cpu": min(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0}
    job |= {"seconds": options.limit if name == REFERENCE else options.seconds}
    if python is None:
        wanted = f"--environments, or --python '{name}=PATH'"
        yield {"outcome": f"not installed; make its environment with engine.py install and give {wanted}"}
        return
    there = child(python, job | {"do": "check"}, folder, options.limit)
    if there.get("missing"):
        yield {"outcome": f"not installed: {', '.join(there['missing'])}"}
        return
    built = build(python, job, folder, options) if "outcome" not in there else there
    if "outcome" in built:
        yield {"outcome": f"build: {built['outcome']}"}
        return
    for search in system.searches:
        found = child(python, job | {"do": "search", "search": search}, folder, options.limit)
        yield {"search": search, "versions": there["versions"], "built": built} | found


def build(python: Path, job: dict[str, Any], folder: Path, options: Options) -> dict[str, Any]:
    """What building took: now, or when the index that is there was built."""
    kept = folder / "built.json"
    if kept.exists() and not options.again:
        return json.loads(kept.read_text())
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "files").mkdir(parents=True)
    found = child(python, job | {"do": "build"}, folder, options.limit)
    if "outcome" not in found:
        kept.write_text(json.dumps(found))
    return found


def child(
    python: Path, job: dict[str, Any], folder: Path, limit: float, script: Path = SCRIPT
) -> dict[str, Any]:
    """What a process found, or `outcome`: why it found nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    if sys.stderr.isatty():
        print(f"\r\x1b[K{job['system']}: {job['do']} …", end="\r", file=sys.stderr, flush=True)
    name = re.sub(r"\W+", "-", f"{job['do']} {job.get('search', '')}").strip("-")
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    result.unlink(missing_ok=True)
    environment = os.environ | {f"{name}_NUM_THREADS": "1" for name in THREADS}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}
    command = [str(python), str(script), json.dumps(job | {"result": str(result)})]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            code = process.wait(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return {"outcome": f"not done after {limit:,.0f} s"}
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if code == 0:
        return json.loads(result.read_text())
    said = log.read_text(errors="replace").strip().splitlines() or [f"ended with {code}"]
    return {"outcome": f"failed ({said[-1][:200]}); see {log}"}


class Judge:
    """Turns what processes found into figures: recall against exact rankings, quality, time with encoding."""

    def __init__(self, files: Any, options: Options, work: Path):
        self.files, self.options, self.work = files, options, work
        self.queries, self.qrels = files.queries(options.queries), files.qrels()
        self._best: dict[str, dict[str, list[str]]] = {}
        self._encoding: np.ndarray | None = None

    def judge(self, name: str, system: System, row: dict[str, Any]) -> None:
        """Put figures in place of what a process found."""
        if "outcome" in row:
            return
        times, found = 1000 * np.array(row.pop("times")), row.pop("found")
        if system.kind == "encoding":
            self._encoding = times if self._encoding is None else self._encoding
        if name == REFERENCE:
            self._best["texts"] = found
        row |= self._built(row.pop("built"))
        row |= {"opening_cpu_ms": 1000 * row["opening"][0], "opening_wall_ms": 1000 * row.pop("opening")[1]}
        row |= {"first_cpu_ms": 1000 * row["first"][0], "first_wall_ms": 1000 * row.pop("first")[1]}
        row |= {"imports_cpu_s": row.pop("imports")[0], "queries": len(times)}
        row["own_memory"] = row["memory"] - row["memory_before"]
        if system.kind == "tokens":
            asked = [len(query.tokens) for query in self.queries[: len(times)]]
            row |= {"vectors": self.files.vectors, "query_rows": float(np.mean(asked))}
            row |= {"components": self.files.about["dim"]}
        encoding = self._encoding if system.kind in ("tokens", "pooled") else None
        if system.encodes:
            row |= spread("encoding_", times)
            times = 1000 * np.array(row.pop("again"))
        elif encoding is not None and len(encoding) >= len(times):
            row |= spread("encoding_", times + encoding[: len(times)])
        if "again" in row:
            row |= spread("again_", 1000 * np.array(row.pop("again")))
        row |= spread("", times)
        if system.kind != "encoding":
            row |= self._quality(system.kind, found)

    def _built(self, built: dict[str, Any]) -> dict[str, Any]:
        found = {"build_cpu_s": built["build"][0], "build_wall_s": built["build"][1]}
        found |= {"bytes_a_document": built["bytes"] / built["documents"], "build_memory_mb": built["memory"]}
        return found | ({"encoding_cpu_s": built["encoding"][0]} if built["encoding"] else {})

    def _quality(self, kind: str, found: dict[str, list[str]]) -> dict[str, float]:
        from counterpoint.measure import evaluate  # takes a second to import
        from counterpoint.search import Run

        row = {}
        for k in (10, 100):
            best = self._exact(kind)
            if best and k <= self.options.k:
                shares = [len(set(best[q][:k]) & set(found[q][:k])) / len(best[q][:k]) for q in found]
                row[f"recall@{k}"] = float(np.mean(shares))
        judged = {q: self.qrels[q] for q in found if q in self.qrels}
        if judged:
            run = Run({q: {name: -float(rank) for rank, name in enumerate(found[q])} for q in judged})
            row |= {"nDCG@10": evaluate(run, judged, "nDCG@10").measures["nDCG@10"], "judged": len(judged)}
        return row

    def _exact(self, kind: str) -> dict[str, list[str]] | None:
        if kind in ("tokens", "pooled") and kind not in self._best:
            cache = self.work / f"exact-{kind}.json"
            self._best[kind] = exact_best(self.files, self.queries, self.options.k, kind, cache)
        return self._best.get(kind)


def spread(prefix: str, times: np.ndarray) -> dict[str, float]:
    """p50 and p95 of CPU and wall time [queries, 2]."""
    return {
        f"{prefix}{name}_p{p}_ms": float(np.percentile(column, p))
        for name, column in zip(("cpu", "wall"), times.T, strict=True)
        for p in (50, 95)
    }
