"""BM25 of this toolkit, of bm25s and of tantivy, on the same terms (see `lexical.py`)."""

from functools import partial

from systems import System


def build(name, files, folder):
    import lexical

    lexical.SYSTEMS[name][0](list(files.terms()), folder)


def opened(name, files, folder):
    import lexical

    ask = lexical.SYSTEMS[name][1](folder)

    def asked(query, k):
        return POSITIONS[name](ask(query.terms, k))

    return asked


POSITIONS = {
    "ours": lambda found: found.tolist(),
    "bm25s numba": lambda found: [] if found is None else found.documents[0].tolist(),
    "tantivy": lambda found: [address.doc for _, address in found],
}
NEEDS = {"ours": (), "bm25s numba": ("bm25s", "numba"), "tantivy": ("tantivy",)}
SYSTEMS = {
    f"{'ours, BM25' if name == 'ours' else name}": System(
        "lexical", ("lexical", *needs), partial(build, name), partial(opened, name)
    )
    for name, needs in NEEDS.items()
}
