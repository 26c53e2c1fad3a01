"""Ours: the default index of a collection's texts; and what its ranking is compared with."""

from functools import partial
from itertools import islice

from systems import OURS, System


def build(codec, files, folder):
    from counterpoint.data import open_collection
    from counterpoint.index import build_index
    from counterpoint.loading import load_model

    model = load_model("minilm")
    documents = islice(open_collection(files.about["data"]).documents(), files.documents)
    settings = model.index_settings("minilm", **({"codec": codec} if codec else {}))
    with encoding_timed(model, folder):
        build_index(documents, model, folder / "index", settings)


class encoding_timed:
    """Adds up the seconds that a model encodes documents, and leaves them in the folder."""

    def __init__(self, model, folder):
        self.model, self.folder, self.spent = model, folder, [0.0, 0.0]

    def __enter__(self):
        from time import perf_counter, process_time

        encode, spent = self.model.encode_counted, self.spent

        def timed(*given):
            cpu, wall = process_time(), perf_counter()
            found = encode(*given)
            spent[0] += process_time() - cpu
            spent[1] += perf_counter() - wall
            return found

        self.model.encode_counted = timed

    def __exit__(self, *error):
        import json

        (self.folder / "encoding.json").write_text(json.dumps(self.spent))


def opened(files, folder):
    import counterpoint as cp

    index = cp.open(folder / "index", cached=10**6)
    return lambda query, k: [hit.document.id for hit in index.search(query.text, k).hits]


def open_reference(files, folder):
    import counterpoint as cp
    from counterpoint.search import Run

    index = cp.open(folder / "index", backend="torch")
    searcher = index.searcher()
    every = Run({"": {index.index.name_of(i): 0.0 for i in range(len(index))}})
    return lambda query, k: [name for name, _ in searcher.run({"": query.text}, k, candidates=every)[""]]


NEEDS = (*OURS, "counterpoint.library")
SYSTEMS = {
    "ours, default": System("texts", NEEDS, partial(build, None), opened, encodes=True, shown=10),
    "the default in float32, every document": System(
        "texts", NEEDS, partial(build, "float32"), open_reference
    ),
}
