"""fast-plaid, with its defaults for building."""

import numpy as np

from systems import System


def build(files, folder):
    import torch
    from fast_plaid.search import FastPlaid

    sets = [torch.from_numpy(rows.astype(np.float32)) for chunk in files.chunks() for rows in chunk.sets]
    FastPlaid(str(folder), device="cpu").create(sets)


def opened(files, folder, probe, full):
    import torch
    from fast_plaid.search import FastPlaid

    index = FastPlaid(str(folder), device="cpu")

    def ask(query, k):
        asked = torch.from_numpy(query.tokens)[None]
        found = index.search(
            asked, top_k=k, n_ivf_probe=probe, n_full_scores=full, show_progress=False, n_processes=1
        )
        return [position for position, _ in found[0]]

    return ask


SEARCHES = {
    f"probe {probe}, full {full}": {"probe": probe, "full": full}
    for probe, full in ((8, 4096), (4, 1024), (2, 512), (16, 8192))  # the first are its defaults
}
SYSTEMS = {"fast-plaid": System("tokens", ("fast_plaid.search", "torch"), build, opened, SEARCHES, "plaid")}
