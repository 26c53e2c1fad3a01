"""What the retrievers of other libraries share: how they get an index, and what they keep of a hit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterpoint.errors import ConfigError
from counterpoint.library.opened import open_index
from counterpoint.library.searchable import Searchable

if TYPE_CHECKING:
    from counterpoint.search import Hit

__all__ = ["metadata_of", "opened"]


def opened(index: Searchable | str | Path) -> Searchable:
    """Return an open index as it is, and open a folder or an address.

    Raises:
        ConfigError: it is of another kind, or the server has no such index.
        ArtifactError: there is no index, or it is unfinished, damaged or of another version.
    """
    if isinstance(index, Searchable):
        return index
    if isinstance(index, str | Path):
        return open_index(index)
    raise ConfigError(f"index must be an open index, a path or an address, found {type(index).__name__}")


def metadata_of(hit: Hit) -> dict[str, Any]:
    """The document's metadata with its `title`, if it has one, and a passage's `parent` and `start`.

    These names hide metadata of the same name.
    """
    document = hit.document
    found: dict[str, Any] = dict(document.metadata)
    if document.title:
        found["title"] = document.title
    return found if document.parent is None else found | {"parent": document.parent, "start": document.start}
