"""TREC files: runs with six columns, and qrels with four (or three in BEIR's layout)."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from math import isfinite, nan
from pathlib import Path
from typing import Literal, NamedTuple

from counterpoint.data.output import check_layout, one_line, write_lines
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import open_binary, strict_reader
from counterpoint.errors import DataError
from counterpoint.types import Qrels

__all__ = [
    "QrelsLayout",
    "TrecRun",
    "is_trec_run",
    "read_qrels",
    "read_trec_run",
    "write_qrels",
    "write_trec_run",
]

BLOCK = 1 << 20  # bytes of a run read at a time
GRADE = re.compile(r"[+-]?[0-9]{1,9}")  # trec_eval's grades are C integers, but int() also reads 1_000 and ٣
QrelsLayout = Literal["trec", "msmarco", "beir"]


class TrecRun(NamedTuple):
    """The scores of a run (query id to document id to score, in the order of the file) and its tag."""

    scores: dict[str, dict[str, float]]
    tag: str


def is_trec_run(path: str | Path) -> bool:
    """Whether the first line that is not blank has a run's six columns; also true without such a line.

    Raises:
        DataError: it cannot be read.
    """
    lines = strict_reader(ReadPolicy()).lines(Path(path))
    return next((len(columns) == 6 for _, line in lines if (columns := line.split())), True)


def read_trec_run(path: str | Path) -> TrecRun:
    """Read lines of `query Q0 document rank score tag`, plain or `.gz`.

    The rank is ignored, as in trec_eval; the score decides. The tag is that of the first line. An empty file
    gives no scores and an empty tag.

    Raises:
        DataError: a line does not have six columns or a finite score, or a query lists a document twice.
    """
    path = Path(path)
    sound = _read_sound_run(path) if path.is_file() else None  # a pipe cannot be read twice
    return _read_any_run(path) if sound is None else sound


def write_trec_run(
    scores: Mapping[str, Mapping[str, float]], path: str | Path, *, tag: str = "counterpoint"
) -> None:
    """Write a run with each query's documents by falling score, ties by falling id; scores keep every digit.

    Raises:
        DataError: an id or the tag is empty or contains white space, or a score is not finite.
    """
    write_lines(Path(path), _run_lines(scores, tag))


def read_qrels(path: str | Path, policy: ReadPolicy | None = None) -> dict[str, dict[str, int]]:
    """Read judgements: four columns as in TREC and MS MARCO, or BEIR's three with a header line.

    The first line decides. Three tab-separated columns, of which the last is not a number, are BEIR's header.
    A line that repeats a judgement is accepted; one that contradicts it is an error.

    Raises:
        DataError: a line does not fit, or contradicts an earlier one.
    """
    path = Path(path)
    rows = strict_reader(policy or ReadPolicy()).lines(path)
    wanted: tuple[int, str] = (4, "four columns (query 0 document grade)")
    qrels: dict[str, dict[str, int]] = {}
    for number, line in rows:
        if not line or line.isspace():
            continue
        columns = line.split() if wanted[0] == 4 else line.split("\t")
        if not qrels and wanted[0] == 4 and _is_header(line):
            wanted = (3, "three tab-separated columns (query document grade), as in the header")
            continue
        if len(columns) != wanted[0]:
            raise DataError(
                f"expected {wanted[1]}, found {len(columns)} columns{_advice(line, qrels)}",
                path=path,
                line=number,
            )
        query, document, grade = columns[0], columns[-2], _grade(columns[-1], path, number)
        grades = qrels.setdefault(query, {})
        if grades.setdefault(document, grade) != grade:
            raise DataError(
                f"query {query!r}, document {document!r}: grade {grade} here and {grades[document]} above; "
                "remove one of the two",
                path=path,
                line=number,
            )
    return qrels


def _advice(line: str, before: Qrels) -> str:
    """What to do about a line that has BEIR's three columns, if the file has no header."""
    if before or len(line.split("\t")) != 3:
        return ""
    return r"; if these are BEIR's three, write the line query-id\tcorpus-id\tscore above them"


def write_qrels(qrels: Qrels, path: str | Path, *, layout: QrelsLayout = "trec") -> None:
    """Write judgements: `trec` with spaces, `msmarco` with tabs, `beir` with three columns and a header.

    Raises:
        ConfigError: the layout is unknown.
        DataError: the layout cannot represent an id.
    """
    check_layout(layout, QrelsLayout)
    write_lines(Path(path), _qrels_lines(qrels, layout))


