"""Whether answers of a server are those of the commits that they name, by scoring every document.

What a commit holds is known from outside: its documents, by the one who wrote them, and a copy of its files.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import counterpoint as cp
from counterpoint.library.options import SearchOptions
from counterpoint.search import Run

SLACK = 1e-5  # of a score; a query's vectors depend a little on what is encoded in the same call


@dataclass(frozen=True)
class Commit:
    """One state of the index.

    Attributes:
        name: as the server has it.
        sent: when the change was sent, in seconds of the monotonic clock; −inf for the first commit.
        acknowledged: when the server said that it is done.
        texts: checksum of the text of each document.
        folder: a copy of the index.
    """

    name: str
    sent: float
    acknowledged: float
    texts: Mapping[str, int]
    folder: Path


def checked(answers: Sequence[Mapping[str, Any]], commits: Sequence[Commit], k: int, processes: int) -> dict:
    """How many answers are wrong, failed, or of a commit that was not the last when they were asked.

    Args:
        answers: as `serve_load.py` keeps them.
        commits: in order.
        k: hits that were asked for.
        processes: how many compute scores.

    Returns:
        Counts: `answers`, `failed`, `stale`, `wrong`, and `missed`, answers that lack a document with a
        higher score, as the library does at the same commit; `scored`, how many pairs of a commit and a
        query were computed; and `faults`, some of what is wrong, in words.
    """
    found = {"answers": len(answers), "failed": 0, "stale": 0, "wrong": 0, "missed": 0, "scored": 0}
    faults: list[str] = []
    by_commit: dict[int, dict[str, list]] = {}
    for answer in answers:
        if "fault" in answer:
            found["failed"] += 1
            faults.append(f"{answer['status']}: {answer['fault']}")
            continue
        at = state_of(answer, commits)
        if at is None:
            found["stale"] += 1
            faults.append(f"{answer['asked']!r}: commit {answer['commit']} was not the last one then")
            continue
        by_commit.setdefault(at, {}).setdefault(answer["asked"], []).append(answer["hits"])
    tasks = [(commits[0].folder, commits[at], asked, k) for at, asked in by_commit.items()]
    with ProcessPoolExecutor(processes) as pool:
        for (*_, asked, _), (wrong, missed) in zip(tasks, pool.map(faults_of, tasks), strict=True):
            found["wrong"] += len(wrong)
            found["missed"] += missed
            found["scored"] += len(asked)
            faults += wrong
    return found | {"faults": faults[:20]}


def state_of(answer: Mapping[str, Any], commits: Sequence[Commit]) -> int | None:
    """Number of the commit that an answer is of; None if that was not the last one while it was made.

    A change may be followed by a merge, a commit of its own that changes no score. The answer to the change
    names the merge. So an unknown name counts as that of the change that was under way.
    """
    least = max(at for at, each in enumerate(commits) if each.acknowledged <= answer["sent"])
    most = max(at for at, each in enumerate(commits) if each.sent <= answer["done"])
    names = [each.name for each in commits]
    if answer["commit"] is None:  # a server without commits, and without changes
        return least
    if answer["commit"] in names:
        at = names.index(answer["commit"])
        return at if least <= at <= most else None
    under_way = [at for at in range(least + 1, most + 1)]
    return under_way[0] if len(under_way) == 1 else None


def faults_of(task: tuple[Path, Commit, Mapping[str, list], int]) -> tuple[list[str], int]:
    """What is wrong in the answers of one commit, and how many miss a better document as the library does."""
    first, commit, asked, k = task
    faults, missed = [], 0
    # "torch" takes the encoder that is given, with the vectors that it has, and not the export in the folder.
    with cp.open(commit.folder, model=encoder_of(first), backend="torch") as notes:
        searcher = notes.searcher(SearchOptions())
        names = notes.index.names_of(notes.index.positions)
        if set(names) != set(commit.texts):
            return [f"{commit.name} holds other documents"] * sum(map(len, asked.values())), 0
        every = Run({"": dict.fromkeys(names, 0.0)})
        for query, answers in asked.items():
            scores = dict(searcher.run({"": query}, len(names), candidates=every)[""])
            for hits in answers:
                fault = fault_of(hits, scores, commit.texts, k)
                if fault == MISSED and [h.id for h in notes.search(query, k)] == [h[0] for h in hits]:
                    missed += 1
                elif fault:
                    faults.append(f"{commit.name}, {query!r}: {fault}")
    return faults, missed


MISSED = "a document with a higher score is missing"


def fault_of(
    hits: Sequence[tuple[str, float, int]], scores: Mapping[str, float], texts: Mapping[str, int], k: int
) -> str | None:
    """What is wrong in an answer, given the score and the text of every document; None if nothing is."""
    ids = [id_ for id_, _, _ in hits]
    if len(set(ids)) < len(ids) or len(ids) != min(k, len(scores)):
        return f"{len(set(ids))} different documents of {len(ids)} hits"
    for (id_, score, text), after in zip(hits, [*hits[1:], None], strict=True):
        if id_ not in scores:
            return f"{id_!r} is not in the index"
        if text != texts[id_]:
            return f"{id_!r} has another text"
        if abs(score - scores[id_]) > SLACK:
            return f"{id_!r} scores {scores[id_]:.7f}, not {score:.7f}"
        if after is not None and score < after[1]:
            return f"{id_!r} stands before a document with a higher score"
    best = max((score for id_, score in scores.items() if id_ not in set(ids)), default=float("-inf"))
    return MISSED if best > hits[-1][1] + SLACK else None


@cache
def encoder_of(folder: Path) -> Any:
    """The encoder of an index, with the vectors of all queries seen so far; None for BM25 alone."""
    return cp.open(folder, cached=100_000).searcher().model
