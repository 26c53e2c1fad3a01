"""Vespa: an application package and documents; a rank profile adds the parts as the index does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, final
from urllib.parse import quote

from counterpoint.exporters.contents import Contents, Row
from counterpoint.exporters.engine import Kept, Question
from counterpoint.exporters.requests import HttpEngine, Request, json_of
from counterpoint.index.lexical import LEXICAL

__all__ = ["ENGINE"]

TYPES = {"int": "long", "float": "double", "str": "string", "bool": "bool"}
TERMS = "terms"
PROFILE = "counterpoint"
SERVICES = """<?xml version="1.0" encoding="UTF-8"?>
<services version="1.0">
    <container id="default" version="1.0">
        <search></search>
        <document-api></document-api>
    </container>
    <content id="{name}" version="1.0">
        <min-redundancy>1</min-redundancy>
        <documents>
            <document type="{name}" mode="index"></document>
        </documents>
        <nodes>
            <node distribution-key="0" hostalias="node1"></node>
        </nodes>
    </content>
</services>
"""


@final
class Vespa(HttpEngine):
    """Vespa 8. The application package is deployed by `vespa deploy`; documents can be sent to a server."""

    name, title, suffix = "vespa", "Vespa", "jsonl"
    where = "--url http://HOST:8080, or -o FOLDER for files"
    multi_vectors, sparse = True, False
    kept = Kept(
        documents="documents; doc_id is the document's own id",
        pooled="field {column}: tensor<float>(x[{dim}]) with HNSW, dot product",
        several="field {column}: tensor<float>(token{{}}, x[{dim}]), MaxSim by the profile",
        lexical=f"field {TERMS} of terms that were split here; Vespa's BM25 with our k1 and b",
        metadata="JSON, and an attribute for each typed field",
    )

    def limits(self, contents: Contents) -> list[str]:
        """BM25 is Vespa's, and the schema is deployed by others."""
        found = ["schema: deploy the folder of -o by `vespa deploy` before documents are sent"]
        if contents.lexical:
            found.append("lexical: Vespa computes idf and average length itself, on each content node")
        return found

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """A search: first stages find documents, and the rank profile adds all parts."""
        columns, depth = _columns(contents), question.candidates
        body: dict[str, Any] = {"hits": question.k, "ranking": PROFILE}
        conditions = []
        for name, part in question.parts.items():
            body[f"input.query(scale_{columns[name]})"] = part.scale
            if name == LEXICAL:
                terms = [f"{TERMS} contains {json_of(term)}" for term in question.words.split()]
                conditions.append(f"({{targetHits: {depth}}}weakAnd({', '.join(terms)}))")
                continue
            rows = part.rows.tolist()
            if name in contents.pooled:
                body[f"input.query({columns[name]})"] = rows[0]
                nearest = f"nearestNeighbor({columns[name]}, {columns[name]})"
                conditions.append(f"({{targetHits: {depth}}}{nearest})")
            else:
                body[f"input.query({columns[name]})"] = {str(i): row for i, row in enumerate(rows)}
        where = " or ".join(conditions) or "true"
        body["yql"] = f"select doc_id, title, text, metadata from {contents.name} where {where}"
        return {"method": "POST", "path": "/search/", "body": body}

    def files(self, contents: Contents) -> dict[str, str]:
        """The application package."""
        name = contents.name
        return {f"schemas/{name}.sd": _schema(contents), "services.xml": SERVICES.format(name=name)}

    def lines(self, contents: Contents, rows: Sequence[Row]) -> str:
        """Documents for `vespa feed`."""
        name = contents.name
        found = [
            {"put": f"id:{name}:{name}::{row.document.id}", "fields": _fields(contents, row)} for row in rows
        ]
        return "".join(json_of(each) + "\n" for each in found)

    def sent(self, contents: Contents, rows: Sequence[Row]) -> Iterator[Request]:
        """One request per document."""
        place = f"/document/v1/{contents.name}/{contents.name}/docid"
        for row in rows:
            body = json_of({"fields": _fields(contents, row)})
            yield Request("POST", f"{place}/{quote(row.document.id, safe='')}", body)

    def refused(self, answer: Any) -> str | None:
        """Nothing: a refused document has a bad status."""
        return None

    def made(self, contents: Contents) -> tuple[Request, None]:
        """A search that needs the document type; only a deployment makes it."""
        query = quote(f"select doc_id, stamp from {contents.name} where true")
        return Request("GET", f"/search/?yql={query}&hits=0&ranking={PROFILE}"), None

    def fits(self, contents: Contents, answer: Any) -> bool:
        """Whether the search knew the document type and the rank profile."""
        return "errors" not in answer["root"]

    def known(self, contents: Contents, ids: Sequence[str]) -> Request:
        """A search for ids and stamps."""
        listed = ", ".join(map(json_of, ids))
        yql = f"select doc_id, stamp from {contents.name} where doc_id in ({listed})"
        return Request("POST", "/search/", json_of({"yql": yql, "hits": len(ids), "ranking": "unranked"}))

    def stamps_in(self, answer: Any) -> dict[str, str]:
        """Of those found."""
        found = [each["fields"] for each in answer["root"].get("children", [])]
        return {each["doc_id"]: each["stamp"] for each in found}

    def counting(self, contents: Contents) -> list[Request]:
        """A search for everything."""
        yql = f"select doc_id from {contents.name} where true"
        return [Request("POST", "/search/", json_of({"yql": yql, "hits": 0, "ranking": "unranked"}))]

    def count_in(self, contents: Contents, answer: Any) -> int:
        """The total."""
        return int(answer["root"]["fields"]["totalCount"])


