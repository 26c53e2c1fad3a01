"""Qdrant: named vectors, multi-vectors with MaxSim, BM25 as sparse vectors."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.exporters.contents import Contents, Row, sparse_of, uuid_of
from counterpoint.exporters.engine import Engine, Kept, Place, Question, Writer
from counterpoint.index.lexical import LEXICAL

if TYPE_CHECKING:
    from qdrant_client import QdrantClient

__all__ = ["ENGINE"]

INDEXES: Mapping[str, Any] = {"int": "integer", "float": "float", "str": "keyword", "bool": "bool"}


@final
class Qdrant(Engine):
    """Qdrant, as a server, or in this process with files in a folder."""

    name, title = "qdrant", "Qdrant"
    where = "--url http://HOST:6333, or -o FOLDER for Qdrant in this process"
    multi_vectors = sparse = True
    kept = Kept(
        documents="points; the id is a UUID5, and the payload has the document's own id",
        pooled="vector of {dim} components, dot product",
        several="multi-vector of {dim} components, MaxSim of dot products",
        lexical="sparse vector of saturated term frequencies; queries bring the idf",
        metadata="payload, with a payload index for each typed field on a server",
    )

    def limits(self, contents: Contents) -> list[str]:
        """Weights of BM25 do not follow what others add."""
        if not contents.lexical:
            return []
        return ["lexical: terms, average length and idf are those of the index; export again after changes"]

    def connect(self, contents: Contents, place: Place) -> Writer:
        """Open a server, or a folder."""
        try:
            from qdrant_client import QdrantClient
        except ImportError as error:
            raise MissingExtraError("export to Qdrant", package="qdrant-client", extra="qdrant") from error
        where: dict[str, Any] = {"path": str(place.folder)}
        if place.url is not None:
            # Its check of versions warns in a thread of its own if the server is away.
            where = {"url": place.url, "api_key": place.key, "timeout": 60, "check_compatibility": False}
        return _Points(contents, QdrantClient(**where), local=place.url is None)

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """The request of the query API; several parts are scored for the union of all first stages.

        So a document's score is the sum over all parts, as in the index.
        """
        body = {"limit": question.k, "with_payload": True}
        queries = {name: _query(name, contents, question) for name in question.parts}
        if len(queries) == 1 and question.first == list(queries):
            (query,) = queries.values()
            return _posted(contents, {**query, **body})
        depth = question.candidates
        union = [{**queries[name], "limit": depth} for name in question.first]
        scored = [{"prefetch": union, **query, "limit": depth * len(union)} for query in queries.values()]
        scores = [f"$score[{i}]" for i in range(len(scored))]
        summands = [
            {"mult": [part.scale, score]} for part, score in zip(question.parts.values(), scores, strict=True)
        ]
        formula = {"formula": {"sum": summands}, "defaults": dict.fromkeys(scores, 0.0)}
        return _posted(contents, {"prefetch": scored, "query": formula, **body})


ENGINE = Qdrant()


def _query(name: str, contents: Contents, question: Question) -> dict[str, Any]:
    if name == LEXICAL:
        indices, values = sparse_of(question.terms)
        return {"query": {"indices": indices, "values": values}, "using": name}
    rows = question.parts[name].rows.tolist()
    return {"query": rows[0] if name in contents.pooled else rows, "using": name}


def _posted(contents: Contents, body: Mapping[str, Any]) -> dict[str, Any]:
    return {"method": "POST", "path": f"/collections/{contents.name}/points/query", "body": dict(body)}


@final
class _Points(Writer):
    def __init__(self, contents: Contents, client: QdrantClient, *, local: bool):
        from httpx import TransportError
        from qdrant_client.http.exceptions import ApiException

        self.contents, self.client, self.local = contents, client, local
        self.faults = (ApiException, TransportError)

    def create(self) -> None:
        from qdrant_client import models

        name = self.contents.name
        vectors, sparse = self._vectors(), {}
        if self.contents.lexical:
            sparse = {LEXICAL: models.SparseVectorParams()}
        if not self.client.collection_exists(name):
            self.client.create_collection(name, vectors, sparse_vectors_config=sparse)
        found = self.client.get_collection(name).config.params
        known = found.vectors if isinstance(found.vectors, dict) else {}
        shapes = [
            {n: (v.size, v.distance, v.multivector_config is not None) for n, v in each.items()}
            for each in (known, vectors)
        ]
        if shapes[0] != shapes[1] or set(found.sparse_vectors or {}) != set(sparse):
            raise ConfigError(
                f"--name: the collection {name!r} exists and has other vectors; choose another name, or "
                "delete it"
            )
        if not self.local:  # which has no payload indexes, and says so each time
            for field, kind in {"id": "str", "parent": "str", **self._fields()}.items():
                self.client.create_payload_index(name, field, field_schema=INDEXES[kind])

    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        found = self.client.retrieve(
            self.contents.name, [uuid_of(each) for each in ids], with_payload=["id", "stamp"]
        )
        return {point.payload["id"]: point.payload["stamp"] for point in found if point.payload}

    def write(self, rows: Sequence[Row]) -> None:
        self.client.upsert(self.contents.name, [self._point(row) for row in rows], wait=True)

    def count(self) -> int:
        return self.client.count(self.contents.name, exact=True).count

    def close(self, done: bool) -> None:
        self.client.close()

    def _vectors(self) -> dict[str, Any]:
        from qdrant_client import models

        dot = models.Distance.DOT
        found = {
            name: models.VectorParams(size=dim, distance=dot) for name, dim in self.contents.pooled.items()
        }
        maxsim = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
        # A graph over every row is large, and of no use to rows that only score what other parts proposed.
        graph = models.HnswConfigDiff(m=0) if self.contents.pooled or self.contents.lexical else None
        for name, dim in self.contents.several.items():
            found[name] = models.VectorParams(
                size=dim, distance=dot, multivector_config=maxsim, hnsw_config=graph
            )
        return found

    def _fields(self) -> dict[str, str]:
        plain = str.isidentifier
        return {
            f"metadata.{name if plain(name) else json.dumps(name)}": kind
            for name, kind in self.contents.fields.items()
        }

    def _point(self, row: Row) -> Any:
        from qdrant_client import models

        vectors: dict[str, Any] = {name: values.tolist() for name, values in row.pooled.items()}
        vectors |= {name: values.tolist() for name, values in row.several.items() if len(values)}
        if row.weights:
            indices, values = sparse_of(row.weights)
            vectors[LEXICAL] = models.SparseVector(indices=indices, values=values)
        about = row.document
        payload = {"id": about.id, "title": about.title, "text": about.text, "metadata": dict(about.metadata)}
        if about.parent is not None:
            payload |= {"parent": about.parent, "start": about.start}
        payload["stamp"] = row.stamp
        return models.PointStruct(id=uuid_of(about.id), vector=vectors, payload=payload)
