"""Milvus: a field for each pooled set, and BM25 as sparse vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ArtifactError, ConfigError, MissingExtraError
from counterpoint.exporters.contents import Contents, Row, sparse_of
from counterpoint.exporters.engine import Engine, Kept, Place, Question, Writer
from counterpoint.index.lexical import LEXICAL

if TYPE_CHECKING:
    from pymilvus import MilvusClient

__all__ = ["ENGINE"]

LONGEST = 65_535  # bytes of a VARCHAR
FILE = "milvus.db"
NO_TERM = 0  # Milvus refuses sparse vectors without any component; no term has this number


@final
class Milvus(Engine):
    """Milvus as a server, or Milvus Lite in this process with files in a folder."""

    name, title = "milvus", "Milvus"
    where = "--url http://HOST:19530, or -o FOLDER for Milvus Lite"
    multi_vectors, sparse = False, True
    kept = Kept(
        documents="entities, with the document's own id",
        pooled="field {column} of {dim} components, inner product",
        lexical=f"field {LEXICAL}: sparse vector of saturated term frequencies; queries bring the idf",
        metadata="JSON field, which filters can test",
    )

    def limits(self, contents: Contents) -> list[str]:
        """Sums miss what a part did not propose, and texts are cut."""
        found = [
            "MaxSim: this export does not use that of Milvus 2.6.4 and later, since Milvus Lite has none"
        ]
        if contents.lexical:
            found.append(
                "lexical: terms, average length and idf are those of the index; export again after changes"
            )
            if contents.pooled:
                found.append("hybrid: a part that did not propose a document counts 0 for it")
        return found

    def connect(self, contents: Contents, place: Place) -> Writer:
        """Open a server, or a folder."""
        if not contents.pooled and not contents.lexical:
            raise ConfigError("--to milvus: the index has neither pooled vectors nor BM25")
        try:
            from pymilvus import MilvusClient, MilvusException
        except ImportError as error:
            raise MissingExtraError("export to Milvus", package="pymilvus", extra="milvus") from error
        if place.folder is None:
            try:  # a client connects when it is made
                client = MilvusClient(str(place.url), token=place.key or "")
            except MilvusException as error:
                message = f"Milvus: {error.message}; nothing was written"
                raise ArtifactError(message, path=place.url) from error
            return _Entities(contents, client, "AUTOINDEX")
        place.folder.mkdir(parents=True, exist_ok=True)
        return _Entities(contents, MilvusClient(str(place.folder / FILE)), "FLAT")

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """The request of the REST API: `search` for one part, `hybrid_search` for several."""
        output = ["id", "title", "text", "metadata"]
        searches = [_search(name, contents, question) for name in question.parts]
        body: dict[str, Any] = {"collectionName": contents.name, "limit": question.k, "outputFields": output}
        if len(searches) == 1:
            body = {**searches[0], **body}
            return {"method": "POST", "path": "/v2/vectordb/entities/search", "body": body}
        scales = [part.scale for part in question.parts.values()]
        # Weights are between 0 and 1, and without norm_score they multiply the scores themselves.
        weights = [scale / max(1.0, *scales) for scale in scales]
        rerank = {"strategy": "weighted", "params": {"weights": weights, "norm_score": False}}
        body |= {"search": searches, "rerank": rerank}
        return {"method": "POST", "path": "/v2/vectordb/entities/hybrid_search", "body": body}


ENGINE = Milvus()


def _search(name: str, contents: Contents, question: Question) -> dict[str, Any]:
    found: dict[str, Any] = {"limit": question.candidates, "searchParams": {"metricType": "IP"}}
    if name == LEXICAL:
        numbers, weights = sparse_of(question.terms)
        query = {str(n): weight for n, weight in zip(numbers, weights, strict=True)}
        return {**found, "data": [query], "annsField": LEXICAL}
    rows = question.parts[name].rows.tolist()
    return {**found, "data": rows, "annsField": contents.columns[name]}


@final
class _Entities(Writer):
    def __init__(self, contents: Contents, client: MilvusClient, index: str):
        from pymilvus import MilvusException

        self.contents, self.client, self.index = contents, client, index
        self.columns = contents.columns
        self.faults = (MilvusException,)
        self._cut = 0

    def create(self) -> None:
        name, schema = self.contents.name, self._schema()
        if not self.client.has_collection(name):
            indexes = self.client.prepare_index_params()
            for column in self.columns.values():
                indexes.add_index(column, index_type=self.index, metric_type="IP")
            if self.contents.lexical:
                indexes.add_index(LEXICAL, index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
            self.client.create_collection(
                name, schema=schema, index_params=indexes, consistency_level="Strong"
            )
        found: Any = self.client.describe_collection(name)
        shapes = {each["name"]: int(each["params"].get("dim", 0)) for each in found["fields"]}
        if shapes != {field.name: int(field.params.get("dim", 0)) for field in schema.fields}:
            raise ConfigError(
                f"--name: the collection {name!r} exists and has other fields; choose another name, or "
                "drop it"
            )
        self.client.load_collection(name)

    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        found = self.client.get(self.contents.name, ids=list(ids), output_fields=["id", "stamp"])
        return {each["id"]: each["stamp"] for each in found}

    def write(self, rows: Sequence[Row]) -> None:
        self.client.upsert(self.contents.name, [self._entity(row) for row in rows])

    def count(self) -> int:
        return self.client.query(self.contents.name, filter="", output_fields=["count(*)"])[0]["count(*)"]

    def notes(self) -> list[str]:
        cut = f"text: {self._cut:,} texts were cut to {LONGEST:,} bytes, which a field holds at most"
        return [cut] if self._cut else []

    def close(self, done: bool) -> None:
        self.client.close()

    def _schema(self) -> Any:
        from pymilvus import DataType

        schema = self.client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.VARCHAR, is_primary=True, max_length=LONGEST)
        for name in ("title", "text", "parent", "stamp"):
            schema.add_field(name, DataType.VARCHAR, max_length=LONGEST)
        schema.add_field("start", DataType.INT64)
        schema.add_field("metadata", DataType.JSON)
        for name, column in self.columns.items():
            schema.add_field(column, DataType.FLOAT_VECTOR, dim=self.contents.pooled[name])
        if self.contents.lexical:
            schema.add_field(LEXICAL, DataType.SPARSE_FLOAT_VECTOR)
        return schema

    def _entity(self, row: Row) -> dict[str, Any]:
        about = row.document
        found: dict[str, Any] = {"id": about.id, "title": self._short(about.title), "stamp": row.stamp}
        found |= {"text": self._short(about.text), "parent": about.parent or "", "start": about.start}
        found["metadata"] = dict(about.metadata)
        found |= {self.columns[name]: values.tolist() for name, values in row.pooled.items()}
        if row.weights is not None:
            numbers, weights = sparse_of(row.weights)
            found[LEXICAL] = dict(zip(numbers, weights, strict=True)) or {NO_TERM: 1.0}
        return found

    def _short(self, text: str) -> str:
        """A text of at most `LONGEST` bytes."""
        whole = text.encode()
        if len(whole) <= LONGEST:
            return text
        self._cut += 1
        return whole[:LONGEST].decode(errors="ignore")
