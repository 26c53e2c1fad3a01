"""OpenSearch: an index with k-NN fields, BM25 over terms that were split here, and MaxSim as a rescore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final

from counterpoint.exporters.contents import Contents, Row, uuid_of
from counterpoint.exporters.engine import Kept, Question
from counterpoint.exporters.requests import HttpEngine, Request, json_of
from counterpoint.index.lexical import LEXICAL

__all__ = ["ENGINE"]

TYPES = {"int": "long", "float": "double", "str": "keyword", "bool": "boolean"}
TERMS = "terms"
LONGEST = 512  # bytes of an id


@final
class OpenSearch(HttpEngine):
    """OpenSearch 3.3 or later, whose scripts have MaxSim."""

    name, title, suffix = "opensearch", "OpenSearch", "ndjson"
    where = "--url http://HOST:9200, or -o FOLDER for files"
    multi_vectors, sparse = True, False
    kept = Kept(
        documents="documents; an id of more than 512 bytes becomes a UUID5",
        pooled="field {column}: knn_vector of {dim} components, innerproduct",
        several="field {column}: rows of {dim} components for lateInteractionScore",
        lexical=f"field {TERMS} of terms that were split here; its own BM25 with our k1 and b",
        metadata="object; each typed field is indexed",
    )

    def limits(self, contents: Contents) -> list[str]:
        """Scores of vectors, lengths in BM25, and MaxSim."""
        found = []
        if contents.lexical:
            found.append("lexical: Lucene rounds lengths of documents to a byte, so scores differ slightly")
        if contents.pooled:
            found.append("pooled vectors: a k-NN score is 1 + the product, or 1 / (1 - product) below 0")
        if contents.several:
            found.append("MaxSim rescores what other parts found (or all documents); sums below 0 count 0")
        return found

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """A `_search`: BM25 and k-NN find documents, MaxSim rescores them."""
        columns, finding, rescoring = contents.columns, [], []
        for name, part in question.parts.items():
            if name == LEXICAL:
                query = {"query": question.words, "boost": part.scale}
                finding.append({"match": {TERMS: query}})
            elif name in contents.pooled:
                vector = {"vector": part.rows[0].tolist(), "k": question.candidates, "boost": part.scale}
                finding.append({"knn": {columns[name]: vector}})
            else:
                rescoring.append(_maxsim(columns[name], part.rows.tolist(), part.scale))
        body: dict[str, Any] = {"size": question.k, "_source": ["id", "title", "text", "metadata"]}
        if not finding:
            scripts = [{"script_score": each} for each in rescoring]
            body["query"] = scripts[0] if len(scripts) == 1 else {"bool": {"should": scripts}}
        else:
            body["query"] = finding[0] if len(finding) == 1 else {"bool": {"should": finding}}
            window = {"window_size": question.candidates}
            again = [{**window, "query": {"rescore_query": {"script_score": each}}} for each in rescoring]
            body |= {"rescore": again} if again else {}
        return {"method": "POST", "path": f"/{_index(contents)}/_search", "body": body}

    def files(self, contents: Contents) -> dict[str, str]:
        """The body that makes the index."""
        return {"index.json": json_of(_described(contents))}

    def lines(self, contents: Contents, rows: Sequence[Row]) -> str:
        """The body of a `_bulk` request."""
        found = []
        for row in rows:
            action = {"index": {"_index": _index(contents), "_id": _id_of(row.document.id)}}
            found += [json_of(action), json_of(_source(contents, row))]
        return "\n".join(found) + "\n"

    def sent(self, contents: Contents, rows: Sequence[Row]) -> Iterator[Request]:
        """One `_bulk` request."""
        yield Request("POST", "/_bulk", self.lines(contents, rows))

    def refused(self, answer: Any) -> str | None:
        """The first error of a `_bulk` request."""
        if not answer.get("errors"):
            return None
        each = next(item["index"] for item in answer["items"] if "error" in item["index"])
        return f"document {each['_id']!r} was refused: {json_of(each['error'])[:500]}"

    def made(self, contents: Contents) -> tuple[Request, Request]:
        """The mapping, and the index."""
        name = _index(contents)
        make = Request("PUT", f"/{name}", json_of(_described(contents)))
        return Request("GET", f"/{name}/_mapping"), make

    def fits(self, contents: Contents, answer: Any) -> bool:
        """Whether the fields have the same types and components."""
        (found,) = answer.values()
        shapes = [
            {n: (x.get("type"), x.get("dimension")) for n, x in fields.items() if n != "metadata"}
            for fields in (
                found["mappings"].get("properties", {}),
                _described(contents)["mappings"]["properties"],
            )
        ]
        return shapes[0] == shapes[1]

    def known(self, contents: Contents, ids: Sequence[str]) -> Request:
        """An `_mget` of ids and stamps."""
        body = json_of({"ids": [_id_of(each) for each in ids]})
        return Request("POST", f"/{_index(contents)}/_mget?_source_includes=id,stamp", body)

    def stamps_in(self, answer: Any) -> dict[str, str]:
        """Of those found."""
        sources = [each["_source"] for each in answer["docs"] if each.get("found")]
        return {source["id"]: source["stamp"] for source in sources}

    def counting(self, contents: Contents) -> list[Request]:
        """Count after a refresh, so that the last documents are in it."""
        name = _index(contents)
        return [Request("POST", f"/{name}/_refresh"), Request("GET", f"/{name}/_count")]

    def count_in(self, contents: Contents, answer: Any) -> int:
        """The count."""
        return int(answer["count"])


ENGINE = OpenSearch()


def _index(contents: Contents) -> str:
    return contents.name.lower()  # OpenSearch refuses capitals


def _id_of(document_id: str) -> str:
    return document_id if len(document_id.encode()) <= LONGEST else uuid_of(document_id)


def _maxsim(column: str, rows: list[list[float]], scale: float) -> dict[str, Any]:
    """A script that is never below 0, which OpenSearch refuses, and 0 for documents without rows."""
    place = f"params._source['{column}']"
    source = (
        f"{place} == null || {place}.isEmpty() ? 0.0 : Math.max(0.0, params.scale * "
        f"lateInteractionScore(params.rows, '{column}', params._source, 'innerproduct'))"
    )
    return {
        "query": {"match_all": {}},
        "script": {"source": source, "params": {"rows": rows, "scale": scale}},
    }


def _described(contents: Contents) -> dict[str, Any]:
    columns, keyword = contents.columns, {"type": "keyword", "ignore_above": 8191}
    fields: dict[str, Any] = {"id": keyword, "parent": keyword, "stamp": {"type": "keyword", "index": False}}
    fields |= {"title": {"type": "text"}, "text": {"type": "text"}, "start": {"type": "long"}}
    typed = {name: {"type": TYPES[kind]} for name, kind in contents.fields.items()}
    fields["metadata"] = {"type": "object", "dynamic": False, "properties": typed}
    for name, dim in contents.pooled.items():
        method = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
        fields[columns[name]] = {"type": "knn_vector", "dimension": dim, "method": method}
    for name in contents.several:
        fields[columns[name]] = {"type": "object", "enabled": False}
    settings: dict[str, Any] = {"index": {"knn": True}}
    if contents.lexical:
        fields[TERMS] = {"type": "text", "analyzer": "whitespace", "similarity": "counterpoint"}
        bm25 = {"type": "BM25", "k1": contents.lexical.k1, "b": contents.lexical.b}
        settings["index"]["similarity"] = {"counterpoint": bm25}
    return {"settings": settings, "mappings": {"dynamic": False, "properties": fields}}


def _source(contents: Contents, row: Row) -> dict[str, Any]:
    about, columns = row.document, contents.columns
    found: dict[str, Any] = {"id": about.id, "title": about.title, "text": about.text, "stamp": row.stamp}
    if about.parent is not None:
        found |= {"parent": about.parent, "start": about.start}
    found["metadata"] = dict(about.metadata)
    vectors = {**row.pooled, **row.several}
    found |= {columns[name]: values.tolist() for name, values in vectors.items()}
    return found if row.terms is None else {**found, TERMS: " ".join(row.terms)}
