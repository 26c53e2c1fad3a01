"""LanceDB: a table with a vector column for each set, multi-vectors with MaxSim, and its own BM25."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, final

from counterpoint.errors import ConfigError, MissingExtraError
from counterpoint.exporters.contents import Contents, Row
from counterpoint.exporters.engine import Engine, Kept, Place, Question, Writer
from counterpoint.index.lexical import LEXICAL

if TYPE_CHECKING:
    import pyarrow
    from lancedb.table import Table

__all__ = ["ENGINE"]

TERMS = "terms"
K1 = 1.2  # LanceDB's BM25 multiplies a score by k1 + 1


@final
class LanceDB(Engine):
    """LanceDB, in this process with files in a folder, in an object store, or as a service."""

    name, title = "lancedb", "LanceDB"
    where = "-o FOLDER, or --url with s3://…, gs://…, az://… or db://…"
    multi_vectors, sparse = True, False
    kept = Kept(
        documents="rows, with the document's own id",
        pooled="column {column} of {dim} components, dot product",
        several="column {column}: multi-vector of {dim} components, MaxSim of dot products",
        lexical=f"column {TERMS} of terms that were split here, with LanceDB's full-text index",
        metadata="JSON, and a column for each typed field",
    )

    def limits(self, contents: Contents) -> list[str]:
        """BM25 has fixed constants, and a request asks one column."""
        found = ["hybrid: a request asks one column; query_for gives one per part, whose scores are added"]
        found += ["vector columns have no index, so all are scored; add one with `table.create_index`"]
        if contents.lexical:
            found.append(
                f"lexical: LanceDB computes BM25, with k1 = 1.2 and b = 0.75 instead of "
                f"{contents.lexical.k1:g} and {contents.lexical.b:g}"
            )
        return found

    def connect(self, contents: Contents, place: Place) -> Writer:
        """Open a folder or a URI."""
        try:
            import lancedb
        except ImportError as error:
            raise MissingExtraError("export to LanceDB", package="lancedb", extra="lancedb") from error
        where = place.url if place.url is not None else str(place.folder)
        return _Rows(contents, lancedb.connect(where, api_key=place.key))

    def request(self, contents: Contents, question: Question) -> dict[str, Any]:
        """For each part, the body of a request of LanceDB's REST API, and how to add its scores.

        A row's score by a part is `scale` · `_score`, or `scale` · (`offset` − `_distance`).
        """
        alone = len(question.parts) == 1
        columns, parts = contents.columns, []
        for name, part in question.parts.items():
            body: dict[str, Any] = {"k": question.k if alone else question.candidates}
            if name == LEXICAL:
                query = {"string_query": {"query": question.words, "columns": [TERMS]}}
                body |= {"vector": {}, "full_text_query": query}
                parts.append({"part": name, "scale": part.scale / (K1 + 1), "request": body})
                continue
            rows = part.rows.tolist()
            vector = {"multi_vector": rows} if name in contents.several else {"single_vector": rows[0]}
            body |= {"vector": vector, "vector_column": columns[name], "distance_type": "dot"}
            parts.append({"part": name, "scale": part.scale, "offset": len(rows), "request": body})
        return {"table": contents.name, "limit": question.k, "parts": parts}


ENGINE = LanceDB()


@final
class _Rows(Writer):
    def __init__(self, contents: Contents, database: Any):
        from lancedb.remote.errors import LanceDBClientError

        self.contents, self.database = contents, database
        self.fields = contents.field_columns
        self.columns = contents.columns
        self.faults = (LanceDBClientError, OSError)
        self._known: Mapping[str, str] = {}
        self._table: Table | None = None

    @property
    def table(self) -> Table:
        """The table, once `create` has opened it."""
        assert self._table is not None
        return self._table

    def create(self) -> None:
        schema, name = self._schema(), self.contents.name
        try:
            self._table = self.database.create_table(name, schema=schema, exist_ok=True)
        except ValueError as error:  # of files in a folder or an object store; a service does not check
            raise self._other(error) from error
        if not self.table.schema.equals(schema):
            raise self._other()

    def stamps(self, ids: Sequence[str]) -> Mapping[str, str]:
        listed = ", ".join("'" + each.replace("'", "''") + "'" for each in ids)
        query = self.table.search().where(f"id IN ({listed})").select(["id", "stamp"]).limit(len(ids))
        self._known = {row["id"]: row["stamp"] for row in query.to_list()}
        return self._known

    def write(self, rows: Sequence[Row]) -> None:
        new = [row for row in rows if row.document.id not in self._known]
        changed = [row for row in rows if row.document.id in self._known]
        if new:
            self.table.add(self._arrow(new))
        if changed:
            self.table.merge_insert("id").when_matched_update_all().execute(self._arrow(changed))

    def count(self) -> int:
        return self.table.count_rows()

    def finish(self) -> None:
        """Index the terms, and merge the files of small writes."""
        from lancedb.index import FTS

        if self.contents.lexical and not any(each.columns == [TERMS] for each in self.table.list_indices()):
            words = FTS(
                base_tokenizer="whitespace", lower_case=False, stem=False, remove_stop_words=False,
                ascii_folding=False, max_token_length=None,
            )  # fmt: skip
            self.table.create_index(TERMS, config=words)
        self.table.optimize()

    def close(self, done: bool) -> None:
        """Nothing is open."""

    def _other(self, why: object = "") -> ConfigError:
        return ConfigError(
            f"--name: the table {self.contents.name!r} exists and has other columns; choose another name, or "
            f"drop it {f'({why})' if why else ''}".rstrip()
        )

    def _schema(self) -> pyarrow.Schema:
        import pyarrow as pa

        types = {"int": pa.int64(), "float": pa.float64(), "str": pa.string(), "bool": pa.bool_()}
        texts = {name: pa.string() for name in ("id", "title", "text", "parent")}
        columns = {**texts, "start": pa.int64(), "metadata": pa.string()}
        columns |= {self.fields[name]: types[kind] for name, kind in self.contents.fields.items()}
        for name, dim in self.contents.pooled.items():
            columns[self.columns[name]] = pa.list_(pa.float32(), dim)
        for name, dim in self.contents.several.items():
            columns[self.columns[name]] = pa.list_(pa.list_(pa.float32(), dim))
        if self.contents.lexical:
            columns[TERMS] = pa.string()
        return pa.schema({**columns, "stamp": pa.string()})

    def _arrow(self, rows: Sequence[Row]) -> pyarrow.Table:
        import pyarrow as pa

        return pa.Table.from_pylist([self._values(row) for row in rows], schema=self._schema())

    def _values(self, row: Row) -> dict[str, Any]:
        about = row.document
        found: dict[str, Any] = {"id": about.id, "title": about.title, "text": about.text}
        found |= {"parent": about.parent, "start": about.start, "metadata": row.metadata, "stamp": row.stamp}
        found |= {column: about.metadata.get(name) for name, column in self.fields.items()}
        found |= {self.columns[name]: values for name, values in row.pooled.items()}
        found |= {self.columns[name]: list(values) for name, values in row.several.items()}
        return found if row.terms is None else {**found, TERMS: " ".join(row.terms)}