def _read_sound_run(path: Path) -> TrecRun | None:
    """Read a valid run fast, in half the time of checking every line; None if it has any fault."""
    scores: dict[str, dict[str, float]] = {}
    expected: dict[str, int] = {}
    tag, last, rows, current = "", "", 0, {}
    try:
        for lines in _blocks(path):
            for line in lines:
                columns = line.split()
                if not columns:
                    continue
                query, _, document, _, value, tag_here = columns
                if "_" in value or not value.isascii():  # Python reads this as a number, trec_eval does not
                    return None
                if query != last:
                    expected[last] = expected.get(last, 0) + rows
                    tag = tag or tag_here
                    last, rows, current = query, 0, scores.setdefault(query, {})
                current[document] = float(value)
                rows += 1
    except ValueError:  # not six columns, not a number, not UTF-8
        return None
    expected[last] = expected.get(last, 0) + rows
    sound = all(
        len(found) == expected[query] and isfinite(sum(map(abs, found.values())))
        for query, found in scores.items()
    )
    return TrecRun(scores, tag) if sound else None


def _blocks(path: Path) -> Iterator[list[str]]:
    """Yield the lines of a file, many at a time.

    Raises:
        ValueError: it is not UTF-8, or a line is longer than a block.
    """
    decode = codecs.getincrementaldecoder("utf-8-sig")().decode
    rest = ""
    with open_binary(path) as file:
        while block := file.read(BLOCK):
            text = rest + decode(block)
            if text.isspace():  # a small gzip can hold a hundred million blank lines
                rest = ""
                continue
            *lines, rest = text.split("\n")
            if len(rest) > BLOCK:
                raise ValueError("a very long line")
            yield lines
    yield [rest + decode(b"", final=True)]


def _read_any_run(path: Path) -> TrecRun:
    """Read a run line by line, to report the first fault with its line number."""
    scores: dict[str, dict[str, float]] = {}
    tag, last, current = "", None, {}
    for number, line in strict_reader(ReadPolicy()).lines(path):
        if not (columns := line.split()):
            continue
        if len(columns) != 6:
            raise DataError(
                "a run has six columns (query Q0 document rank score tag) and ids without spaces, "
                f"found {len(columns)} columns",
                path=path,
                line=number,
            )
        query, _, document, _, value, tag_here = columns
        if query != last:
            tag = tag or tag_here
            last, current = query, scores.setdefault(query, {})
        if document in current:
            raise DataError(
                f"document {document!r} is ranked twice for query {query!r}", path=path, line=number
            )
        current[document] = score = _score(value)
        if not isfinite(score):
            raise DataError(f"the score must be a finite number, found {value!r}", path=path, line=number)
    return TrecRun(scores, tag)


def _score(text: str) -> float:
    if "_" in text or not text.isascii():
        return nan
    try:
        return float(text)
    except ValueError:
        return nan  # refused like a written nan


def _run_lines(scores: Mapping[str, Mapping[str, float]], tag: str) -> Iterator[str]:
    _one_word(tag, "the tag")
    for query, documents in scores.items():
        _one_word(query, "a query id")
        ranked = sorted(documents.items(), key=lambda item: (item[1], item[0]), reverse=True)
        for rank, (document, score) in enumerate(ranked, 1):
            if not isfinite(score):
                raise DataError(f"query {query!r}, document {document!r}: the score is {score}, not finite")
            yield f"{query} Q0 {_one_word(document, 'a document id')} {rank} {float(score)!r} {tag}"


def _qrels_lines(qrels: Qrels, layout: QrelsLayout) -> Iterator[str]:
    form = {"trec": "{} 0 {} {}", "msmarco": "{}\t0\t{}\t{}", "beir": "{}\t{}\t{}"}[layout]
    check = one_line if layout == "beir" else _one_word
    if layout == "beir":
        yield "query-id\tcorpus-id\tscore"
    for query, grades in qrels.items():
        check(query, "a query id")
        for document, grade in grades.items():
            yield form.format(query, check(document, "a document id"), int(grade))


def _is_header(line: str) -> bool:
    columns = line.split("\t")
    return len(columns) == 3 and not any(letter.isdigit() for letter in columns[2])


def _grade(text: str, path: Path, line: int) -> int:
    if GRADE.fullmatch(text.strip()) is None:
        shown = text if len(text) <= 40 else f"{text[:40]}…"
        raise DataError(
            f"the grade must be a whole number, found {shown!r}; use at most nine digits, 0 to 9",
            path=path,
            line=line,
        )
    return int(text)


def _one_word(text: str, what: str) -> str:
    if not text or text.split() != [text]:
        raise DataError(
            f"{what} must be one word in TREC's files, found {text!r}; use BEIR's layout or other ids"
        )
    return text
