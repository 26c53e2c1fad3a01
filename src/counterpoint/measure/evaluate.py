"""Evaluation by trec_eval's rules: pytrec-eval computes its measures, other providers the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ConfigError, DataError
from counterpoint.frames import frame, html_table
from counterpoint.measure.holes import condense
from counterpoint.measure.judgements import judgements_of, run_of
from counterpoint.measure.names import HIGHEST_GRADE, parse_measure
from counterpoint.search.run import Run
from counterpoint.types import Qrels

if TYPE_CHECKING:
    import pandas
    from ir_measures import Measure, Metric

    from counterpoint.data import Collection

__all__ = ["NOTHING_JUDGED", "Report", "evaluate", "nothing_judged"]

Grades = dict[str, dict[str, int]]
Results = dict[str, dict[str, float]]
Values = dict["Measure", dict[str, float]]
OF_JUDGEMENTS = ("NumQ", "NumRel")  # measures that need no results
NOTHING_JUDGED = (
    "none of the documents found is judged for any query; were the documents and the judgements made from "
    "one corpus?"
)
"""What to say of a run for which `nothing_judged` is true."""


@dataclass(frozen=True)
class Report:
    """Results of an evaluation; measures have the requested names and order.

    Attributes:
        measures: mean over all judged queries; for counts such as `NumRel`, the sum.
        per_query: for each measure, the value of every judged query, in the order of the judgements.
        missing: judged queries without results in the run; they count as empty results, as with `trec_eval
            -c`.
        ignored: queries of the run without judgements; they do not count.
    """

    measures: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]

    @staticmethod
    def of(
        per_query: Mapping[str, Mapping[str, float]], missing: Iterable[str] = (), ignored: Iterable[str] = ()
    ) -> Report:
        """Make a report from values by measure and query, averaged (or summed) as each measure requires.

        Raises:
            ConfigError: a measure is unknown.
        """
        measures = {
            name: _aggregate(parse_measure(name), values.values()) for name, values in per_query.items()
        }
        return Report(measures, per_query, tuple(missing), tuple(ignored))

    def over(self, queries: Iterable[str]) -> Report:
        """The report restricted to these judged queries, in the order of the judgements.

        Raises:
            DataError: there is no query, or this report has no value for one of them.
        """
        chosen = set(queries)
        known = set(next(iter(self.per_query.values()), {}))
        if not chosen or not chosen <= known:
            wrong = f"query {min(chosen - known)!r} was not measured" if chosen else "there are no queries"
            raise DataError(f"cannot restrict the report: {wrong}; name judged queries")
        return Report.of(
            {
                name: {query: value for query, value in values.items() if query in chosen}
                for name, values in self.per_query.items()
            },
            (query for query in self.missing if query in chosen),
            self.ignored,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "measures": dict(self.measures),
            "per_query": {name: dict(values) for name, values in self.per_query.items()},
            "missing": list(self.missing),
            "ignored": list(self.ignored),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """One row per judged query, with its id, and one column per measure.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frame(
            {name: list(values.values()) for name, values in self.per_query.items()},
            list(next(iter(self.per_query.values()), {})),
        )

    def __str__(self) -> str:
        width = max(map(len, self.measures), default=0)
        lines = [f"{name:{width}}  {value:.4f}" for name, value in self.measures.items()]
        return "\n".join([*lines, *self._notes()])

    def _repr_html_(self) -> str:
        queries = len(next(iter(self.per_query.values()), {}))
        return html_table(f"{queries:,} queries", ("measure", "mean"), self.measures.items(), self._notes())

    def _notes(self) -> list[str]:
        notes = []
        if self.missing:
            notes.append(f"{len(self.missing)} judged queries have no results and count as empty")
        if self.ignored:
            notes.append(f"{len(self.ignored)} queries of the run are not judged and were ignored")
        return notes


def evaluate(
    run: Run | Mapping[str, Mapping[str, float]] | str | Path,
    qrels: Qrels | Collection | str | Path,
    measures: str | Sequence[str],
) -> Report:
    """Evaluate a run against judgements.

    Averages are over all judged queries. A judged query that the run lacks counts as an empty result. A query
    whose judgements name no relevant document also counts (as 0, for most measures). A query without any
    judgement is ignored. Documents rank as in `Run`. Measures with `judged_only=True` see the run without
    unjudged documents (`condense`), and cut at k after removing them.

    Args:
        run: a run, a dict from query id to document id to score, or a TREC file.
        qrels: query id to document id to grade; the path of a qrels file; or a collection (open, or its path)
            with one split or a split "test".
        measures: names such as `nDCG@10`, `R@100`, `AP(rel=2)`, `nDCG(judged_only=True)@10`, as a list or
            separated by spaces. trec_eval's names work too.

    Raises:
        ConfigError: a measure is unknown, or no installed provider computes it; or a run or judgements of
            another type.
        DataError: there are no judgements, a file cannot be read, or a grade is too high for trec_eval.

    Example:
        >>> run = Run({"q1": {"a": 2.0, "b": 1.0}})
        >>> print(evaluate(run, {"q1": {"b": 1}}, "RR@10 P@1"))
        RR@10  0.5000
        P@1    0.0000
    """
    names = measures.split() if isinstance(measures, str) else measures
    asked = {name: parse_measure(name) for name in names}
    run, judged = run_of(run), judgements_of(qrels)
    results = {False: _results(run, judged)}
    if any(map(_on_condensed, asked.values())):
        results[True] = _results(condense(run, judged), judged)
    values: Values = {}
    for condensed, found in results.items():
        some = {_bare(measure) for measure in asked.values() if _on_condensed(measure) is condensed}
        computed = _compute(some, found, judged)
        values |= {m: computed[_bare(m)] for m in asked.values() if _on_condensed(m) is condensed}
    return Report.of(
        {
            name: {query: _cut(values[measure][query], measure) for query in judged}
            for name, measure in asked.items()
        },
        (query for query in judged if query not in results[False]),
        (query for query in run if query not in judged),
    )


