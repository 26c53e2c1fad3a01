"""Evaluation by trec_eval's rules: pytrec-eval computes what it knows, other providers the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ConfigError, DataError
from counterpoint.measure.names import HIGHEST_GRADE, parse_measure
from counterpoint.search.run import Run
from counterpoint.types import Qrels

if TYPE_CHECKING:
    from ir_measures import Measure, Metric

__all__ = ["Report", "evaluate"]

Grades = dict[str, dict[str, int]]
Results = dict[str, dict[str, float]]
Values = dict["Measure", dict[str, float]]


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

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {
            "measures": dict(self.measures),
            "per_query": {name: dict(values) for name, values in self.per_query.items()},
            "missing": list(self.missing),
            "ignored": list(self.ignored),
        }

    def __str__(self) -> str:
        width = max(map(len, self.measures), default=0)
        lines = [f"{name:{width}}  {value:.4f}" for name, value in self.measures.items()]
        if self.missing:
            lines.append(f"{len(self.missing)} judged queries have no results and count as empty")
        if self.ignored:
            lines.append(f"{len(self.ignored)} queries of the run are not judged and were ignored")
        return "\n".join(lines)


def evaluate(run: Run, qrels: Qrels, measures: Sequence[str]) -> Report:
    """Evaluate a run against judgements.

    Averages are over all judged queries. A judged query that the run lacks counts as an empty result; a query
    whose judgements name no relevant document counts too (as 0, for most measures); a query without any
    judgement is ignored. Documents rank as in `Run`.

    Args:
        run: what was found.
        qrels: query id to document id to grade.
        measures: names such as `nDCG@10`, `R@100`, `AP(rel=2)`; trec_eval's names work too.

    Raises:
        ConfigError: a measure that is unknown, or that nothing installed can compute.
        DataError: there are no judgements at all, or a grade that trec_eval cannot hold.

    Example:
        >>> run = Run({"q1": {"a": 2.0, "b": 1.0}})
        >>> print(evaluate(run, {"q1": {"b": 1}}, ["RR@10", "P@1"]))
        RR@10  0.5000
        P@1    0.0000
    """
    asked = {name: parse_measure(name) for name in measures}
    judged = {query: dict(grades) for query, grades in qrels.items() if grades}
    if not judged:
        raise DataError("there is no judgement to evaluate against; is this the right split?")
    results = {query: found for query in judged if query in run and (found := run.scores(query))}
    values = _compute({_without_cutoff(measure) for measure in asked.values()}, results, judged)
    per_query = {
        name: {query: _cut(values[_without_cutoff(measure)][query], measure) for query in judged}
        for name, measure in asked.items()
    }
    return Report(
        measures={name: _aggregate(asked[name], per_query[name].values()) for name in asked},
        per_query=per_query,
        missing=tuple(query for query in judged if query not in results),
        ignored=tuple(query for query in run if query not in judged),
    )


def _compute(measures: set[Measure], results: Results, judged: Grades) -> Values:
    """Every measure for every judged query."""
    import ir_measures

    values = {
        measure: {query: _of_nothing(measure, judged[query]) for query in judged} for measure in measures
    }
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
        return iter(())
    return ir_measures.pytrec_eval.evaluator(measures, grades).iter_calc(results)


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
    for metric in evaluator.iter_calc(ranks) if ranks else ():
        yield metric._replace(query_id=query_of[metric.query_id])


def _without_cutoff(measure: Measure) -> Measure:
    """RR for RR@k, which trec_eval does not have; every other measure as it is."""
    if measure.NAME != "RR":
        return measure
    return type(measure)(**{name: value for name, value in measure.params.items() if name != "cutoff"})


def _cut(value: float, measure: Measure) -> float:
    """RR@k from RR: 1/rank, or 0 where the rank is beyond k."""
    k = measure.params.get("cutoff") if measure.NAME == "RR" else None
    return 0.0 if k is not None and value and round(1 / value) > k else value


def _aggregate(measure: Measure, values: Iterable[float]) -> float:
    aggregator = measure.aggregator()
    for value in values:
        aggregator.add(value)
    return aggregator.result()
