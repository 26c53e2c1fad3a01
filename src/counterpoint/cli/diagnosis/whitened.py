"""Effect of whitening, or half of it: fitted on one half of the documents, measured on the other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.cli.diagnosis.space import Space, some_rows
from counterpoint.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.transform import Transform

__all__ = ["HALF", "Whitened", "whitened"]

ENOUGH = 10  # rows per component that a reliable estimate of the covariance needs
HALF = -0.25  # exponent of the variances that goes half the way; whitening's is -0.5


@dataclass(frozen=True)
class Whitened:
    """A space, and two maps fitted on one half of its documents.

    Attributes:
        space: as encoded.
        map: whitening, the whole way.
        half: half the way, which amplifies the directions of least variance less.
        fitted: number of rows they were fitted on.
        held: positions in the sample's `texts` of the held-out documents.
    """

    space: Space
    map: Transform
    half: Transform
    fitted: int
    held: np.ndarray

    def numbers(self) -> dict[str, Any]:
        """The held-out documents before and after, and, of a pooled set with judgements, the ranking."""
        before, rows = (
            some_rows(space.documents.take(self.held).values, space.seed)
            for space in (self.space, self.space.source)
        )
        ranked = _Ranked.of(self.space, self.held)
        return {
            "fitted": self.fitted,
            "enough": ENOUGH * rows.shape[1],
            "rows": len(rows),
            "before": _isotropy(before),
            **_after(self.map, rows, ranked),
            "half": {"power": HALF, **_after(self.half, rows, ranked)},
        }

    def about(self) -> str:
        """Text for a picture's title."""
        return f"whitening fitted on {self.fitted:,} rows"

    def apply(self, rows: np.ndarray) -> np.ndarray:
        """The rows, whitened the whole way."""
        return _mapped(self.map, rows)


@dataclass(frozen=True)
class _Ranked:
    """Held-out documents, ranked by cosine for the queries that have one among them."""

    space: Space
    names: list[str]
    judged: Mapping[str, Mapping[str, int]]
    documents: np.ndarray
    before: Mapping[str, float]

    @classmethod
    def of(cls, space: Space, held: np.ndarray) -> _Ranked | None:
        """None for a set with many rows per text, and without enough judgements for a test."""
        import numpy as np

        names = np.array(list(space.sample.texts), object)[held].tolist()
        pool = set(names)
        judged = {
            query: {document: grade for document, grade in grades.items() if document in pool}
            for query, grades in space.sample.grades.items()
        }
        judged = {query: grades for query, grades in judged.items() if grades}
        if not space.pooled or not space.sample.judged or len(judged) < 2:
            return None
        documents = space.documents.take(held).values
        before = _scores(space, judged, names, space.queries.values, documents)
        return cls(space.source, names, judged, space.source.documents.take(held).values, before)

    def after(self, made: Transform) -> dict[str, Any]:
        """Map both sides, rank again and compare."""
        import numpy as np

        from counterpoint.measure.significance import bootstrap_interval, paired_t_test

        rows = _mapped(made, self.space.queries.values), _mapped(made, self.documents)
        after = _scores(self.space, self.judged, self.names, *rows)
        differences = np.array([after[query] - self.before[query] for query in self.judged])
        low, high = bootstrap_interval(differences)
        return {
            "measure": "nDCG@10",
            "queries": len(self.judged),
            "documents": len(self.names),
            "before": float(np.mean(list(self.before.values()))),
            "after": float(np.mean(list(after.values()))),
            "difference": float(differences.mean()),
            "interval": [low, high],
            "p_value": paired_t_test(differences).p_value,
        }


def whitened(space: Space) -> Whitened | str:
    """Fit both maps on a random half of the documents; return the reason if that is not possible."""
    import numpy as np

    from counterpoint.transform import Whitening

    order = np.random.default_rng(space.seed).permutation(len(space.documents))
    half = len(order) // 2
    rows = space.source.documents.take(np.sort(order[:half])).values
    held = np.sort(order[half:])
    if len(space.documents.take(held).values) < 2:
        return "too few documents to fit it on one half and measure it on the other"
    dim = space.documents.dim
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few rows; the page says so itself
            maps = (Whitening(dim).fit([rows]), Whitening(dim, power=HALF).fit([rows]))
            return Whitened(space, *maps, len(rows), held)
    except DataError as error:
        return str(error)


def _after(made: Transform, rows: np.ndarray, ranked: _Ranked | None) -> dict[str, Any]:
    return {
        "after": _isotropy(_mapped(made, rows)),
        "ranking": None if ranked is None else ranked.after(made),
    }


def _mapped(made: Transform, rows: np.ndarray) -> np.ndarray:
    import numpy as np
    import torch

    from counterpoint.vectors import Vectors

    with torch.inference_mode():  # as one text, so that there is no padding
        values = torch.from_numpy(np.ascontiguousarray(rows, np.float32)).unsqueeze(0)
        vectors = Vectors(values, torch.ones(values.shape[:2], dtype=torch.bool))
        return made(vectors).values[0].numpy()


def _isotropy(rows: np.ndarray) -> dict[str, Any]:
    from counterpoint.measure.isotropy import isotropy

    found = isotropy(rows)
    return {"cosine": found.cosine, "partition": found.partition, "iso_score": found.iso_score}


def _scores(
    space: Space,
    judged: Mapping[str, Mapping[str, int]],
    names: list[str],
    queries: np.ndarray,
    documents: np.ndarray,
) -> dict[str, float]:
    import numpy as np

    from counterpoint.measure import evaluate
    from counterpoint.measure.rows import unit_rows
    from counterpoint.search import Run

    found = unit_rows(np.asarray(queries, np.float64)) @ unit_rows(np.asarray(documents, np.float64)).T
    places = {query: at for at, query in enumerate(space.sample.queries)}
    run = Run.from_arrays({query: (names, found[places[query]].tolist()) for query in judged})
    return dict(evaluate(run, judged, ["nDCG@10"]).per_query["nDCG@10"])
