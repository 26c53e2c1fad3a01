"""Match patterns of parameter names against a model that is declared but not set up."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from counterpoint.part import Part

__all__ = ["could_match"]

WILD = "*?["


def could_match(pattern: str, roots: Mapping[str, nn.Module]) -> bool:
    """Whether a pattern can match a parameter once the parts are set up.

    The parameters of a part are not known yet, only that their names end in `_`. The pattern is therefore
    followed through the tree of parts up to its first wildcard.

    Args:
        pattern: as for `fnmatch`: "query.backbone.*".
        roots: the top modules, by the prefix of their parameters' names.
    """
    start = min((pattern.find(sign) for sign in WILD if sign in pattern), default=len(pattern))
    literal = pattern[:start]
    if "." not in literal:
        return any(name.startswith(literal) for name in roots) and literal != pattern
    first, *inner, last = literal.split(".")
    return first in roots and _follows(roots[first], inner, last)


def _follows(module: nn.Module, names: list[str], last: str) -> bool:
    """Whether a module can have a parameter under these names and one that starts with `last`."""
    children = dict(module.named_children())
    learns = isinstance(module, Part)
    if names:
        if names[0] in children:
            return _follows(children[names[0]], names[1:], last)
        return learns and names[0].endswith("_")
    return learns or any(name.startswith(last) for name in children)
