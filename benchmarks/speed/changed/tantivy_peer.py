"""tantivy's BM25. It merges by itself, in threads of its own; "compacting" waits for that."""

from changed import Changed, Reader, Writer

HEAP = 256_000_000


def schema():
    import tantivy

    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("text", tokenizer_name="whitespace", index_option="freq")
    return builder.build()


class TantivyWriter(Writer):
    def __init__(self, files, folder):
        import tantivy

        (folder / "tantivy").mkdir(exist_ok=True)
        self._index = tantivy.Index(schema(), str(folder / "tantivy"))
        self._open()

    def _open(self):
        self._writer = self._index.writer(heap_size=HEAP, num_threads=1)

    def create(self, documents):
        for some in documents:
            self._put(some)
        self._writer.commit()
        self.compact(True)

    def add(self, documents):
        self._put(documents)
        self._writer.commit()

    def delete(self, ids):
        for name in ids:
            self._writer.delete_documents("id", name)
        self._writer.commit()

    def compact(self, alone):
        self._writer.wait_merging_threads()
        self._open()
        self._writer.commit()  # takes the files that merges replaced away

    def close(self):
        self._writer.wait_merging_threads()

    def _put(self, some):
        import tantivy

        for name, terms in zip(some.ids, some.terms, strict=True):
            self._writer.add_document(tantivy.Document(id=name, text=" ".join(terms)))


class TantivyReader(Reader):
    def __init__(self, files, folder):
        import tantivy

        self._schema, self._index = schema(), tantivy.Index.open(str(folder / "tantivy"))
        self._searcher = self._index.searcher()

    def refresh(self):
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query, k):
        import tantivy

        each = [tantivy.Query.term_query(self._schema, "text", term) for term in query.terms]
        asked = tantivy.Query.boolean_query([(tantivy.Occur.Should, one) for one in each])
        found = self._searcher.search(asked, k, count=False).hits
        return [self._searcher.doc(address)["id"][0] for _, address in found]


SYSTEMS = {
    "tantivy": Changed("lexical", ("tantivy",), TantivyWriter, TantivyReader, "databases", k1=1.2, b=0.75)
}
