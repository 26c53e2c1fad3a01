"""MaxSim of all queries with all documents on a GPU, for rows that have to be scored in full."""

import numpy as np

from counterpoint.index.kernels import maxsim_table

PRODUCTS = 1 << 27  # similarities at a time: half a GiB


def best_table():
    """`gpu_table` where there is a GPU, else the library's own; both take queries and documents."""
    import torch

    return gpu_table if torch.cuda.is_available() else maxsim_table


def gpu_table(queries, documents, device="cuda"):
    """MaxSim in float32: for each query (rows `[m, d]`) and document (rows `[n, d]`), a `[q, n]` table.

    As `counterpoint.index.kernels.maxsim_table`, a document without rows has 0.
    """
    import torch

    asked = torch.from_numpy(queries.values).to(device, torch.float32)
    of_query = torch.from_numpy(np.repeat(np.arange(len(queries)), np.diff(queries.offsets))).to(device)
    lengths = torch.from_numpy(np.diff(documents.offsets)).to(device)
    scores = torch.zeros(len(queries), len(documents), device=device)
    if not len(asked) or not int(documents.offsets[-1]):
        return scores.cpu().numpy()
    width = int(lengths.max())
    stored = torch.zeros(len(documents), width, queries.dim, device=device)
    there = torch.arange(width, device=device) < lengths[:, None]
    stored[there] = torch.from_numpy(documents.values).to(device, torch.float32)
    size = max(1, PRODUCTS // (width * len(asked)))
    for start in range(0, len(documents), size):
        piece, mask = stored[start : start + size], there[start : start + size]
        products = torch.einsum("md,nwd->nmw", asked, piece)
        best = products.masked_fill_(~mask[:, None], -torch.inf).amax(-1)
        best = torch.where(lengths[start : start + size, None] > 0, best, 0.0)
        scores[:, start : start + size].index_add_(0, of_query, best.T)
    return scores.cpu().numpy()
