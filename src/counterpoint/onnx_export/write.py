"""Write a model's query side, and compare its vectors with the model's."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterpoint.encode import EncodeOptions
from counterpoint.encode.sources import locate
from counterpoint.errors import CounterpointError
from counterpoint.model import Model
from counterpoint.onnx_encoder.description import GRAPH, Description, TextSide
from counterpoint.onnx_encoder.kernels import compiled_kernels
from counterpoint.onnx_encoder.model import ExportedModel, open_export
from counterpoint.onnx_export.graph import CannotExport
from counterpoint.onnx_export.network import network_of
from counterpoint.onnx_export.parity import BOUND, NEAR, QUERIES, TEXTS, difference, nearness
from counterpoint.onnx_export.simplified import simplified
from counterpoint.onnx_export.sources import Sources
from counterpoint.types import Side

__all__ = ["export_queries"]

LARGE = 10**6  # with more weights than this, kernels are compiled here, so that no query waits for it


def export_queries(model: Model, folder: Path) -> dict[str, Any]:
    """Write the query side of a model into a folder.

    The folder is left unchanged if the model cannot be exported, if ONNX Runtime is not installed, or if
    vectors differ by more than `BOUND`.

    Returns:
        `texts`, the number of compared texts, `difference`, the largest found, `cosine`, the mean cosine in
        8 bits, and `bits`, of the matrices by default; or `why` there is no export.
    """
    before = set(folder.iterdir())
    try:
        description = _written(model, folder)
        exported, rounded = (_opened(model, folder, int8=int8) for int8 in (False, True))
        texts, found = _compared(exported, model)
        if found > BOUND:
            raise CannotExport(f"its vectors differ by {found:.1e} from the model's, more than {BOUND:.0e}")
        if sum(math.prod(weight.shape) for weight in description.weights.values()) > LARGE:
            compiled_kernels()
        cosine = nearness(rounded.encode_query(QUERIES), exported.encode_query(QUERIES))
        bits = 8 if cosine >= NEAR else 32
        replace(description, texts=texts, difference=found, bits=bits).write(folder)
    except (CannotExport, ImportError, CounterpointError) as error:
        for path in set(folder.iterdir()) - before:
            path.unlink()
        return {"why": str(error)}
    return {"texts": texts, "difference": found, "cosine": cosine, "bits": bits}


def _opened(model: Model, folder: Path, *, int8: bool) -> ExportedModel:
    source = model.loaded_from

    def located() -> Path | None:
        return None if source is None else locate(source)

    return open_export(folder, {}, located, lambda: model, int8=int8)


def _written(model: Model, folder: Path) -> Description:
    graph, embeddings = network_of(model.setup())
    sources = Sources(model.loaded_from, folder)
    sides: dict[Side, TextSide] = {side: _side(model, side, sources) for side in ("query", "document")}
    looked_up = [name for one in embeddings.values() for name in one.names]
    weights = sources.weights(graph.weights)
    serialised = graph.serialised(looked_up)
    (folder / GRAPH).write_bytes(serialised)
    description = Description(
        model.fingerprint(),
        sources.refs,
        weights,
        embeddings,
        sides,
        dict(model.sets),
        network=simplified(serialised),
    )
    description.write(folder)
    return description


def _side(model: Model, side: Side, sources: Sources) -> TextSide:
    encoder = model.encoder.encoder(side)
    tokenizer = encoder.backbone.tokenizer
    choices = {name: encoder.choice(name) for name in encoder.sets}
    return TextSide(encoder.reading(side), sources.tokenizer(tokenizer), **tokenizer.names, choices=choices)


def _compared(exported: ExportedModel, model: Model) -> tuple[int, float]:
    """Number of compared texts, and the largest difference; texts without positions have no vectors."""
    exact = EncodeOptions(precision="fp32", device="cpu")
    rows = model.encoder.query.rows(TEXTS, "query")
    texts = [text for text, row in zip(TEXTS, rows, strict=True) if len(row)]
    return len(texts), difference(exported.encode_query(texts), model.encode_query(texts, exact))
