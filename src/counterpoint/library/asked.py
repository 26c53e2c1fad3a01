"""Search settings of an index, changed by options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from counterpoint.errors import ConfigError
from counterpoint.library.keywords import check_keywords
from counterpoint.library.options import SearchOptions
from counterpoint.search import LEXICAL, SearchSettings
from counterpoint.search.settings import check_weights, parse_feedback, parse_weights, parts_of

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.search import Workflow

__all__ = ["changed", "settings_of"]


def changed(settings: SearchSettings, index: Index, given: Mapping[str, Any]) -> SearchSettings:
    """Return the settings with some fields replaced.

    New weights are fixed unless `adapt` is given, too.

    Raises:
        ConfigError: a field does not exist, or a value is invalid.
    """
    check_keywords(given, *SearchSettings.__annotations__)
    if "weights" in given:
        given = {**given, "weights": check_weights(given["weights"], [LEXICAL, *index.layouts])}
    if "weights" in given or "adapt" in given:
        given = {"fixed_weights": bool(settings.adapt) and "adapt" not in given, **given}
    return replace(settings, **given)


def settings_of(index: Index, asked: SearchOptions) -> SearchSettings:
    """Return the index's own search settings, changed by the options.

    Raises:
        ConfigError: an option is malformed, the index does not support feedback, or only one part scores, so
            that weights, adapt and fusion change nothing.
    """
    settings = SearchSettings.for_index(index)
    settings = replace(settings, exhaustive=asked.exhaustive or settings.exhaustive)
    if asked.probes is not None:
        settings = replace(settings, probes=asked.probes)
    if asked.feedback is not None:
        given = asked.feedback if isinstance(asked.feedback, tuple | list) else [asked.feedback]
        settings = replace(settings, **parse_feedback(",".join(map(str, given))))
        if settings.feedback and asked.workflow != "hybrid":
            raise ConfigError(
                f"feedback works with the hybrid only; leave it or the workflow {asked.workflow} out"
            )
        if settings.feedback and not any(layout.pooled for layout in index.layouts.values()):
            raise ConfigError("--feedback needs pooled vectors, and this index has no such set")
    if asked.weights is not None:
        parts = [LEXICAL, *index.layouts]
        given = asked.weights
        weights = check_weights(given, parts) if isinstance(given, Mapping) else parse_weights(given, parts)
        settings = settings.with_weights(weights)
    if asked.adapt and not settings.adapt:
        raise ConfigError("--adapt: this index has no settings to adapt weights to a query; build it again")
    if asked.adapt is not None:
        settings = replace(settings, fixed_weights=bool(settings.adapt) and not asked.adapt)
    settings = settings if asked.fusion is None else settings.with_fusion(asked.fusion)
    _check_several(index, asked, settings)
    return settings


def _check_several(index: Index, asked: SearchOptions, settings: SearchSettings) -> None:
    """Refuse options that combine several parts where one part scores, and so nothing is combined."""
    if asked.weights is None and not asked.adapt and asked.fusion is None:
        return
    workflow = cast("Workflow", asked.workflow)
    _, parts = parts_of(workflow, index.layouts, index.manifest.has_lexical, settings)
    fed = settings.feedback and workflow == "hybrid" and any(each.pooled for each in index.layouts.values())
    if len(parts) > 1 or fed:
        return
    weighs = asked.weights is not None and settings.weights.keys() != {parts[0]}
    given = {"weights": weighs, "adapt": asked.adapt, "fusion": asked.fusion is not None}
    if idle := [name for name, value in given.items() if value]:
        raise ConfigError(
            f"{' and '.join(idle)}: for several parts, but workflow {workflow} has only {parts[0]} in this "
            "index; leave out what cannot change the ranking, or choose another workflow"
        )
