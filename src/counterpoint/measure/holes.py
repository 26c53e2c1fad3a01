"""Judgement holes: unjudged documents, and the lowest grade of a relevant one."""

from __future__ import annotations

from collections.abc import Sequence

from counterpoint.errors import ConfigError
from counterpoint.measure.names import parse_measure, with_values
from counterpoint.search.run import Run
from counterpoint.types import Qrels

__all__ = ["condense", "with_judging"]

BLIND = ("Bpref", "Judged", "NumQ", "NumRel")
"""Condensing has no effect on these (bpref skips unjudged documents anyway) or makes them useless."""


def condense(run: Run, qrels: Qrels) -> Run:
    """Remove the documents that were not judged for their query: a condensed list.

    Judged documents that are not relevant stay, and ranks close up, so condense the whole run and cut it
    afterwards. As in trec_eval, a document with a negative grade is not judged. A query without judgements
    keeps nothing. Source: Sakai, "Alternatives to bpref", SIGIR 2007.

    Example:
        >>> run = Run({"q": {"unknown": 3.0, "bad": 2.0, "good": 1.0}})
        >>> condense(run, {"q": {"good": 1, "bad": 0}})["q"]
        [('bad', 2.0), ('good', 1.0)]
    """
    kept = {}
    for query in run:
        grades = qrels.get(query, {})
        kept[query] = {
            document: score for document, score in run.scores(query).items() if grades.get(document, -1) >= 0
        }
    return Run(kept, provenance=run.provenance)


def with_judging(
    names: Sequence[str], *, condensed: bool = False, relevant_from: int | None = None
) -> list[str]:
    """Names of the same measures on condensed lists, or with another binarisation point.

    Settings in a name take precedence. Measures without a threshold by default stay without one: nDCG and RBP
    use grades, NumRet counts all documents.

    Args:
        names: measures, as for `evaluate`.
        condensed: remove unjudged documents first (`judged_only=True`), except for measures on which this has
            no effect (Bpref, NumRel, NumQ) or that it makes useless (Judged).
        relevant_from: lowest relevant grade (`rel`). It depends on the collection: TREC DL has grades from 0
            to 3 and counts from 2.

    Raises:
        ConfigError: a measure is unknown, or a grade is below 1.

    Example:
        >>> with_judging(["nDCG@10", "R@100"], condensed=True, relevant_from=2)
        ['nDCG(judged_only=True)@10', 'R(rel=2,judged_only=True)@100']
    """
    if relevant_from is not None and relevant_from < 1:
        raise ConfigError(f"relevant_from must be a grade of at least 1, found {relevant_from}")
    return [_rewritten(name, condensed, relevant_from) for name in names]


def _rewritten(name: str, condensed: bool, relevant_from: int | None) -> str:
    measure = parse_measure(name)
    rel, more = measure.SUPPORTED_PARAMS.get("rel"), {}
    if relevant_from is not None and rel is not None and rel.default == 1:
        more["rel"] = relevant_from
    if condensed and measure.NAME not in BLIND:
        more["judged_only"] = True
    more = {key: value for key, value in more.items() if key not in measure.params}
    return str(with_values(measure, more)) if more else name
