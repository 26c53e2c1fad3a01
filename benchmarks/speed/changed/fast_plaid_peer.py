"""fast-plaid, with its defaults. It calls documents by position, so ids are kept next to it."""

import json

import numpy as np

from changed import Changed, Reader, Writer


def sets_of(some):
    import torch

    return [torch.from_numpy(rows.astype(np.float32)) for rows in some.chunk.sets]


def opened(folder):
    from fast_plaid.search import FastPlaid

    return FastPlaid(str(folder / "plaid"), device="cpu")


class PlaidWriter(Writer):
    def __init__(self, files, folder):
        self._names = folder / "ids.json"
        self._ids = json.loads(self._names.read_text()) if self._names.exists() else []
        (folder / "plaid").mkdir(exist_ok=True)
        self._index = opened(folder)

    def create(self, documents):
        sets = []
        for some in documents:
            sets += sets_of(some)
            self._ids += some.ids
        self._index.create(sets)
        self._keep()

    def add(self, documents):
        self._index.update(sets_of(documents))
        self._ids += documents.ids
        self._keep()

    def delete(self, ids):
        gone = set(ids)
        self._index.delete([at for at, name in enumerate(self._ids) if name in gone])
        self._ids = [name for name in self._ids if name not in gone]
        self._keep()

    def _keep(self):
        self._names.write_text(json.dumps(self._ids))


class PlaidReader(Reader):
    def __init__(self, files, folder):
        self._names, self._index = folder / "ids.json", opened(folder)
        self.refresh()

    def refresh(self):
        """Its vectors are read again by a search, if they changed."""
        written = self._names.stat().st_mtime_ns
        if written != getattr(self, "_written", None):
            self._ids, self._written = json.loads(self._names.read_text()), written

    def search(self, query, k):
        import torch

        asked = torch.from_numpy(query.tokens)[None]
        found = self._index.search(asked, top_k=k, show_progress=False, n_processes=1)
        return [self._ids[at] if at < len(self._ids) else f"none at {at}" for at, _ in found[0]]


NEEDS = ("fast_plaid.search", "torch")
SYSTEMS = {"fast-plaid": Changed("tokens", NEEDS, PlaidWriter, PlaidReader, "plaid")}
