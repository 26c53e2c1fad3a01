"""Whether answers of a server are those of the commits that they name.

What a commit holds is known from outside: its documents, by the one who wrote them, and a copy of its files.
Each answer is compared with that of the library, in one thread on the copy. For some of them, every document
is scored.
"""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
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


def checked(
    answers: Sequence[Mapping[str, Any]], commits: Sequence[Commit], k: int, processes: int, scored: int = 300
) -> dict:
    """How many answers are wrong, failed, or of a commit that was not the last when they were asked.

    Args:
        answers: as `serve_load.py` keeps them.
        commits: in order.
        k: hits that were asked for.
        processes: how many search and score.
        scored: of about how many queries and commits every document is scored.

    Returns:
        Counts: `answers`, `failed`, `stale` (the commit was not the last one then), `wrong`; `compared`, the
        different pairs of a commit and a query; `scored`, those of which every document was scored; `missed`,
        those of them where a better document was proposed by no first stage. And `faults`, some of what is
        wrong, in words.
    """
    found = {"answers": len(answers), "failed": 0, "stale": 0, "wrong": 0}
    found |= {"compared": 0, "scored": 0, "missed": 0}
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
    pairs = sum(map(len, by_commit.values()))
    share = min(1, scored / max(1, pairs))
    tasks = [(commits[0].folder, commits[at], asked, k, share) for at, asked in by_commit.items()]
    with ProcessPoolExecutor(processes) as pool:
        for wrong, scored_here, missed in pool.map(faults_of, tasks):
            found["wrong"] += len(wrong)
            found["scored"] += scored_here
            found["missed"] += missed
            faults += wrong
    found["compared"] = pairs
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


def faults_of(task: tuple[Path, Commit, Mapping[str, list], int, float]) -> tuple[list[str], int, int]:
    """What is wrong in the answers of one commit; of how many every document was scored; and missed."""
    first, commit, asked, k, share = task
    faults, missed, sample = [], 0, set(list(asked)[: math.ceil(share * len(asked))])
    # "torch" takes the encoder that is given, with the vectors that it has, and not the export in the folder.
    with cp.open(commit.folder, model=encoder_of(first), backend="torch") as notes:
        searcher = notes.searcher(SearchOptions())
        names = notes.index.names_of(notes.index.positions)
        if set(names) != set(commit.texts):
            return [f"{commit.name} holds other documents"] * sum(map(len, asked.values())), 0, 0
        every = Run({"": dict.fromkeys(names, 0.0)})
        for query, answers in asked.items():
            own = [(hit.id, hit.score) for hit in notes.search(query, k)]
            found = [fault_of(hits, own, commit.texts) for hits in answers]
            if query in sample:
                scores = dict(searcher.run({"": query}, len(names), candidates=every)[""])
                missed += misses(own, scores)
                found += [None if right(own, scores) else "scoring every document gives other scores"]
            faults += [f"{commit.name}, {query!r}: {fault}" for fault in found if fault]
    return faults, len(sample), missed


def fault_of(
    hits: Sequence[tuple[str, float, int]], own: Sequence[tuple[str, float]], texts: Mapping[str, int]
) -> str | None:
    """What is wrong in an answer, given the library's own and the texts of the commit; None if nothing is."""
    if [id_ for id_, _, _ in hits] != [id_ for id_, _ in own]:
        return f"{[id_ for id_, _, _ in hits]}, not {[id_ for id_, _ in own]}"
    for (id_, score, text), (_, wanted) in zip(hits, own, strict=True):
        if abs(score - wanted) > SLACK:
            return f"{id_!r} scores {wanted:.7f}, not {score:.7f}"
        if text != texts[id_]:
            return f"{id_!r} has another text"
    return None


def right(own: Sequence[tuple[str, float]], scores: Mapping[str, float]) -> bool:
    """Whether hits have the scores of every document, best first."""
    ordered = all(one[1] >= other[1] for one, other in pairwise(own))
    return ordered and all(abs(score - scores[id_]) <= SLACK for id_, score in own)


def misses(own: Sequence[tuple[str, float]], scores: Mapping[str, float]) -> bool:
    """Whether another document has a higher score than the last hit."""
    found = {id_ for id_, _ in own}
    return any(score > own[-1][1] + SLACK for id_, score in scores.items() if id_ not in found)


@cache
def encoder_of(folder: Path) -> Any:
    """The encoder of an index, with the vectors of all queries seen so far; None for BM25 alone."""
    return cp.open(folder, cached=100_000).searcher().model
