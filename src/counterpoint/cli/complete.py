"""What the shell offers when Tab is pressed: models, workflows, measures, recipes. None of it loads torch."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["MODELS", "measures", "models", "recipes", "workflows"]

MODELS = ("minilm", "minilm-dense", "minilm-tokens", "colberter", "uni-colberter")
"""The presets, by name; `counterpoint.presets` would bring torch with it."""


def models(incomplete: str) -> list[str]:
    """Presets, and none."""
    return _beginning(incomplete, (*MODELS, "none"))


def workflows(incomplete: str) -> list[str]:
    """Ways to search."""
    from typing import get_args

    from counterpoint.search import Workflow

    return _beginning(incomplete, get_args(Workflow))


def measures(incomplete: str) -> list[str]:
    """Measures; of several in one word, the last is completed."""
    from counterpoint.measure.names import known_measures

    before, space, last = incomplete.rpartition(" ")
    return [before + space + name for name in _beginning(last, known_measures())]


def recipes(incomplete: str) -> list[str]:
    """Recipes that come with the package."""
    from counterpoint.shipped import shipped_recipes

    return _beginning(incomplete, shipped_recipes())


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
