"""LanceDB's multi-vector column: every document is looked at, as long as it has no index of it."""

from systems import System


def build(files, folder):
    import lancedb
    import pyarrow as pa

    table, done = None, 0
    for chunk in files.chunks():
        sets = [rows.astype("float32") for rows in chunk.sets]
        kind = pa.list_(pa.list_(pa.float32(), chunk.values.shape[1]))
        vectors = pa.array([list(rows) for rows in sets], kind)
        rows = pa.table({"id": pa.array(range(done, done + len(sets))), "vector": vectors})
        if table is None:
            table = lancedb.connect(folder).create_table("documents", rows)
        else:
            table.add(rows)
        done += len(sets)


def opened(files, folder):
    import lancedb

    table = lancedb.connect(folder).open_table("documents")

    def ask(query, k):
        found = table.search(query.tokens).distance_type("cosine").select(["id"]).limit(k)
        return found.to_arrow()["id"].to_pylist()

    return ask


SYSTEMS = {
    "LanceDB": System("tokens", ("lancedb", "pyarrow"), build, opened, {"every document": {}}, "databases"),
}
