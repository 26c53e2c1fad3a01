"""Maps that are fitted to the vectors of a finished model and put behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

import torch

from counterpoint.encode import Mean
from counterpoint.errors import ConfigError, DataError
from counterpoint.learn.fit import FitTexts, rows_of_set, token_rows, tokenwise_of
from counterpoint.model import Model
from counterpoint.transform import Flow, Normalise, Transform, Whitening

__all__ = ["Level", "fit_behind", "fitted_dim", "raw_length", "recentre_behind"]

Level = Literal["token", "sequence"]
"""Whether a map is of every token's vector or of the one vector that a text is pooled to."""


def fit_behind(
    model: Model,
    on: str,
    declare: Callable[[int], Sequence[Transform]],
    texts: FitTexts,
    level: Level | None = None,
    on_step: Callable[[int, int, float], object] | None = None,
) -> Model:
    """Fit maps to a set's vectors and put them behind what the set has; then unit length.

    The maps see the vectors as long as they come (see `raw_length`), as in Isotropic DR. Rows that a gate
    or a router weighs keep their lengths, which are these weights. Both sides pass the same map. The model
    changes, in place; where a fit fails it stays as it was.

    Args:
        model: whose encoder and maps stay as they are.
        on: the vector set.
        declare: what is fitted, each behind the one before, given the number of components of the vectors.
        texts: to whose vectors; they are encoded once for every map. Where a flow is among the maps, one text
            of 20 is held out of all of them, 1000 at most a side, to measure the flow (`Flow.bits`).
        level: "token" maps every token's vector: of a set of one row a text those that its `Mean` head
            takes the mean of (Isotropic DR, section 4.1). "sequence" maps that one row. Unless given, the
            set's rows.
        on_step: called after every step that a flow is trained (see `Flow.fit`).

    Raises:
        ConfigError: there is no such set, or not at this level.
        DataError: vectors that no such map can be fitted to.
    """
    tokens = _mapped_head(model, on, level)
    dim = fitted_dim(model, on, level)
    undo = raw_length(model, on) if tokens is None else _nothing
    before, encoder = model.steps(on), model.encoder
    if tokens is not None:
        before, encoder = [cast(Transform, found) for found in tokens.tokenwise], token_rows(encoder, on)
    try:
        steps = declare(dim)
        flows = any(isinstance(step, Flow) for step in steps)
        fitted, held_out = texts.divided() if flows else (texts, FitTexts(()))
        for place, step in enumerate(steps):
            if place and isinstance(step, Flow):
                _check_directions(steps[place - 1], step)  # before the texts are encoded once more
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
    """Refuse a flow behind a rotation some of whose components are always 0.

    Raises:
        DataError: saying which rank is possible.
    """
    if isinstance(before, Whitening) and before.kept < flow.dim:
        possible = before.kept // flow.divisor * flow.divisor
        choose = f"choose the rank {possible} (--rank) or lower, or fit" if possible else "fit"
        raise DataError(
            f"{type(flow).__name__}: the {int(before.count_):,} vectors vary in {before.kept} directions, "
            f"fewer than the rank {flow.dim}; {choose} on more texts"
        )


def fitted_dim(model: Model, on: str, level: Level | None = None) -> int:
    """Components of the rows that `fit_behind` fits maps to, known before anything is encoded.

    Raises:
        ConfigError: there is no such set, or not at this level.
    """
    tokens = _mapped_head(model, on, level)
    return model.sets[on].dim if tokens is None else tokens.dim


def raw_length(model: Model, on: str) -> Callable[[], object]:
    """Let the vectors of a set be as long as they come, if what they pass last scales them to length 1.

    A whitening of raw vectors is another one than that of unit vectors: a text of long vectors counts more
    for the directions, and the mean that is subtracted is another. A gate's or a router's weights stay what
    they are. The model changes, in place.

    Returns:
        what takes it back.
    """
    steps, encoder = model.steps(on), model.encoder
    if steps and isinstance(steps[-1], Normalise):
        last = model.pop(on)
        return lambda: model.append(on, last)
    heads: list[Any] = [side.heads[on] for side in (encoder.query, encoder.document) if side is not None]
    if steps or on in encoder.shared or not model.has_unit_length(on):
        return _nothing
    if not all(head.normalise for head in heads):
        return _nothing
    _set_length(heads, False)
    return lambda: _set_length(heads, True)


def _nothing() -> None:
    """What takes back nothing."""


def _set_length(heads: Sequence[Any], unit: bool) -> None:
    for head in heads:
        head.normalise = unit


def recentre_behind(model: Model, on: str, texts: FitTexts) -> Model:
    """Let every map of a set that subtracts a mean subtract that of these texts; all else of it stays.

    A map that was fitted to one collection is made ready for another one. The model changes, in place.

    Args:
        model: with maps that are fitted, of tokens before their mean or of the set's rows.
        on: the vector set.
        texts: whose vectors, at each map what those before make of them.

    Raises:
        ConfigError: there is no such set, or no such map behind it.
    """
    _check_set(model, on)
    head = tokenwise_of(model.encoder, on)
    chains = [(model.encoder, model.steps(on))]
    if head is not None and head.tokenwise:
        chains.insert(0, (token_rows(model.encoder, on), [cast(Transform, step) for step in head.tokenwise]))
    found = [(*chain, at) for chain in chains for at, step in enumerate(chain[1]) if _centres(step)]
    if not found:
        raise ConfigError(f"no map behind {on!r} subtracts a mean; fit one first, as `fit whitening` does")
    for encoder, steps, at in found:
        rows = rows_of_set(encoder, on, texts, steps[:at], torch.device("cpu"))
        cast(Whitening, steps[at]).recentre(rows)
    model.leave_out()
    return model


def _check_set(model: Model, on: str) -> None:
    if on not in model.sets:
        raise ConfigError(f"no vector set {on!r}; this model makes {', '.join(model.sets)}")


def _centres(step: Transform) -> bool:
    return isinstance(step, Whitening) and step.centre


def _mapped_head(model: Model, on: str, level: Level | None) -> Mean | None:
    """The head whose tokens are mapped before their mean; None where the set's own rows are.

    Raises:
        ConfigError: there is no such set, or not at this level.
    """
    _check_set(model, on)
    pooled = model.sets[on].pooled
    if level == "sequence" and not pooled:
        raise ConfigError(f"{on!r} has many rows a text, so there is no sequence to map; leave the level out")
    return _mean_head(model, on) if level == "token" and pooled else None


def _mean_head(model: Model, on: str) -> Mean:
    """The head whose tokens can be mapped.

    Raises:
        ConfigError: saying why there is none.
    """
    head = tokenwise_of(model.encoder, on)
    if head is None:
        raise ConfigError(
            f"{on!r} has no tokens to map; that needs one encoder for both sides, a Mean head whose "
            "projection, if any, is linear, and no shared layer"
        )
    if not all(isinstance(step, Normalise) for step in model.steps(on)):
        raise ConfigError(
            f"the maps on {on!r} were fitted to means of tokens as they are now; map the tokens first"
        )
    return head
