"""One vector set of a model: the rows of both sides, and their measures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.cli.sampling import Sample, encode_texts
from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

    from counterpoint.model import Model
    from counterpoint.types import Ragged

__all__ = ["Space", "some_rows", "spaces_of"]

ROWS = 10_000  # vectors per side at most, for sets with many per text


@dataclass(frozen=True)
class Space:
    """The vectors of one set.

    Attributes:
        name: name of the set.
        pooled: one row per text.
        sample: the texts.
        queries: vectors of the sample's queries.
        documents: vectors of all its `texts`.
        crossed: vectors of the queries, encoded as documents.
        seed: selects the rows that are measured if there are many.
        weighed: the lengths of the rows are weights of a gate or a router.
        raw: the vectors before they are normalised to length 1, if they are; maps are fitted to these.
    """

    name: str
    pooled: bool
    sample: Sample
    queries: Ragged
    documents: Ragged
    crossed: Ragged
    seed: int
    weighed: bool = False
    raw: Space | None = None

    @property
    def source(self) -> Space:
        """The vectors that maps are fitted and applied to: those before normalisation."""
        return self.raw or self

    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Some rows of the queries, and of the documents that were drawn from all."""
        return some_rows(self.queries.values, self.seed), some_rows(self._drawn().values, self.seed)

    def few(self) -> dict[str, int] | None:
        """Number of rows of each side if one has too few to measure (a gate may drop all); else None."""
        found = {
            "queries": len(self.queries.values),
            "documents": len(self._drawn().values),
            "queries as documents": len(self.crossed.values),
        }
        return found if min(found.values()) < 2 else None

    def groups(self, only: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Rows by their label in a picture; `only` restricts documents to these positions."""
        import numpy as np

        sample = self.sample
        allowed = set(range(len(self.documents)) if only is None else only.tolist())
        places = {document: at for at, document in enumerate(sample.texts)}
        chosen = {
            "relevant documents": [places[document] for document in sample.matching],
            "other documents": [at for at, other in enumerate(sample.other) if other],
        }
        found = {"queries": self.queries.values}
        for name, positions in chosen.items():
            kept = np.array([at for at in positions if at in allowed], np.int64)
            found[name] = self.documents.take(kept).values
        return {name: some_rows(rows, self.seed) for name, rows in found.items()}

    def numbers(self) -> dict[str, Any]:
        """Measures of each side, and between them."""
        queries, documents = self.rows()
        return {
            "pooled": self.pooled,
            "query": _measured(queries),
            "document": _measured(documents),
            "weighed": self.weighed,
            "between": _between(queries, documents, some_rows(self.crossed.values, self.seed), self.weighed),
            "inter_iso": self._inter_iso(),
        }

    def _inter_iso(self) -> dict[str, Any]:
        """InterIso of pairs that belong together, and of all others; weights count, as in training."""
        from counterpoint.measure.inter_iso import all_inter_iso, split_inter_iso

        pairs = self.sample.pairs()
        found = all_inter_iso(self.queries, self.documents, unit=not self.weighed)
        own, other = split_inter_iso(found, pairs)
        return {"pairs": len(pairs), "from": self.sample.pairing(), "together": own, "other": other}

    def _drawn(self) -> Ragged:
        import numpy as np

        return self.documents.take(np.arange(len(self.sample.documents)))


def spaces_of(model: Model, sample: Sample, on: str | None, seed: int) -> dict[str, Space]:
    """Encode the sample into the model's sets, or into one of them.

    Raises:
        ConfigError: the model does not have the set.
    """
    from counterpoint.learn import raw_length

    if on is not None and on not in model.sets:
        raise ConfigError(f"--on {on}: no such vector set; the model has {', '.join(model.sets)}")
    names = [on] if on is not None else list(model.sets)
    unit = [name for name in names if model.has_unit_length(name)]
    undo = [raw_length(model, name) for name in unit]
    shortened = [name for name in unit if not model.has_unit_length(name)]
    queries = list(sample.queries.values())
    try:
        made = encode_texts(
            {
                "query": (model.encode_query, queries),
                "document": (model.encode_document, list(sample.texts.values())),
                "crossed": (model.encode_document, queries),
            }
        )
    finally:
        for take_back in undo:
            take_back()
    found = {}
    for name in names:
        sides, pooled = [made[what][name] for what in made], model.sets[name].pooled
        raw = Space(name, pooled, sample, *sides, seed=seed, weighed=model.is_weighed(name))
        found[name] = raw
        if name in shortened:
            found[name] = Space(name, pooled, sample, *map(_unit, sides), seed=seed, raw=raw)
    return found


def _unit(rows: Ragged) -> Ragged:
    import numpy as np

    from counterpoint.types import Ragged

    lengths = np.linalg.norm(rows.values, axis=1, keepdims=True)
    return Ragged(rows.values / np.where(lengths > 0, lengths, 1), rows.offsets, rows.ids)


def some_rows(rows: np.ndarray, seed: int) -> np.ndarray:
    """Draw at most `ROWS` rows, at the same positions for arrays of equal size."""
    import numpy as np

    if len(rows) <= ROWS:
        return rows
    return rows[np.sort(np.random.default_rng(seed).choice(len(rows), ROWS, replace=False))]


def _measured(rows: np.ndarray) -> dict[str, Any]:
    from counterpoint.measure.alignment import profile
    from counterpoint.measure.isotropy import isotropy

    found = isotropy(rows).to_dict()
    return {**profile(rows).to_dict(), **{key: found[key] for key in ("partition", "iso_score", "outliers")}}


def _between(
    queries: np.ndarray, documents: np.ndarray, crossed: np.ndarray, weighed: bool
) -> dict[str, Any]:
    """Measures between the two sides.

    `kl` is None if both sides encode queries to the same vectors, so that nothing needs alignment. It is also
    None for weighted rows, since documents and queries are weighted differently, and if it cannot be
    estimated: `coincident` of the `compared` rows coincide with another.

    `room` is the query side's 1 − mean cosine of two queries, as a share of the document side's. If it is
    low, a low `kl` does not mean that the sides are aligned. It is 1 if the document side's is 0.
    """
    import numpy as np

    from counterpoint.measure.alignment import DAFT_DELTA, cross_cosine, divergence, mean_cosine

    room = 1 - mean_cosine(crossed)
    kl, coincident, compared = None, 0, 0
    if not weighed and not np.array_equal(queries, crossed):
        # A set with many rows per text may contain a row twice.
        rows, other = np.unique(crossed, axis=0), np.unique(queries, axis=0)
        coincident = compared = len(crossed)
        if len(rows) > 1:
            found = divergence(rows, other)
            kl, coincident, compared = found.kl, found.coincident, found.rows
    return {
        "cosine": cross_cosine(queries, documents),
        "kl": kl,
        "coincident": coincident,
        "compared": compared,
        "delta": DAFT_DELTA * queries.shape[1],
        "room": (1 - mean_cosine(queries)) / room if room > 0 else 1.0,
    }
