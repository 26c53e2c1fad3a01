"""What whitening would do: fitted on one half of the documents, measured on the other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.cli.diagnosis.space import Space, some_rows

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.transform import Transform

__all__ = ["Whitened", "whitened"]

ENOUGH = 10  # rows for each component, below which an estimate of the covariance is not to be trusted


@dataclass(frozen=True)
class Whitened:
    """A space, and a map fitted on one half of its documents.

    Attributes:
        space: as encoded.
        map: what was fitted.
        fitted: rows it was fitted on.
        held: which documents of the sample's `texts` it never saw.
    """

    space: Space
    map: Transform
    fitted: int
    held: np.ndarray

    def numbers(self) -> dict[str, Any]:
        """The held-out documents before and after, and, of a pooled set with judgements, the ranking."""
        before = some_rows(self.space.documents.take(self.held).values, self.space.seed)
        found = {
            "fitted": self.fitted,
            "enough": ENOUGH * before.shape[1],
            "rows": len(before),
            "before": _isotropy(before),
            "after": _isotropy(self.apply(before)),
        }
        return {**found, "ranking": self._ranking() if self.space.pooled else None}

    def about(self) -> str:
        """For a picture's title."""
        return f"whitening fitted on {self.fitted:,} rows"

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """The rows, whitened."""
        import numpy as np
        import torch

        from counterpoint.vectors import Vectors

        with torch.inference_mode():  # as one text, so that no padding takes part
            values = torch.from_numpy(np.ascontiguousarray(rows, np.float32)).unsqueeze(0)
            vectors = Vectors(values, torch.ones(values.shape[:2], dtype=torch.bool))
            return self.map(vectors).values[0].numpy()

    def _ranking(self) -> dict[str, Any] | None:
        """Of the held-out documents by cosine, for the queries that have one; None without judgements."""
        import numpy as np

        from counterpoint.measure.significance import bootstrap_interval, paired_t_test

        space = self.space
        names = np.array(list(space.sample.texts), object)[self.held].tolist()
        pool = set(names)
        judged = {
            query: {document: grade for document, grade in grades.items() if document in pool}
            for query, grades in space.sample.grades.items()
        }
        judged = {query: grades for query, grades in judged.items() if grades}
        if space.sample.split is None or len(judged) < 2:
            return None
        documents = space.documents.take(self.held).values
        before = _scores(space, judged, names, space.queries.values, documents)
        after = _scores(space, judged, names, self.apply(space.queries.values), self.apply(documents))
        differences = np.array([after[query] - before[query] for query in judged])
        low, high = bootstrap_interval(differences)
        return {
            "measure": "nDCG@10",
            "queries": len(judged),
            "documents": len(names),
            "before": float(np.mean(list(before.values()))),
            "after": float(np.mean(list(after.values()))),
            "difference": float(differences.mean()),
            "interval": [low, high],
            "p_value": paired_t_test(differences).p_value,
        }


def whitened(space: Space) -> Whitened | str:
    """Fit whitening on a random half of the documents; a sentence where that is not possible."""
    import numpy as np

    from counterpoint.errors import DataError
    from counterpoint.transform import Whitening

    order = np.random.default_rng(space.seed).permutation(len(space.documents))
    half = len(order) // 2
    rows = space.documents.take(np.sort(order[:half])).values
    held = np.sort(order[half:])
    if len(space.documents.take(held).values) < 2:
        return "the documents are too few to fit it on one half and look at the other"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of too few rows; the page says so in its words
            return Whitened(space, Whitening(space.documents.dim).fit([rows]), len(rows), held)
    except DataError as error:
        return str(error)


def _isotropy(rows: np.ndarray) -> dict[str, Any]:
    from counterpoint.measure.isotropy import isotropy

    found = isotropy(rows)
    return {"cosine": found.cosine, "partition": found.partition, "iso_score": found.iso_score}


def _scores(
    space: Space,
    judged: dict[str, dict[str, int]],
    names: list[str],
    queries: np.ndarray,
    documents: np.ndarray,
) -> dict[str, float]:
    """The nDCG@10 of every judged query, all of the documents ranked by cosine."""
    import numpy as np

    from counterpoint.measure import evaluate
    from counterpoint.measure.rows import unit_rows
    from counterpoint.search import Run

    found = unit_rows(np.asarray(queries, np.float64)) @ unit_rows(np.asarray(documents, np.float64)).T
    places = {query: at for at, query in enumerate(space.sample.queries)}
    run = Run.from_arrays({query: (names, found[places[query]].tolist()) for query in judged})
    return dict(evaluate(run, judged, ["nDCG@10"]).per_query["nDCG@10"])