def nothing_judged(run: Run, qrels: Qrels) -> bool:
    """Whether a run has documents, and none of them is judged for any query: it may be of another corpus."""
    found = {document for query in run for document, _ in run[query]}
    return bool(found) and not any(found & grades.keys() for grades in qrels.values())


def _results(run: Run, judged: Grades) -> Results:
    return {query: found for query in judged if query in run and (found := run.scores(query))}


def _on_condensed(measure: Measure) -> bool:
    return measure.params.get("judged_only", False)


def _compute(measures: set[Measure], results: Results, judged: Grades) -> Values:
    import ir_measures

    values = {
        measure: {query: _of_nothing(measure, judged[query]) for query in judged} for measure in measures
    }
    measures = {measure for measure in measures if measure.NAME not in OF_JUDGEMENTS}
    trec = {measure for measure in measures if ir_measures.pytrec_eval.supports(measure)}
    for some, compute in ((trec, _by_trec_eval), (measures - trec, _by_others)):
        if some:
            for query, measure, value in compute(some, results, judged):
                values[measure][query] = value
    return values


def _of_nothing(measure: Measure, grades: Mapping[str, int]) -> float:
    """The value of an empty result, as in `trec_eval -c`: 0, unless it depends on judgements only."""
    if measure.NAME == "NumRel":
        return sum(grade >= measure["rel"] for grade in grades.values())
    return 1.0 if measure.NAME == "NumQ" else measure.DEFAULT


def _by_trec_eval(measures: set[Measure], results: Results, judged: Grades) -> Iterator[Metric]:
    """Compute with pytrec-eval, which must see no empty result, no grade below 0 and no huge grade.

    With these, it reads and writes outside its memory: it hangs, crashes or corrupts later results (seen with
    pytrec-eval-terrier 0.5.11). trec_eval treats a document with a negative grade as not judged. If all
    grades of a query are negative, they become 0, which changes nothing but keeps the query.
    """
    import ir_measures

    grades: Grades = {}
    for query in results:
        if max(judged[query].values()) > HIGHEST_GRADE:
            raise DataError(
                f"query {query!r} has a grade above {HIGHEST_GRADE}, the highest that trec_eval can hold"
            )
        known = {document: grade for document, grade in judged[query].items() if grade >= 0}
        grades[query] = known or dict.fromkeys(judged[query], 0)
    if not grades:
        return
    # ir_measures (0.4.3) mixes up the gains of nDCG measures that are requested together.
    by_gains: dict[str, set[Measure]] = {}
    for measure in measures:
        by_gains.setdefault(repr(measure.params.get("gains")), set()).add(measure)
    for some in by_gains.values():
        yield from ir_measures.pytrec_eval.evaluator(some, grades).iter_calc(results)


def _by_others(measures: set[Measure], results: Results, judged: Grades) -> Iterator[Metric]:
    """Compute with any installed provider of ir_measures.

    They order equal scores differently, so they get falling ranks. Some write text files and need numeric
    query ids, so they get plain names. Some fail on absent queries, so they see none.
    """
    import ir_measures

    query_of = {str(at): query for at, query in enumerate(results, 1)}
    plain: dict[str, str] = {}

    def renamed(documents: Iterable[str]) -> list[str]:
        return [plain.setdefault(document, f"d{len(plain)}") for document in documents]

    grades = {
        at: dict(zip(renamed(judged[query]), judged[query].values(), strict=True))
        for at, query in query_of.items()
    }
    try:
        evaluator = ir_measures.DefaultPipeline.evaluator(measures, grades)
    except ValueError as error:
        raise ConfigError(f"no installed provider computes this measure. {error}") from error
    ranks = {
        at: {document: -float(rank) for rank, document in enumerate(renamed(results[query]))}
        for at, query in query_of.items()
    }
    try:
        for metric in evaluator.iter_calc(ranks) if ranks else ():
            yield metric._replace(query_id=query_of[metric.query_id])
    except ZeroDivisionError as error:  # Accuracy counts pairs of a relevant and another document
        raise DataError(
            f"{', '.join(map(str, measures))}: not defined where a query's results are all relevant"
        ) from error


def _bare(measure: Measure) -> Measure:
    """The measure to request: without `judged_only`, and RR for RR@k (not in trec_eval)."""
    dropped = {"judged_only", "cutoff"} if measure.NAME == "RR" else {"judged_only"}
    return type(measure)(**{name: value for name, value in measure.params.items() if name not in dropped})


def _cut(value: float, measure: Measure) -> float:
    """RR@k from RR: 1/rank, or 0 if the rank is beyond k."""
    k = measure.params.get("cutoff") if measure.NAME == "RR" else None
    return 0.0 if k is not None and value and round(1 / value) > k else value


def _aggregate(measure: Measure, values: Iterable[float]) -> float:
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return aggregator.result()
