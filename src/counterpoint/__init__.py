"""Counterpoint: neural retrieval whose parts complement each other.

The public names are here, and are imported when they are first used:

    import counterpoint as cp

    notes = cp.index(["A whale is a mammal.", "Trains leave from platform nine."], "notes.index")
    for hit in notes.search("animals of the ocean", k=1):
        print(hit.score, hit.id, hit.text)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.index import Index
    from counterpoint.index.field import field
    from counterpoint.library import OpenIndex, index
    from counterpoint.library import open_index as open
    from counterpoint.loading import load_model
    from counterpoint.measure import compare, evaluate
    from counterpoint.model import Model
    from counterpoint.recipe import Recipe, train
    from counterpoint.search import Run, Searcher, SearchSettings
    from counterpoint.types import Document

    __version__: str

__all__ = [
    "Document",
    "Index",
    "Model",
    "OpenIndex",
    "Recipe",
    "Run",
    "SearchSettings",
    "Searcher",
    "__version__",
    "compare",
    "evaluate",
    "field",
    "index",
    "load_model",
    "open",
    "train",
]

_HOMES = {  # `index` is the package of that name, which can be called
    "index": ("Index",),
    "index.field": ("field",),
    "library": ("OpenIndex",),
    "measure": ("compare", "evaluate"),
    "loading": ("load_model",),
    "model": ("Model",),
    "recipe": ("Recipe", "train"),
    "search": ("Run", "SearchSettings", "Searcher"),
    "types": ("Document",),
}
_PACKAGES = ("data", "encode", "explain", "index", "learn", "library", "measure", "plots", "recipe", "score")
_PACKAGES += ("search", "sweep", "transform", "errors", "model", "presets", "types", "vectors")


_named = lazily(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        return import_module(f"{__name__}.version").version()
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name == "open":
        return import_module(f"{__name__}.library").open_index
    return _named(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_PACKAGES})
