"""Fit maps to the vectors of a finished model and append them to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import torch

from counterpoint.encode import Mean
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.fit import FitTexts, rows_of_set, token_rows, tokenwise_of
from counterpoint.model import Model
from counterpoint.transform import Flow, Normalise, Transform, Whitening

__all__ = ["Level", "fit_transform", "fitted_dim", "raw_length", "recentre_transform"]

Level = Literal["token", "sequence"]
"""Whether a map applies to every token's vector or to a text's pooled vector."""


def fit_transform(
    model: Model,
    on: str,
    declare: Callable[[int], Sequence[Transform]],
    texts: FitTexts,
    level: Level | None = None,
    on_step: Callable[[int, int, float], object] | None = None,
) -> Model:
    """Fit maps to a set's vectors, append them after the set's own maps, and normalise to unit length.

    The maps see the vectors before any final normalisation (see `raw_length`), as in Isotropic DR. Rows that
    are weighted by a gate or a router keep their lengths, because these are the weights. Queries and
    documents pass through the same map. The model changes in place. If a fit fails, it is unchanged.

    Args:
        model: its encoder and its own maps do not change.
        on: the vector set.
        declare: given the vectors' dimension, returns the maps to fit, each to the output of the one before.
        texts: the texts to fit to, encoded once per map. If one of the maps is a flow, 1 in 20 texts (at most
            1000 per side) is held out of all fits to evaluate the flow (`Flow.bits`).
        level: "token" maps every token's vector; for a pooled set, the token vectors that its `Mean` head
            averages (Isotropic DR, section 4.1). "sequence" maps the pooled vector. None for the set's rows.
        on_step: called after every training step of a flow (see `Flow.fit`).

    Raises:
        ConfigError: the set does not exist, or not at this level.
        DataError: the maps cannot be fitted to these vectors.
    """
    tokens = _mapped_head(model, on, level)
    dim = fitted_dim(model, on, level)
    undo = raw_length(model, on) if tokens is None else lambda: None
    before, encoder = model.steps(on), model.encoder
    if tokens is not None:
        before, encoder = [cast(Transform, found) for found in tokens.tokenwise], token_rows(encoder, on)
    try:
        steps = declare(dim)
        flows = any(isinstance(step, Flow) for step in steps)
        fitted, held_out = texts.divided() if flows else (texts, FitTexts(()))
        for place, step in enumerate(steps):
            if place and isinstance(step, Flow):
                _check_directions(steps[place - 1], step)  # before the texts are encoded again
            rows, other = (
                rows_of_set(encoder, on, some, [*before, *steps[:place]], torch.device("cpu"))
                for some in (fitted, held_out)
            )
            if isinstance(step, Flow):
                step.fit(rows, on_step, other)
            else:
                step.fit(rows)
    except BaseException:
        undo()
        raise
    for step in steps:
        if tokens is None:
            model.append(on, step)
        else:
            tokens.tokenwise.append(step)
    model.leave_out()
    if not (model.has_unit_length(on) or model.is_weighed(on)):
        model.append(on, Normalise())
    return model


def _check_directions(before: Transform, flow: Flow) -> None:
    """Refuse a flow after a rotation that leaves some components always 0."""
    if isinstance(before, Whitening) and before.kept < flow.dim:
        possible = before.kept // flow.divisor * flow.divisor
        choose = f"choose the rank {possible} (--rank) or lower, or fit" if possible else "fit"
        raise DataError(
            f"{type(flow).__name__}: the {int(before.count_):,} vectors vary in {before.kept} directions, "
            f"fewer than the rank {flow.dim}; {choose} on more texts"
        )


def fitted_dim(model: Model, on: str, level: Level | None = None) -> int:
    """Dimension of the rows that `fit_transform` fits maps to, known before anything is encoded.

    Raises:
        ConfigError: the set does not exist, or not at this level.
    """
    tokens = _mapped_head(model, on, level)
    return model.sets[on].dim if tokens is None else tokens.dim


def raw_length(model: Model, on: str) -> Callable[[], object]:
    """Switch off the final normalisation of a set's vectors to unit length, if there is one.

    A whitening of raw vectors differs from one of unit vectors: long vectors have more influence on the
    directions, and the subtracted mean is different. Weights of a gate or a router stay. The model changes in
    place.

    Returns:
        A function that undoes the change.
    """
    steps, encoder = model.steps(on), model.encoder
    if steps and isinstance(steps[-1], Normalise):
        last = model.pop(on)
        return lambda: model.append(on, last)
    heads: list[Any] = [side.heads[on] for side in (encoder.query, encoder.document) if side is not None]
    by_heads = not steps and on not in encoder.shared and model.has_unit_length(on)
    if not by_heads or not all(head.normalise for head in heads):
        return lambda: None
    _set_length(heads, False)
    return lambda: _set_length(heads, True)


def _set_length(heads: Sequence[Any], unit: bool) -> None:
    for head in heads:
        head.normalise = unit


def recentre_transform(model: Model, on: str, texts: FitTexts) -> Model:
    """Replace the mean that each map of a set subtracts by that of these texts. Nothing else changes.

    This adapts a map that was fitted to one collection to another collection. The model changes in place.

    Args:
        model: a model with fitted maps, of tokens before their mean or of the set's rows.
        on: the vector set.
        texts: the texts whose vectors give the mean. Each map sees the output of the maps before it.

    Raises:
        ConfigError: the set does not exist, or none of its maps subtracts a mean.
    """
    _check_set(model, on)
    head = tokenwise_of(model.encoder, on)
    chains = [(model.encoder, model.steps(on))]
    if head is not None and head.tokenwise:
        chains.insert(0, (token_rows(model.encoder, on), [cast(Transform, step) for step in head.tokenwise]))
    found = [
        (encoder, steps, at, step)
        for encoder, steps in chains
        for at, step in enumerate(steps)
        if isinstance(step, Whitening) and step.centre
    ]
    if not found:
        raise ConfigError(f"no map of {on!r} subtracts a mean; fit one first, such as with `fit whitening`")
    for encoder, steps, at, step in found:
        step.recentre(rows_of_set(encoder, on, texts, steps[:at], torch.device("cpu")))
    model.leave_out()
    return model


def _check_set(model: Model, on: str) -> None:
    if on not in model.sets:
        raise ConfigError(f"no vector set {on!r}; this model makes {', '.join(model.sets)}")


def _mapped_head(model: Model, on: str, level: Level | None) -> Mean | None:
    """The head whose tokens are mapped before their mean. None if the set's own rows are mapped.

    Raises:
        ConfigError: the set does not exist, or not at this level, or its tokens cannot be mapped.
    """
    _check_set(model, on)
    pooled = model.sets[on].pooled
    if level == "sequence" and not pooled:
        raise ConfigError(f"{on!r} has several rows per text, so there is no sequence to map; omit the level")
    if level != "token" or not pooled:
        return None
    head = tokenwise_of(model.encoder, on)
    if head is None:
        raise ConfigError(
            f"{on!r} has no tokens to map; that needs one encoder for both sides, a Mean head whose "
            "projection, if any, is linear, and no shared layer"
        )
    if not all(isinstance(step, Normalise) for step in model.steps(on)):
        raise ConfigError(
            f"the maps on {on!r} were fitted to the present means of tokens; map the tokens first"
        )
    return head
