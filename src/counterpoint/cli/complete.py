"""Shell completion of models, workflows, measures and recipes, without loading torch."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MODELS", "measures", "models", "recipes", "workflows"]

MODELS = ("minilm", "minilm-dense", "minilm-tokens", "colberter", "uni-colberter")
"""Names of the presets; importing `counterpoint.presets` would load torch."""


def models(incomplete: str) -> list[str]:
    """Names of presets, and `none`."""
    return _beginning(incomplete, (*MODELS, "none"))


def workflows(incomplete: str) -> list[str]:
    """Names of workflows."""
    from typing import get_args

    from counterpoint.search import Workflow

    return _beginning(incomplete, get_args(Workflow))


def measures(incomplete: str) -> list[str]:
    """Names of measures; completes the last of several in one word."""
    from counterpoint.measure.names import known_measures

    before, space, last = incomplete.rpartition(" ")
    return [before + space + name for name in _beginning(last, known_measures())]


def recipes(incomplete: str) -> list[str]:
    """Names of the recipes that come with the package."""
    from counterpoint.shipped import shipped_recipes

    return _beginning(incomplete, shipped_recipes())


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
