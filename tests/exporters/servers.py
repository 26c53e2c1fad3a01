"""Servers that answer as OpenSearch, Weaviate and Vespa document it, for the requests that an export sends.

They rank, too, by the documents that were written to them, so that a query for an engine can be compared with
the index. Scores follow the engines' documentation, and share no code with the package.
"""

import json
import math
import re
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import unquote

import numpy as np


class Engine:
    """What a server has been told, and the requests it has seen."""

    def __init__(self):
        self.schema, self.documents, self.seen = None, {}, []
        self.refuse = lambda document_id: False

    def bm25(self, query, lists, k1, b, factor=1.0):
        """Lucene's BM25 of lists of terms, by id."""
        counts = {name: Counter(terms) for name, terms in lists.items()}
        average = sum(map(len, lists.values())) / len(lists)
        total = dict.fromkeys(lists, 0.0)
        for term in query:
            df = sum(term in each for each in counts.values())
            idf = math.log(1 + (len(lists) - df + 0.5) / (df + 0.5))
            for name, each in counts.items():
                if each[term]:
                    norm = k1 * (1 - b + b * len(lists[name]) / average)
                    total[name] += factor * idf * each[term] / (each[term] + norm)
        return total


class OpenSearch(Engine):
    def answer(self, method, path, body):
        if path.endswith("/_mapping"):
            return (200, {"my_notes": self.schema}) if self.schema else (404, {"error": "no such index"})
        if method == "PUT":
            self.schema = json.loads(body)
            return 200, {"acknowledged": True}
        if path == "/_bulk":
            lines = [json.loads(line) for line in body.splitlines()]
            items = []
            for action, source in zip(lines[::2], lines[1::2], strict=True):
                about = dict(action["index"])
                if self.refuse(source["id"]):
                    about["error"] = {"type": "mapper_parsing_exception"}
                else:
                    self.documents[about["_id"]] = source
                items.append({"index": about})
            return 200, {"errors": any("error" in each["index"] for each in items), "items": items}
        if "/_mget" in path:
            found = [(name, self.documents.get(name)) for name in json.loads(body)["ids"]]
            return 200, {"docs": [{"_id": n, "found": s is not None, "_source": s} for n, s in found]}
        if path.endswith("/_refresh"):
            return 200, {}
        if path.endswith("/_count"):
            return 200, {"count": len(self.documents)}
        return 400, {"error": f"unknown request {method} {path}"}

    def search(self, request):
        body, names = request["body"], {n: s["id"] for n, s in self.documents.items()}
        scores = self.scored(body["query"])
        for again in body.get("rescore", []):
            more = self.scored(again["query"]["rescore_query"])
            scores = {name: score + more[name] for name, score in scores.items()}
        ranked = sorted(scores.items(), key=lambda pair: -pair[1])[: body["size"]]
        return [(names[name], score) for name, score in ranked]

    def scored(self, query):
        ((kind, given),) = query.items()
        if kind == "bool":
            total = Counter()
            for each in given["should"]:
                total.update(self.scored(each))
            return dict(total)
        if kind == "match":
            ((field, asked),) = given.items()
            similarity = self.schema["mappings"]["properties"][field]["similarity"]
            bm25 = self.schema["settings"]["index"]["similarity"][similarity]
            lists = {name: source[field].split() for name, source in self.documents.items()}
            found = self.bm25(asked["query"].split(), lists, bm25["k1"], bm25["b"])
            return {name: asked["boost"] * score for name, score in found.items() if score}
        if kind == "knn":
            ((field, asked),) = given.items()
            dots = {n: float(np.dot(s[field], asked["vector"])) for n, s in self.documents.items()}
            best = sorted(dots, key=lambda name: -dots[name])[: asked["k"]]
            return {n: asked["boost"] * (1 + dots[n] if dots[n] >= 0 else 1 / (1 - dots[n])) for n in best}
        assert kind == "script_score" and given["query"] == {"match_all": {}}
        params = given["script"]["params"]
        (field,) = set(re.findall(r"_source\['(\w+)'\]", given["script"]["source"]))
        assert "lateInteractionScore" in given["script"]["source"]
        return {
            name: max(0.0, params["scale"] * maxsim(params["rows"], source[field]))
            for name, source in self.documents.items()
        }


