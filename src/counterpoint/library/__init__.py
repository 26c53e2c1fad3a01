"""Index and search, for programs, notebooks and the command line.

Names are imported when they are first used, so that the command line can read defaults without loading more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.library.asked import settings_of
    from counterpoint.library.building import Build, index, prepare
    from counterpoint.library.opened import OpenIndex, open_index
    from counterpoint.library.options import BuildOptions, SearchOptions
    from counterpoint.library.reading import Survey, survey
    from counterpoint.library.stored import model_of

__all__ = [
    "Build",
    "BuildOptions",
    "OpenIndex",
    "SearchOptions",
    "Survey",
    "index",
    "model_of",
    "open_index",
    "prepare",
    "settings_of",
    "survey",
]

_HOMES = {
    "asked": ("settings_of",),
    "building": ("Build", "index", "prepare"),
    "opened": ("OpenIndex", "open_index"),
    "options": ("BuildOptions", "SearchOptions"),
    "reading": ("Survey", "survey"),
    "stored": ("model_of",),
}


__getattr__ = lazily(__name__, _HOMES)


__dir__ = __all__.copy
