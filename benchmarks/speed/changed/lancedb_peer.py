"""LanceDB's multi-vector column, without an index of it: every document is looked at."""

from changed import Changed, Reader, Writer


def rows_of(some):
    import pyarrow as pa

    values = pa.array(some.chunk.values.astype("float32").ravel())
    rows = pa.FixedSizeListArray.from_arrays(values, some.chunk.values.shape[1])
    vectors = pa.ListArray.from_arrays(pa.array(some.chunk.offsets, pa.int32()), rows)
    return pa.table({"id": some.ids, "vector": vectors})


def table_of(folder):
    import lancedb

    return lancedb.connect(folder / "lance").open_table("documents")


class LanceWriter(Writer):
    def __init__(self, files, folder):
        self._folder = folder
        self._table = table_of(folder) if (folder / "lance").exists() else None

    def create(self, documents):
        import lancedb

        for some in documents:
            if self._table is None:
                self._table = lancedb.connect(self._folder / "lance").create_table("documents", rows_of(some))
            else:
                self._table.add(rows_of(some))
        self.compact(True)

    def add(self, documents):
        self._table.add(rows_of(documents))

    def delete(self, ids):
        self._table.delete("id IN ({})".format(", ".join(f"'{name}'" for name in ids)))

    def compact(self, alone):
        from datetime import timedelta

        if alone:
            self._table.optimize(cleanup_older_than=timedelta(0), delete_unverified=True)
        else:  # a reader may have an older version open, which is kept for a week
            self._table.optimize()


class LanceReader(Reader):
    def __init__(self, files, folder):
        self._table = table_of(folder)

    def refresh(self):
        self._table.checkout_latest()

    def search(self, query, k):
        found = self._table.search(query.tokens).distance_type("cosine").select(["id"]).limit(k)
        return found.to_arrow()["id"].to_pylist()


SYSTEMS = {"LanceDB": Changed("tokens", ("lancedb", "pyarrow"), LanceWriter, LanceReader, "databases")}
