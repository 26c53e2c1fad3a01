"""`RunTeacher`: scores from a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import final

from counterpoint.data import ReadPolicy
from counterpoint.data.reader import strict_reader
from counterpoint.data.trec import is_trec_run, read_trec_run
from counterpoint.errors import DataError
from counterpoint.learn.examples import TrainingSet
from counterpoint.learn.teachers.teacher import Grader, Teacher

__all__ = ["RunTeacher"]


@final
@dataclass(frozen=True)
class RunTeacher(Teacher):
    """Scores from a file, by the ids of the data. A pair that is not in the file has no score.

    The first line decides between a run (`query Q0 document rank score tag`) and four columns like those of
    judgements, with any number as the grade (`query 0 document score`). Both may be `.gz`.

    Args:
        file: its path.
    """

    file: str

    def load(self, data: TrainingSet) -> Grader:
        """Read the file.

        Raises:
            DataError: a line has the wrong format, or the file scores no query of the data.
        """
        path = Path(self.file)
        scores = read_trec_run(path).scores if is_trec_run(path) else _read_scores(path)
        if not scores.keys() & {example.query for example in data.examples}:
            raise DataError(
                f"scores {len(scores)} queries, and none of them is in the training data; check that the "
                "file and the data come from the same collection",
                path=path,
            )
        return _RunGrader(scores)


@final
class _RunGrader(Grader):
    def __init__(self, scores: Mapping[str, Mapping[str, float]]):
        self._scores = scores

    def __call__(self, query: str, documents: Sequence[str]) -> list[float]:
        found = self._scores.get(query, {})
        return [found.get(document, nan) for document in documents]


def _read_scores(path: Path) -> dict[str, dict[str, float]]:
    scores: dict[str, dict[str, float]] = {}
    for number, line in strict_reader(ReadPolicy()).lines(path):
        if not (columns := line.split()):
            continue
        if len(columns) != 4:
            raise DataError(
                "expected a run's six columns or four columns (query 0 document score), found "
                f"{len(columns)}",
                path=path,
                line=number,
            )
        query, _, document, text = columns
        if document in scores.setdefault(query, {}):
            raise DataError(
                f"document {document!r} has a second score for query {query!r}", path=path, line=number
            )
        scores[query][document] = _number(text, path, number)
    return scores


def _number(text: str, path: Path, line: int) -> float:
    try:
        found = float(text)
    except ValueError:
        found = nan
    if not isfinite(found):
        raise DataError(f"the score must be a finite number, found {text!r}", path=path, line=line)
    return found
