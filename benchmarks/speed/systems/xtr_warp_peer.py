"""WARP by xtr-warp-rs. It scores as XTR does, which is not MaxSim: what it does not find is imputed."""

import numpy as np

from systems import System


def build(files, folder):
    import torch
    from xtr_warp.search import XTRWarp

    sets = [torch.from_numpy(rows.astype(np.float32)) for chunk in files.chunks() for rows in chunk.sets]
    XTRWarp(str(folder)).create(sets, device="cpu", show_progress=False)


def opened(files, folder, **settings):
    import torch
    from xtr_warp.search import XTRWarp

    index = XTRWarp(str(folder)).load(device="cpu")

    def ask(query, k):
        asked = torch.from_numpy(query.tokens)[None]
        found = index.search(asked, top_k=k, num_threads=1, show_progress=False, **settings)
        return [position for position, _ in found[0]]

    return ask


SEARCHES = {
    "defaults": {},
    "probe 8": {"nprobe": 8},
    "probe 32, bound 512": {"nprobe": 32, "bound": 512},
}
SYSTEMS = {"xtr-warp": System("tokens", ("xtr_warp.search", "torch"), build, opened, SEARCHES, "plaid")}