class Weaviate(Engine):
    def answer(self, method, path, body):
        if method == "GET":
            return (200, self.schema) if self.schema else (404, {})
        given = json.loads(body)
        if path == "/v1/schema":
            self.schema = given
            return 200, given
        if path == "/v1/batch/objects":
            answers = []
            for each in given["objects"]:
                if self.refuse(each["properties"]["doc_id"]):
                    answers.append({**each, "result": {"errors": {"error": [{"message": "invalid"}]}}})
                else:
                    self.documents[each["id"]] = each
                    answers.append({**each, "result": {"status": "SUCCESS"}})
            return 200, answers
        query = given["query"]
        if "Aggregate" in query:
            return 200, {"data": {"Aggregate": {self.name: [{"meta": {"count": len(self.documents)}}]}}}
        ids = json.loads(re.search(r"valueText: (\[.*?\])", query)[1])
        found = [self.documents[each]["properties"] for each in ids if each in self.documents]
        return 200, {"data": {"Get": {self.name: found}}}

    @property
    def name(self):
        return self.schema["class"]

    def search(self, request):
        total = Counter()
        for part in request["parts"]:
            query = part["request"]["body"]["query"]
            assert query.count("{") == query.count("}")
            assert f"{{Get {{{self.name}(" in query
            for name, score in self.scored(query).items():
                total[name] += part["scale"] * score
        return sorted(total.items(), key=lambda pair: -pair[1])[: request["limit"]]

    def scored(self, query):
        limit = int(re.search(r"limit: (\d+)", query)[1])
        if asked := re.search(r'bm25: \{query: (".*?"), properties: \["(\w+)"\]\}', query):
            bm25 = self.schema["invertedIndexConfig"]["bm25"]
            lists = {
                each["properties"]["doc_id"]: each["properties"][asked[2]].split()
                for each in self.documents.values()
            }
            found = self.bm25(json.loads(asked[1]).split(), lists, bm25["k1"], bm25["b"])
            found = {name: score for name, score in found.items() if score}
        else:
            asked = re.search(r'nearVector: \{vector: (\[.*\]), targetVectors: \["(\w+)"\]\}', query)
            rows = np.atleast_2d(json.loads(asked[1]))
            found = {
                each["properties"]["doc_id"]: maxsim(rows, np.atleast_2d(each["vectors"][asked[2]]))
                for each in self.documents.values()
                if asked[2] in each["vectors"]
            }
        best = sorted(found, key=lambda name: -found[name])[:limit]
        return {name: found[name] for name in best}


class Vespa(Engine):
    def __init__(self):
        super().__init__()
        self.schema = True  # deployed

    def answer(self, method, path, body):
        if path.startswith("/document/v1/"):
            fields = json.loads(body)["fields"]
            if self.refuse(fields["doc_id"]):
                return 400, {"message": "invalid"}
            name = unquote(path.rpartition("/")[2])
            assert path.startswith("/document/v1/my_notes/my_notes/docid/") and name == fields["doc_id"]
            self.documents[name] = fields
            return 200, {"id": name}
        if method == "GET":
            return (200, {"root": {}}) if self.schema else (400, {"root": {"errors": [{"code": 4}]}})
        given = json.loads(body)
        if " where true" in given["yql"]:
            return 200, {"root": {"fields": {"totalCount": len(self.documents)}}}
        listed = json.loads("[" + re.search(r"doc_id in \((.*)\)$", given["yql"])[1] + "]")
        assert len(listed) <= given["hits"] <= 400  # Vespa's limit
        found = [self.documents[each] for each in listed if each in self.documents]
        return 200, {"root": {"children": [{"fields": each} for each in found]}}

    def search(self, request):
        """Everything that a first stage may find, ranked by the rank profile of the schema."""
        body = request["body"]
        asked = dict(re.findall(r'bm25\(terms\)\.(k1|b): "(.*?)"', self.package))
        k1, b = float(asked["k1"]), float(asked["b"])
        lists = {name: fields["terms"] for name, fields in self.documents.items()}
        words = re.findall(r'terms contains "(.*?)"', body["yql"])
        lexical = self.bm25(words, lists, k1, b, k1 + 1)
        functions = re.findall(r"query\(scale_(\w+)\) \* part_(\w+)\(\)", self.package)
        assert all(scale == function for scale, function in functions)
        total = Counter()
        for name, _ in functions:
            scale = body.get(f"input.query(scale_{name})", 0.0)
            for document, fields in self.documents.items():
                if name == "lexical":
                    score = lexical[document] / (k1 + 1)
                elif f"input.query({name})" not in body:
                    score = 0.0
                elif "values" in fields[name]:
                    score = float(np.dot(fields[name]["values"], body[f"input.query({name})"]))
                else:
                    rows = list(body[f"input.query({name})"].values())
                    score = maxsim(rows, list(fields[name]["blocks"].values()))
                total[document] += scale * score
        if "nearestNeighbor" not in body["yql"] and " where true" not in body["yql"]:
            total = Counter({name: score for name, score in total.items() if lexical[name]})
        return sorted(total.items(), key=lambda pair: -pair[1])[: body["hits"]]


def maxsim(rows, others):
    return float((np.asarray(rows) @ np.asarray(others).T).max(axis=1).sum()) if len(others) else 0.0


ENGINES = {"opensearch": OpenSearch, "weaviate": Weaviate, "vespa": Vespa}


@contextmanager
def serving(engine):
    """The address of a server."""

    class Handler(BaseHTTPRequestHandler):
        def handle_one(self):
            size = int(self.headers.get("content-length") or 0)
            body = self.rfile.read(size).decode()
            engine.seen.append((self.command, self.path, dict(self.headers)))
            status, found = engine.answer(self.command, self.path, body)
            text = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PUT = handle_one

        def log_message(self, *about):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
