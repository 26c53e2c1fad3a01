"""Data sets of the `ir_datasets` catalogue, an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from counterpoint.data.collection import Source
from counterpoint.data.policy import ReadPolicy
from counterpoint.data.reader import Located, Reader
from counterpoint.errors import DataError, MissingExtraError
from counterpoint.types import Document

__all__ = ["IrDataset", "load_ir_dataset"]


@dataclass(frozen=True)
class IrDataset(Source):
    """One data set of the catalogue. Its only split is the last part of the id (`beir/scifact/test`: `test`).

    `ir_datasets` downloads missing data into its own folder when they are first read.
    """

    dataset: Any  # ir_datasets has no public type for it
    id: str

    @property
    def name(self) -> str:
        """The id with its slashes replaced."""
        return self.id.replace("/", "-")

    @property
    def origin(self) -> str:
        """Name on the command line."""
        return f"ir_datasets:{self.id}"

    @property
    def remedy(self) -> str:
        """How to get the data."""
        return (
            "ir_datasets downloads missing data into its own folder (IR_DATASETS_HOME, or ~/.ir_datasets): "
            "check the connection, the folder and its free space, or use a folder in BEIR's layout"
        )

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Those of all sources, of a download, and the catalogue's own error for a failed download."""
        from urllib3.exceptions import HTTPError

        return (*super().failures, HTTPError, RuntimeError)

    @property
    def splits(self) -> tuple[str, ...]:
        """One split if the data set has judgements, else none."""
        return (self.id.rsplit("/", 1)[-1],) if self.dataset.has_qrels() else ()

    def documents(self, reader: Reader) -> Iterator[Located]:
        """Yield documents with title and text if they have these fields, else with all of their text."""
        if not self.dataset.has_docs():
            raise DataError(f"{self.origin} has no documents; use the id of the collection above it")
        for found in self.dataset.docs_iter():
            text = found.text if hasattr(found, "text") else found.default_text()
            title = getattr(found, "title", "") if hasattr(found, "text") else ""
            metadata = {"url": found.url} if getattr(found, "url", "") else {}
            yield Located(Document(found.doc_id, text or "", title or "", metadata=metadata), self.origin)

    def queries(self, policy: ReadPolicy) -> dict[str, str]:
        """Read all queries, each with the catalogue's default text (often the title)."""
        if not self.dataset.has_queries():
            return {}
        return {query.query_id: query.default_text() for query in self.dataset.queries_iter()}

    def qrels(self, split: str, policy: ReadPolicy) -> dict[str, dict[str, int]]:
        """The judgements."""
        qrels: dict[str, dict[str, int]] = {}
        for judged in self.dataset.qrels_iter():
            qrels.setdefault(judged.query_id, {})[judged.doc_id] = int(judged.relevance)
        return qrels


def load_ir_dataset(id_: str) -> IrDataset:
    """Look up an id in the catalogue; nothing is downloaded yet.

    Raises:
        MissingExtraError: `ir_datasets` is not installed.
        DataError: the id is unknown.
    """
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtraError(f"ir_datasets:{id_}", package="ir_datasets", extra="ir-datasets") from error
    try:
        return IrDataset(ir_datasets.load(id_), id_)
    except KeyError as error:
        raise DataError(
            f"ir_datasets has no data set {id_!r}; see https://ir-datasets.com for its ids"
        ) from error
