"""Patterns of parameters' names against a model that is only declared."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from counterpoint.part import Part

__all__ = ["could_match"]

WILD = "*?["


def could_match(pattern: str, roots: Mapping[str, nn.Module]) -> bool:
    """Whether a pattern may match a parameter once the parts are set up.

    What a part will allocate is not known, only that such names end in `_`. So the pattern is followed down
    the tree of parts as far as it has no wildcard.

    Args:
        pattern: as `fnmatch` has them: "query.backbone.*".
        roots: the modules at the top, by the names that parameters' names begin with.
    """
    start = min((pattern.find(sign) for sign in WILD if sign in pattern), default=len(pattern))
    literal = pattern[:start]
    if "." not in literal:
        return any(name.startswith(literal) for name in roots) and literal != pattern
    first, *inner, last = literal.split(".")
    return first in roots and _follows(roots[first], inner, last)


def _follows(module: nn.Module, names: list[str], last: str) -> bool:
    """Whether a module may have a parameter under these names and one that starts with `last`."""
    children = dict(module.named_children())
    learns = isinstance(module, Part)
    if names:
        if names[0] in children:
            return _follows(children[names[0]], names[1:], last)
        return learns and names[0].endswith("_")
    return learns or any(name.startswith(last) for name in children)
