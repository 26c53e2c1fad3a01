"""ΔInterIso of two vector sets of a model, over documents that BM25 retrieves (HIL, table 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.cli.diagnosis.space import Space
from counterpoint.cli.sampling import DEPTH, Sample, bm25_run, encode_texts, some
from counterpoint.errors import ConfigError

if TYPE_CHECKING:
    from counterpoint.index import VectorSet
    from counterpoint.model import Model
    from counterpoint.types import Ragged

__all__ = ["Ends", "Retrieved", "delta_of", "ends_of", "retrieved_of", "unclear"]

Pairs = Sequence[tuple[int, int]]


@dataclass(frozen=True)
class Ends:
    """The two sets whose InterIso is compared.

    Attributes:
        high: the anisotropic one, H.
        low: the isotropic one, L, whose InterIso is subtracted.
    """

    high: str
    low: str


@dataclass(frozen=True)
class Retrieved:
    """Pairs of a sample's query and one of the first `DEPTH` documents that BM25 retrieves for it.

    Attributes:
        texts: the documents by id.
        pairs: positions of a query in the sample and of a document in `texts`.
    """

    texts: Mapping[str, str]
    pairs: Pairs


def ends_of(sets: Mapping[str, VectorSet], high: str | None, low: str | None) -> Ends | None:
    """Decide which set is H and which is L; None if that is not clear.

    Word embeddings are the isotropic half (HIL, section 3.3). Of two multi-vector sets, one of them static,
    the static one is L. Other sets must be named; of two sets, one name is enough.

    Raises:
        ConfigError: the model lacks a named set, or one set is named for both.
    """
    for option, name in (("--high", high), ("--low", low)):
        if name is not None and name not in sets:
            raise ConfigError(f"{option} {name}: no such vector set; the model has {', '.join(sets)}")
    if high is not None and high == low:
        raise ConfigError(f"--high and --low both name {high}; ΔInterIso compares two sets")
    many = [name for name, found in sets.items() if not found.pooled]
    static = [name for name in many if sets[name].static]
    if high is None and low is None and len(many) == 2 and len(static) == 1:
        (low,) = static
    if high is None and low is not None:
        high = _only_other(many, low)
    elif low is None and high is not None:
        low = _only_other(many, high)
    return None if high is None or low is None else Ends(high, low)


def unclear(sets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Names of the measured sets with many rows per text; empty if there are fewer than two."""
    many = [name for name, found in sets.items() if not found["pooled"]]
    return many if len(many) > 1 else []


def retrieved_of(source: str, sample: Sample, size: int, seed: int) -> Retrieved:
    """Draw at most `size` pairs from all that BM25 finds in the whole collection."""
    import numpy as np

    from counterpoint.data import open_collection

    collection = open_collection(source)
    run = bm25_run(collection, sample.queries, DEPTH)
    found = [
        (at, document)
        for at, query in enumerate(sample.queries)
        for document, _ in (run[query] if query in run else [])
    ]
    found = some(found, size, np.random.default_rng(seed))
    wanted = {document for _, document in found}
    texts = {document.id: document.full_text for document in collection.documents() if document.id in wanted}
    places = {document: at for at, document in enumerate(texts)}
    return Retrieved(texts, [(at, places[document]) for at, document in found])


def delta_of(
    model: Model, spaces: Mapping[str, Space], ends: Ends, retrieved: Retrieved
) -> dict[str, Any] | None:
    """InterIso of H − InterIso of L over BM25's pairs, and over judged pairs; None unless both have rows.

    Args:
        model: encodes the documents.
        spaces: the model's sets of the sample, without those of too few rows.
        ends: the two sets.
        retrieved: BM25's pairs.
    """
    if ends.high not in spaces or ends.low not in spaces:
        return None
    made = encode_texts({"document": (model.encode_document, list(retrieved.texts.values()))})["document"]
    sample = spaces[ends.high].sample
    judged = None
    if sample.judged:
        own = {name: spaces[name].documents for name in (ends.high, ends.low)}
        judged = {**_delta(spaces, own, ends, sample.pairs()), "from": sample.pairing()}
    return {
        "high": ends.high,
        "low": ends.low,
        **_delta(spaces, made, ends, retrieved.pairs),
        "from": f"BM25's first {DEPTH} documents of a query",
        "judged": judged,
    }


def _delta(
    spaces: Mapping[str, Space], documents: Mapping[str, Ragged], ends: Ends, pairs: Pairs
) -> dict[str, Any]:
    """Number of pairs whose texts have rows in both sets, and their mean difference (None without any)."""
    import numpy as np

    from counterpoint.measure.inter_iso import delta_inter_iso, pair_inter_iso

    queries = np.array([query for query, _ in pairs], np.int64)
    places = np.array([document for _, document in pairs], np.int64)
    high, low = (
        pair_inter_iso(
            spaces[name].queries.take(queries), documents[name].take(places), unit=not spaces[name].weighed
        )
        for name in (ends.high, ends.low)
    )
    count = int((~np.isnan(high) & ~np.isnan(low)).sum())
    return {"delta": delta_inter_iso(high, low) if count else None, "pairs": count}


def _only_other(names: Sequence[str], name: str) -> str | None:
    others = [other for other in names if other != name]
    return others[0] if len(others) == 1 else None
