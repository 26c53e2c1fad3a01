"""Evaluation by trec_eval's rules: pytrec-eval computes what it knows, other providers the rest."""

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

__all__ = ["Report", "evaluate"]

Grades = dict[str, dict[str, int]]
Results = dict[str, dict[str, float]]
Values = dict["Measure", dict[str, float]]
OF_JUDGEMENTS = ("NumQ", "NumRel")  # measures for which nothing needs to be found


@dataclass(frozen=True)
class Report:
    """How well a run did, by the names the measures were asked for, in that order.

    Attributes:
        measures: over all judged queries: the mean, and the sum for counts such as `NumRel`.
        per_query: for each measure the value of every judged query, in the order of the judgements.
        missing: judged queries for which the run has nothing; they count with the value of an empty result,
            as with `trec_eval -c`.
        ignored: queries of the run that nobody judged; they count nowhere.
    """

    measures: Mapping[str, float]
    per_query: Mapping[str, Mapping[str, float]]
    missing: tuple[str, ...]
    ignored: tuple[str, ...]

    @staticmethod
    def of(
        per_query: Mapping[str, Mapping[str, float]],
        missing: Iterable[str] = (),
        ignored: Iterable[str] = (),
    ) -> Report:
        """A report of values by measure and query, averaged (or summed) as each measure asks.

        Raises:
            ConfigError: a measure that is unknown.
        """
        measures = {
            name: _aggregate(parse_measure(name), values.values()) for name, values in per_query.items()
        }
        return Report(measures, per_query, tuple(missing), tuple(ignored))

    def over(self, queries: Iterable[str]) -> Report:
        """The report of these judged queries alone, in the order of the judgements.

        Raises:
            DataError: there is no query, or one that this report has no value for.
        """
        chosen = set(queries)
        known = set(next(iter(self.per_query.values()), {}))
        if not chosen or not chosen <= known:
            wrong = f"query {min(chosen - known)!r} was not measured" if chosen else "there is no query"
            raise DataError(f"a report over some of its queries: {wrong}; name judged queries")
        return Report.of(
            {
                name: {query: value for query, value in values.items() if query in chosen}
                for name, values in self.per_query.items()
            },
            (query for query in self.missing if query in chosen),
            self.ignored,
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "measures": dict(self.measures),
            "per_query": {name: dict(values) for name, values in self.per_query.items()},
            "missing": list(self.missing),
            "ignored": list(self.ignored),
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A row for every judged query, named by its id, and a column for every measure.

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
        """The means, as a notebook shows them."""
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
    qrels: Qrels | str | Path,
    measures: str | Sequence[str],
) -> Report:
    """Evaluate a run against judgements.

    Averages are over all judged queries. A judged query that the run lacks counts as an empty result; a query
    whose judgements name no relevant document counts too (as 0, for most measures); a query without any
    judgement is ignored. Documents rank as in `Run`. Measures with `judged_only=True` see the run without
    unjudged documents (`condense`), cut at k after these are gone.

    Args:
        run: what was found: a run, query id to document id to score, or a TREC file.
        qrels: query id to document id to grade; or where they are: a qrels file, or a collection with one
            split or one called "test".
        measures: names such as `nDCG@10`, `R@100`, `AP(rel=2)`, `nDCG(judged_only=True)@10`; trec_eval's
            names work too. In a list, or in one text, apart by spaces.

    Raises:
        ConfigError: a measure that is unknown, or that nothing installed can compute; a run or judgements of
            another kind.
        DataError: there are no judgements at all, a file cannot be read, or trec_eval cannot hold a grade.

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


def _results(run: Run, judged: Grades) -> Results:
    """Documents and scores of the judged queries that have any."""
    return {query: found for query in judged if query in run and (found := run.scores(query))}


def _on_condensed(measure: Measure) -> bool:
    return measure.params.get("judged_only", False)


def _compute(measures: set[Measure], results: Results, judged: Grades) -> Values:
    """Every measure for every judged query."""
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
    """The value of an empty result, as `trec_eval -c` has it: 0, unless it depends on judgements only."""
    if measure.NAME == "NumRel":
        return sum(grade >= measure["rel"] for grade in grades.values())
    return 1.0 if measure.NAME == "NumQ" else measure.DEFAULT


def _by_trec_eval(measures: set[Measure], results: Results, judged: Grades) -> Iterator[Metric]:
    """By pytrec-eval, which must see no empty result, no grade below 0 and no huge one.

    On these it reads and writes outside its memory: it hangs, crashes or corrupts what comes next (seen with
    pytrec-eval-terrier 0.5.11). trec_eval takes a document with a negative grade as not judged. Where all of
    a query's grades are negative they become 0, which changes nothing but keeps the query.
    """
    import ir_measures

    grades: Grades = {}
    for query in results:
        if max(judged[query].values()) > HIGHEST_GRADE:
            raise DataError(f"query {query!r} has a grade above {HIGHEST_GRADE}, which trec_eval cannot hold")
        known = {document: grade for document, grade in judged[query].items() if grade >= 0}
        grades[query] = known or dict.fromkeys(judged[query], 0)
    if not grades:
        return
    # ir_measures (0.4.3) computes nDCG by the gains of another nDCG that it is asked for at the same time.
    by_gains: dict[str, set[Measure]] = {}
    for measure in measures:
        by_gains.setdefault(repr(measure.params.get("gains")), set()).add(measure)
    for some in by_gains.values():
        yield from ir_measures.pytrec_eval.evaluator(some, grades).iter_calc(results)


def _by_others(measures: set[Measure], results: Results, judged: Grades) -> Iterator[Metric]:
    """By whichever provider of ir_measures is installed.

    They order equal scores in ways of their own, so they get falling ranks; some write text files and want
    numbers for query ids, so they get plain names; and some fail on absent queries, so they see none.
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
        raise ConfigError(f"nothing that is installed computes this measure. {error}") from error
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
    """What a provider is asked for: the measure without `judged_only`, and RR for RR@k (not in trec_eval)."""
    dropped = {"judged_only", "cutoff"} if measure.NAME == "RR" else {"judged_only"}
    return type(measure)(**{name: value for name, value in measure.params.items() if name not in dropped})


def _cut(value: float, measure: Measure) -> float:
    """RR@k from RR: 1/rank, or 0 where the rank is beyond k."""
    k = measure.params.get("cutoff") if measure.NAME == "RR" else None
    return 0.0 if k is not None and value and round(1 / value) > k else value


def _aggregate(measure: Measure, values: Iterable[float]) -> float:
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return aggregator.result()
