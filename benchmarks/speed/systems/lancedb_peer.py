"""LanceDB's multi-vector column: every document is looked at, as long as it has no index of it."""

from systems import System


def build(files, folder):
    import lancedb
    import pyarrow as pa

    table, done = None, 0
    for chunk in files.chunks():
        values = pa.array(chunk.values.astype("float32").ravel())
        rows = pa.FixedSizeListArray.from_arrays(values, chunk.values.shape[1])
        vectors = pa.ListArray.from_arrays(pa.array(chunk.offsets, pa.int32()), rows)
        rows = pa.table({"id": pa.array(range(done, done + len(chunk.ids))), "vector": vectors})
        if table is None:
            table = lancedb.connect(folder).create_table("documents", rows)
        else:
            table.add(rows)
        done += len(chunk.ids)


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
