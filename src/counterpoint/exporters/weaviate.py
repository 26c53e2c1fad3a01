"""Weaviate: named vectors, multi-vectors with MaxSim, and BM25 over terms that were split here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

from counterpoint.exporters.contents import Contents, Row, uuid_of
from counterpoint.exporters.engine import Kept, Question
from counterpoint.exporters.requests import HttpEngine, Request, json_of
from counterpoint.index.lexical import LEXICAL

__all__ = ["ENGINE"]

TYPES = {"int": "int", "float": "number", "str": "text", "bool": "boolean"}
TERMS = "terms"


@final
class Weaviate(HttpEngine):
    """Weaviate 1.29 or later, which has multi-vectors."""

    name, title, suffix = "weaviate", "Weaviate", "json"
    where = "--url http://HOST:8080, or -o FOLDER for files"
    multi_vectors, sparse = True, False
    kept = Kept(
        documents="objects; the id is a UUID5, and doc_id is the document's own id",
        pooled="named vector {column} of {dim} components, dot product",
        several="named multi-vector {column} of {dim} components, MaxSim of dot products",
        lexical=f"property {TERMS} of terms that were split here; Weaviate's BM25, our k1 and b",
        metadata="JSON, and a property for each typed field",
    )

    def limits(self, contents: Contents) -> list[str]:
        """A request asks one part."""
        found = ["hybrid: query_for gives one request per part, whose scores are added"]
        if contents.lexical:
            found.append("lexical: Weaviate computes idf and average length itself")
        return found

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """For each part, a GraphQL request, and how to add its scores.

        An object's score by a part is `scale` · `score`, or −`scale` · `distance`.
        """
        names, parts = contents.columns, []
        limit = question.k if len(question.parts) == 1 else question.candidates
        for name, part in question.parts.items():
            if name == LEXICAL:
                how = f"bm25: {{query: {json_of(question.words)}, properties: [{json_of(TERMS)}]}}"
            else:
                rows = part.rows.tolist()
                vector = json_of(rows if name in contents.several else rows[0])
                how = f"nearVector: {{vector: {vector}, targetVectors: [{json_of(names[name])}]}}"
            told = "score" if name == LEXICAL else "distance"
            query = (
                f"{{Get {{{_collection(contents)}({how}, limit: {limit}) "
                f"{{doc_id title text metadata _additional {{{told}}}}}}}}}"
            )
            request = {"method": "POST", "path": "/v1/graphql", "body": {"query": query}}
            parts.append({"part": name, "scale": part.scale, "field": told, "request": request})
        return {"collection": _collection(contents), "limit": question.k, "parts": parts}

    def files(self, contents: Contents) -> dict[str, str]:
        """The body that makes the collection."""
        return {"collection.json": json_of(_described(contents))}

    def lines(self, contents: Contents, rows: Sequence[Row]) -> str:
        """The body of a batch request."""
        return json_of({"objects": [_object(contents, row) for row in rows]})

    def sent(self, contents: Contents, rows: Sequence[Row]) -> Iterator[Request]:
        """One batch request."""
        yield Request("POST", "/v1/batch/objects", self.lines(contents, rows))

    def refused(self, answer: Any) -> str | None:
        """The first error of a batch."""
        for each in answer:
            if each.get("result", {}).get("errors"):
                name = each.get("properties", {}).get("doc_id", each.get("id"))
                return f"document {name!r} was refused: {json_of(each['result']['errors'])[:500]}"
        return None

    def made(self, contents: Contents) -> tuple[Request, Request]:
        """The collection's description, and the collection."""
        make = Request("POST", "/v1/schema", json_of(_described(contents)))
        return Request("GET", f"/v1/schema/{_collection(contents)}"), make

    def fits(self, contents: Contents, answer: Any) -> bool:
        """Whether properties have the same types, and vectors the same names."""
        ours = _described(contents)
        shapes = [
            (
                {each["name"]: each["dataType"] for each in found["properties"]},
                set(found.get("vectorConfig", {})),
            )
            for found in (ours, answer)
        ]
        return shapes[0] == shapes[1]

    def known(self, contents: Contents, ids: Sequence[str]) -> Request:
        """A GraphQL request for ids and stamps."""
        listed = json_of([uuid_of(each) for each in ids])
        where = f'{{path: ["id"], operator: ContainsAny, valueText: {listed}}}'
        query = f"{{Get {{{_collection(contents)}(where: {where}, limit: {len(ids)}) {{doc_id stamp}}}}}}"
        return Request("POST", "/v1/graphql", json_of({"query": query}))

    def stamps_in(self, answer: Any) -> dict[str, str]:
        """Of those found."""
        (found,) = answer["data"]["Get"].values()
        return {each["doc_id"]: each["stamp"] for each in found}

    def counting(self, contents: Contents) -> list[Request]:
        """A GraphQL request for a count."""
        query = f"{{Aggregate {{{_collection(contents)} {{meta {{count}}}}}}}}"
        return [Request("POST", "/v1/graphql", json_of({"query": query}))]

    def count_in(self, contents: Contents, answer: Any) -> int:
        """The count."""
        return int(answer["data"]["Aggregate"][_collection(contents)][0]["meta"]["count"])


ENGINE = Weaviate()


def _collection(contents: Contents) -> str:
    return contents.name[:1].upper() + contents.name[1:]  # Weaviate refuses others


def _described(contents: Contents) -> dict[str, Any]:
    whole = {"dataType": ["text"], "tokenization": "field", "indexSearchable": False}
    stored = {**whole, "indexFilterable": False}
    properties: list[dict[str, Any]] = [
        {"name": "doc_id", **whole},
        {"name": "title", **stored},
        {"name": "text", **stored},
        {"name": "parent", **whole},
        {"name": "start", "dataType": ["int"]},
        {"name": "metadata", **stored},
        {"name": "stamp", **stored},
    ]
    for name, column in contents.field_columns.items():
        kind = TYPES[contents.fields[name]]
        properties.append({"name": column, **(whole if kind == "text" else {"dataType": [kind]})})
    found: dict[str, Any] = {"class": _collection(contents)}
    if contents.lexical:
        terms = {"dataType": ["text"], "tokenization": "whitespace", "indexFilterable": False}
        properties.append({"name": TERMS, **terms})
        bm25 = {"k1": contents.lexical.k1, "b": contents.lexical.b}
        found["invertedIndexConfig"] = {"bm25": bm25, "stopwords": {"preset": "none"}}
    vectors = {}
    for name, column in contents.columns.items():
        index: dict[str, Any] = {"distance": "dot"}
        if name in contents.several:
            index["multivector"] = {"enabled": True}
        vectors[column] = {
            "vectorizer": {"none": {}},
            "vectorIndexType": "hnsw",
            "vectorIndexConfig": index,
        }
    return found | {"properties": properties, "vectorConfig": vectors}


def _object(contents: Contents, row: Row) -> dict[str, Any]:
    names, values = contents.columns, row.stored(contents.field_columns)
    if row.terms is not None:
        values[TERMS] = " ".join(row.terms)
    vectors = {
        names[name]: each.tolist() for name, each in {**row.pooled, **row.several}.items() if len(each)
    }
    return {
        "class": _collection(contents),
        "id": uuid_of(row.document.id),
        "properties": values,
        "vectors": vectors,
    }
