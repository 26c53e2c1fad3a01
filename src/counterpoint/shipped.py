"""Recipes that come with the package; without torch, since shell completion lists them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["shipped_recipes"]


def shipped_recipes() -> dict[str, Path]:
    """Recipes that come with the package: name (the file name with dashes for underscores) to file."""
    package = Path(__file__).parent
    installed, checkout = package / "recipes", package.parents[1] / "recipes"
    folder = installed if installed.is_dir() else checkout
    return {path.stem.replace("_", "-"): path for path in sorted(folder.glob("[a-z]*.py"))}
