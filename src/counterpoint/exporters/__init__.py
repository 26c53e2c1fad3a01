"""Export an index to a search engine: Qdrant, LanceDB, Milvus, OpenSearch, Weaviate or Vespa.

A name is imported when it is first used, and an engine when it is named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterpoint.lazily import lazily

if TYPE_CHECKING:
    from counterpoint.exporters.asking import query_for
    from counterpoint.exporters.names import ENGINES
    from counterpoint.exporters.writing import export_to

__all__ = ["ENGINES", "export_to", "query_for"]

_HOMES = {"asking": ("query_for",), "names": ("ENGINES",), "writing": ("export_to",)}


__getattr__ = lazily(__name__, _HOMES)


__dir__ = __all__.copy
