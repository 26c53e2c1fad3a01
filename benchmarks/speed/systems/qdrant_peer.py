"""qdrant's local mode, which is written in Python; a server is another matter."""

from systems import System


def build(files, folder):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder))
    comparator = models.MultiVectorConfig(comparator=models.MultiVectorComparator.MAX_SIM)
    done = 0
    for chunk in files.chunks():
        if not done:
            vectors = models.VectorParams(
                size=chunk.values.shape[1], distance=models.Distance.DOT, multivector_config=comparator
            )
            client.create_collection("documents", vectors_config=vectors)
        points = [
            models.PointStruct(id=done + i, vector=rows.astype("float32").tolist())
            for i, rows in enumerate(chunk.sets)
        ]
        client.upsert("documents", points)
        done += len(points)
    client.close()


def opened(files, folder):
    from qdrant_client import QdrantClient

    client = QdrantClient(path=str(folder))

    def ask(query, k):
        found = client.query_points("documents", query=query.tokens.tolist(), limit=k, with_payload=False)
        return [point.id for point in found.points]

    return ask


SYSTEMS = {
    "qdrant local": System("tokens", ("qdrant_client",), build, opened, {"every document": {}}, "databases")
}