ENGINE = Vespa()


def _columns(contents: Contents) -> dict[str, str]:
    """The field of each set, and the name of BM25 in the rank profile."""
    return contents.columns | {LEXICAL: LEXICAL}


def _schema(contents: Contents) -> str:
    fields = _document(contents)
    inputs, functions, properties = _profile(contents)
    total = " + ".join(f"query(scale_{name}) * part_{name}()" for name in functions)
    lines = [f"schema {contents.name} {{", f"    document {contents.name} {{"]
    for name, (kind, body) in fields.items():
        lines += [
            f"        field {name} type {kind} {{",
            *(f"            {each}" for each in body),
            "        }",
        ]
    lines += ["    }", f"    rank-profile {PROFILE} {{", "        inputs {"]
    lines += [*(f"            {each}" for each in inputs), "        }"]
    for name, expression in functions.items():
        lines += [f"        function part_{name}() {{", "            expression {"]
        lines += [f"                {expression}", "            }", "        }"]
    lines += ["        first-phase {", "            expression {", f"                {total}"]
    lines += ["            }", "        }"]
    if properties:
        lines += ["        rank-properties {", *(f"            {each}" for each in properties), "        }"]
    return "\n".join([*lines, "    }", "}"])


def _document(contents: Contents) -> dict[str, tuple[str, list[str]]]:
    """For each field, its type, and the lines of its body."""
    columns = _columns(contents)
    fast = ["attribute {", "    fast-search", "}"]
    found: dict[str, tuple[str, list[str]]] = {
        "doc_id": ("string", ["indexing: attribute | summary", *fast]),
        "title": ("string", ["indexing: summary"]),
        "text": ("string", ["indexing: summary"]),
        "parent": ("string", ["indexing: attribute | summary"]),
        "start": ("long", ["indexing: attribute | summary"]),
        "metadata": ("string", ["indexing: summary"]),
        "stamp": ("string", ["indexing: attribute | summary"]),
    }
    for name, column in contents.field_columns.items():
        found[column] = (TYPES[contents.fields[name]], ["indexing: attribute | summary", *fast])
    if contents.lexical:
        words = ["indexing: index", "index: enable-bm25", "match {", "    word", "}", "stemming: none"]
        found[TERMS] = ("array<string>", words)
    for name, dim in contents.pooled.items():
        dot = ["attribute {", "    distance-metric: dotproduct", "}"]
        found[columns[name]] = (f"tensor<float>(x[{dim}])", ["indexing: attribute | index", *dot])
    for name, dim in contents.several.items():
        found[columns[name]] = (f"tensor<float>(token{{}}, x[{dim}])", ["indexing: attribute"])
    return found


def _profile(contents: Contents) -> tuple[list[str], dict[str, str], list[str]]:
    """Inputs, the expression of each part, and rank properties."""
    columns = _columns(contents)
    inputs, functions, properties = [], {}, []
    for name, dim in contents.pooled.items():
        column = columns[name]
        inputs.append(f"query({column}) tensor<float>(x[{dim}])")
        functions[column] = f"sum(query({column}) * attribute({column}))"
    for name, dim in contents.several.items():
        column = columns[name]
        inputs.append(f"query({column}) tensor<float>(row{{}}, x[{dim}])")
        products = f"sum(query({column}) * attribute({column}), x)"
        functions[column] = f"sum(reduce({products}, max, token), row)"
    if contents.lexical:
        k1, b = contents.lexical.k1, contents.lexical.b
        functions[LEXICAL] = f"bm25({TERMS}) / {k1 + 1:g}"
        properties = [f'bm25({TERMS}).k1: "{k1:g}"', f'bm25({TERMS}).b: "{b:g}"']
    return [*inputs, *(f"query(scale_{name}) double: 0.0" for name in functions)], functions, properties


def _fields(contents: Contents, row: Row) -> dict[str, Any]:
    columns, found = _columns(contents), row.stored(contents.field_columns)
    if row.terms is not None:
        found[TERMS] = list(row.terms)
    found |= {columns[name]: {"values": values.tolist()} for name, values in row.pooled.items()}
    for name, values in row.several.items():
        found[columns[name]] = {"blocks": {str(i): each.tolist() for i, each in enumerate(values)}}
    return found
