"""PyLate: Stanford's PLAID, and its reranker over the best by pooled vectors."""

import numpy as np

from systems import System
from systems.numpy_peer import RERANKED, build_arrays, first_stage, open_arrays


def build_plaid(files, folder):
    ids = [str(i) for i in range(files.documents)]
    sets = [rows.astype(np.float32) for chunk in files.chunks() for rows in chunk.sets]
    _plaid(folder, override=True).add_documents(documents_ids=ids, documents_embeddings=sets)


def open_plaid(files, folder, **settings):
    index = _plaid(folder, **settings)

    def ask(query, k):
        found = index([query.tokens], k=k)
        return [int(hit["id"]) for hit in found[0]]

    return ask


def _plaid(folder, **settings):
    from pylate import indexes

    return indexes.PLAID(str(folder), "plaid", use_fast=False, show_progress=False, device="cpu", **settings)


def open_reranker(files, folder, candidates):
    import torch
    from pylate import rank

    sets, pooled = open_arrays(folder)
    tensors = [torch.from_numpy(rows) for rows in sets]

    def ask(query, k):
        found = first_stage(pooled, query, candidates)
        documents = [tensors[i] for i in found]
        ranked = rank.rerank([found.tolist()], [query.tokens], [documents], device="cpu")
        return [hit["id"] for hit in ranked[0]][:k]

    return ask


NEEDS = ("pylate.indexes", "pylate.rank", "torch")
PLAID = {
    "probe 8, full 8192": {"n_ivf_probe": 8, "n_full_scores": 8192},  # PyLate's defaults
    "probe 4, full 1024": {"n_ivf_probe": 4, "n_full_scores": 1024},
}
SYSTEMS = {
    "Stanford PLAID": System("tokens", NEEDS, build_plaid, open_plaid, PLAID, "pylate"),
    "PyLate's reranker": System(
        "tokens",
        NEEDS,
        build_arrays,
        open_reranker,
        {f"{n:,} by pooled vectors": {"candidates": n} for n in RERANKED},
        "pylate",
    ),
}
