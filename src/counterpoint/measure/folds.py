"""Cross-validation over the queries of a collection that is too small for its own split."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from math import fsum
from pathlib import Path
from typing import Any, Literal, get_args

from counterpoint.errors import ConfigError, DataError
from counterpoint.escapes import json_text
from counterpoint.files import write_atomically
from counterpoint.headers import Header

__all__ = [
    "ChooseOn",
    "CrossValidation",
    "Fold",
    "cross_validate",
    "read_folds",
    "split_folds",
    "write_folds",
]

FORMAT = 1
HEADER = Header("file of folds", (FORMAT,), "write one with `counterpoint folds`", error=DataError)
PARTS = ("train", "validation", "test")
ChooseOn = Literal["train+validation", "validation"]


@dataclass(frozen=True)
class Fold:
    """One split of all queries: ids to train on, to choose on and to test on, each in rising order."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]


@dataclass(frozen=True)
class CrossValidation:
    """Result of choosing a system without looking at the test queries.

    Attributes:
        values: for every query, the value of the system that its fold chose, fold after fold.
        chosen: the name of that system for each fold.
    """

    values: Mapping[str, float]
    chosen: tuple[str, ...]


def split_folds(queries: Iterable[str], folds: int = 5, seed: int = 0) -> tuple[Fold, ...]:
    """Split queries into folds: each is tested once, validated on once, and trained on in all others.

    The ids are sorted by the SHA-256 of `seed`, a line end and the id (UTF-8), and dealt out to groups in
    turn. So the input order does not matter, group sizes differ by at most one query, and every machine and
    version of Python makes the same folds. Fold i is tested on group i and validated on group i + 1. Five
    folds, three of them for training, are the setting of isotropic dense retrieval and (after McDonald et
    al., 2018) of RoC.

    Raises:
        ConfigError: fewer than 3 folds, fewer queries than folds, or a repeated query.

    Example:
        >>> [fold.test for fold in split_folds(["a", "b", "c", "d"], folds=3)]
        [('b', 'd'), ('a',), ('c',)]
    """
    queries = list(queries)
    faults = []
    if folds < 3:
        faults.append(f"folds: training, validation and test need at least 3, found {folds}")
    if len(queries) < folds:
        faults.append(f"folds: {len(queries)} queries do not fill {folds} folds; ask for fewer folds")
    if len(set(queries)) < len(queries):
        twice = Counter(queries).most_common(1)[0][0]
        faults.append(f"folds: query {twice!r} is repeated; give every query once")
    if faults:
        raise ConfigError(*faults)
    dealt = sorted(queries, key=lambda query: (sha256(f"{seed}\n{query}".encode()).digest(), query))
    groups = [tuple(sorted(dealt[at::folds])) for at in range(folds)]
    return tuple(_fold(groups, at) for at in range(folds))


def _fold(groups: Sequence[tuple[str, ...]], at: int) -> Fold:
    validation = (at + 1) % len(groups)
    train = [query for i, group in enumerate(groups) if i not in (at, validation) for query in group]
    return Fold(tuple(sorted(train)), groups[validation], groups[at])


def write_folds(folds: Sequence[Fold], path: str | Path, *, seed: int | None = None) -> None:
    """Write folds as JSON, with the seed that made them (None if they come from elsewhere).

    Raises:
        ArtifactError: the file could not be written.
    """
    data = {"format": FORMAT, "seed": seed, "folds": [asdict(fold) for fold in folds]}
    text = json_text(data, indent=1) + "\n"
    write_atomically(Path(path), lambda target: target.write_text(text, encoding="utf-8"))


def read_folds(path: str | Path) -> tuple[Fold, ...]:
    """Read a file of `write_folds`, or other folds in the same format.

    Raises:
        DataError: it is not such a file; a fold repeats a query or lacks one that another has; or a query is
            not tested exactly once.
    """
    path = Path(path)
    data = HEADER.read(path)
    if not isinstance(data.get("folds"), list):
        expected = f'{{"format": {FORMAT}, "seed": …, "folds": […]}}'
        raise DataError(f"not a file of folds: expected {expected}; {HEADER.remedy}", path=path)
    folds = tuple(_read_fold(entry, f"fold {number}", path) for number, entry in enumerate(data["folds"], 1))
    _check(folds, path)
    return folds


def _read_fold(entry: Any, where: str, path: Path) -> Fold:
    if not isinstance(entry, dict) or entry.keys() != set(PARTS):
        raise DataError(f"{where}: expected train, validation and test, and nothing else", path=path)
    for part, ids in entry.items():
        if not isinstance(ids, list) or not ids or not all(isinstance(id_, str) for id_ in ids):
            raise DataError(f"{where}: {part} must be a list of query ids that is not empty", path=path)
    return Fold(**{part: tuple(ids) for part, ids in entry.items()})


def _check(folds: Sequence[Fold], path: Path) -> None:
    """Check that every fold has each query in one part, and that each query is tested once."""
    tested = Counter(query for fold in folds for query in fold.test)
    if not tested:
        raise DataError("there are no folds", path=path)
    for number, fold in enumerate(folds, 1):
        counts = Counter([*fold.train, *fold.validation, *fold.test])
        for query, count in counts.items():
            if count > 1:
                raise DataError(f"fold {number}: query {query!r} is in it {count} times", path=path)
        if counts.keys() != tested.keys():
            query = min(counts.keys() ^ tested.keys())
            what = "is tested in no fold" if query in counts else "is tested elsewhere but missing here"
            raise DataError(f"fold {number}: query {query!r} {what}", path=path)
    query, count = tested.most_common(1)[0]
    if count > 1:
        raise DataError(f"query {query!r} is tested in {count} folds; it must be in one", path=path)


def cross_validate(
    systems: Mapping[str, Mapping[str, float]],
    folds: Sequence[Fold],
    *,
    choose_on: ChooseOn = "train+validation",
) -> CrossValidation:
    """Choose in each fold the system with the highest mean, and take its values for the test queries.

    Args:
        systems: candidate to query to value, such as `{name: report.per_query["nDCG@10"]}`; the first of
            equal candidates is chosen.
        folds: of the queries on which the candidates were measured.
        choose_on: queries of the mean. If the candidates were fitted on the training queries, choose on
            `validation` alone.

    Raises:
        ConfigError: there is no candidate, or `choose_on` is invalid.
        DataError: the queries of a candidate differ from those of the folds.
    """
    if not systems:
        raise ConfigError("cross-validation chooses between systems, but there are none")
    if choose_on not in get_args(ChooseOn):
        raise ConfigError(f"choose_on must be {' or '.join(get_args(ChooseOn))}, found {choose_on!r}")
    queries = {query for fold in folds for query in fold.test}
    for name, measured in systems.items():
        if measured.keys() != queries:
            query = min(measured.keys() ^ queries)
            where = "was measured but is in no fold"
            if query not in measured:
                where = "is in the folds but was not measured"
            raise DataError(f"{name}: query {query!r} {where}; make folds of these judgements")
    values, chosen = {}, []
    for fold in folds:
        seen = fold.validation if choose_on == "validation" else fold.train + fold.validation
        best = max(systems, key=lambda name, seen=seen: _mean(systems[name], seen))
        chosen.append(best)
        values |= {query: systems[best][query] for query in fold.test}
    return CrossValidation(values, tuple(chosen))


def _mean(values: Mapping[str, float], queries: Collection[str]) -> float:
    """Exactly rounded, so that ties do not depend on the order of queries."""
    return fsum(values[query] for query in queries) / len(queries)
