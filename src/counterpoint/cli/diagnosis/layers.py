"""Isotropy of every layer of a backbone, over texts that belong together."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from counterpoint.cli.progress import counting
from counterpoint.cli.sampling import Sample, some
from counterpoint.cli.tables import Cell, text_table
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.measure.layers import LayerIsotropy
    from counterpoint.model import Model

__all__ = ["layers_of", "layers_text"]

MEASURES = {"cosine": "cosine", "partition": "I(W)", "iso_score": "IsoScore", "outliers": "outliers"}
PAIRS = 200  # pairs whose texts are measured


def layers_of(model: Model, sample: Sample, seed: int) -> tuple[list[LayerIsotropy], dict[str, int]]:
    """Measure every layer; return the measures, and the number of texts and pairs.

    The texts are those of some random pairs, or without pairs the first ones of the sample.
    """
    import numpy as np

    from counterpoint.encode import EncodeOptions
    from counterpoint.measure.layers import layer_isotropy

    pairs = some(sample.pairs(), PAIRS, np.random.default_rng(seed))
    queries = sorted({query for query, _ in pairs}) or list(range(len(sample.queries)))[:PAIRS]
    documents = sorted({document for _, document in pairs}) or list(range(len(sample.documents)))[:PAIRS]
    # Texts of different pairs may belong together, too.
    together = [
        (queries.index(query), documents.index(document))
        for query, document in sample.pairs()
        if query in queries and document in documents
    ]
    texts = list(sample.queries.values()), list(sample.texts.values())
    with counting("layers", "texts", len(queries) + len(documents)) as more:
        options = EncodeOptions(progress=more)
        found = layer_isotropy(
            model.encoder.encode_layers([texts[0][at] for at in queries], "query", options),
            model.encoder.encode_layers([texts[1][at] for at in documents], "document", options),
            together,
        )
    return found, {"queries": len(queries), "documents": len(documents), "pairs": len(together)}


def layers_text(found: Mapping[str, Any]) -> str:
    """One line per layer."""
    header = ["layer", *(f"{what} {side}" for what in MEASURES.values() for side in ("q", "d"))]
    header += ["InterIso", "others"]
    against = found.get("against")
    header += [] if against is None else ["difference"]
    rows = []
    for layer in found["layers"]:
        cells = [layer["layer"]]
        cells += [_cell(layer[side], what) for what in MEASURES for side in ("query", "document")]
        cells += [_shown(layer["inter_iso"]), _shown(layer["other_inter_iso"])]
        rows.append(cells + ([] if against is None else [_shown(layer.get("log_difference"))]))
    sizes = found["texts"]
    notes = (
        f"Hidden states of all positions of {sizes['queries']:,} queries (q) and {sizes['documents']:,} "
        f"documents (d) in {sizes['pairs']:,} pairs ({found['from']}). Layer 0 is the input of the first "
        "layer. I(W) is of both signs and averaged over batches. Outliers are counted. Others are pairs that "
        "do not belong together."
    )
    if against is not None:
        notes += f" The difference is ln InterIso minus that of {escaped(against)}: above 0, less isotropic."
    return f"{textwrap.fill(notes, 110)}\n{text_table(header, rows)}"


def _cell(numbers: Mapping[str, Any] | None, what: str) -> Cell:
    if numbers is None:
        return "–"
    return len(numbers[what]) if what == "outliers" else _shown(numbers[what])


def _shown(value: float | None) -> Cell:
    return "–" if value is None else value
