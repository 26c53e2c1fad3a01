"""`counterpoint diagnose` of a gated model: the stop words that it has learnt."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from counterpoint.cli.progress import counting
from counterpoint.cli.tables import text_table
from counterpoint.escapes import escaped

if TYPE_CHECKING:
    from counterpoint.encode import Gate
    from counterpoint.model import Model

__all__ = ["gate_text", "gates_of"]

LEAST = 0.01  # rows that a word needs, as a share of the number of texts
SHOWN = 15


def gates_of(model: Model, texts: Sequence[str], on: str | None = None) -> dict[str, Any]:
    """For every gated set, or the named one, measure which words of documents its gate drops."""
    return {
        name: _gate_of(model, texts, name, cast("Gate", gate).threshold)
        for name, gate in model.encoder.gates.items()
        if on is None or on == name
    }


def _gate_of(model: Model, texts: Sequence[str], name: str, threshold: float) -> dict[str, Any]:
    from counterpoint.encode import EncodeOptions
    from counterpoint.measure.gate_words import gate_words

    with counting(f"gate of {name}", "texts", len(texts)) as more:
        weights = model.gate_weights(texts, name, EncodeOptions(progress=more))
    rows = [
        ([span.text for span in spans], weights.ids_of(at), weights[at][:, 0])
        for at, spans in enumerate(model.spans(texts, name, "document"))
    ]
    words = gate_words(rows, threshold, max(2, round(LEAST * len(texts))))
    return {
        "texts": len(texts),
        "rows": len(weights.values),
        "dropped": int((weights.values <= threshold).sum()) / max(1, len(weights.values)),
        "threshold": threshold,
        "words": [word.to_dict() for word in words],
    }


def gate_text(gates: Mapping[str, Any]) -> str:
    """The words dropped most and least, for every set."""
    return "\n\n".join(_of_set(name, found) for name, found in gates.items())


def _of_set(name: str, found: Mapping[str, Any]) -> str:
    words = found["words"]
    most = words[:SHOWN]
    rest = words[len(most) :]
    least = sorted(rest, key=lambda word: (word["dropped"], -word["mean"], word["word"]))[:SHOWN]
    said = (
        f"{escaped(name)}: the gate drops {found['dropped']:.1%} of {found['rows']:,} rows of "
        f"{found['texts']:,} documents (r at or below {found['threshold']:g}). {len(words):,} words are "
        "frequent enough"
    )
    if not words:
        return f"{said}."
    keys = {"word": "word", "rows": "rows", "mean": "mean r", "dropped": "dropped"}
    table = text_table(list(keys.values()), [[word[key] for key in keys] for word in [*most, *least]])
    return f"{textwrap.fill(f'{said}; those dropped most and least:', 110)}\n{table}"
