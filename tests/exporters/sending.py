"""Send the requests of `query_for` through the clients of engines that run in this process."""


def ask_qdrant(client, request):
    """Send a request of the REST API through the client, as validated by the client's own models."""
    from qdrant_client import models

    _, name, *_ = request["path"].strip("/").split("/")
    body = models.QueryRequest.model_validate(request["body"])
    given = {key: getattr(body, key) for key in body.model_fields_set}
    points = client.query_points(name, **given).points
    return [(point.payload["id"], point.score) for point in points]


def ask_lancedb(table, request):
    """Send each part's request, checked by the models of LanceDB's REST API, and add the scores."""
    from lance_namespace_urllib3_client.models import QueryTableRequest

    total = {}
    for part in request["parts"]:
        body = QueryTableRequest.model_validate(part["request"])
        if body.full_text_query:
            query = body.full_text_query.string_query
            search = table.search(query.query, query_type="fts", fts_columns=query.columns)
        else:
            vector = body.vector.multi_vector or body.vector.single_vector
            search = table.search(vector, vector_column_name=body.vector_column)
            search = search.distance_type(body.distance_type)
        for row in search.limit(body.k).to_list():
            score = row["_score"] if body.full_text_query else part["offset"] - row["_distance"]
            total[row["id"]] = total.get(row["id"], 0.0) + part["scale"] * score
    return sorted(total.items(), key=lambda pair: -pair[1])[: request["limit"]]


def query_of(search):
    (data,) = search["data"]
    return [{int(n): w for n, w in data.items()} if isinstance(data, dict) else data]


def ask_milvus(client, request):
    """What the REST API does, by the client: Milvus Lite has no HTTP."""
    from pymilvus import AnnSearchRequest, WeightedRanker

    body = request["body"]
    given = {"limit": body["limit"], "output_fields": body["outputFields"]}
    if request["path"].endswith("/hybrid_search"):
        requests = [
            AnnSearchRequest(query_of(one), one["annsField"], one["searchParams"], one["limit"])
            for one in body["search"]
        ]
        params = body["rerank"]["params"]
        ranker = WeightedRanker(*params["weights"], norm_score=params["norm_score"])
        (found,) = client.hybrid_search(body["collectionName"], requests, ranker, **given)
    else:
        (found,) = client.search(
            body["collectionName"], query_of(body), anns_field=body["annsField"], **given
        )
    return [(hit["id"], hit["distance"]) for hit in found]
