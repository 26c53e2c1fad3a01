"""maxsim-cpu, over every document or the best by pooled vectors."""

import numpy as np

from systems import System
from systems.numpy_peer import RERANKED, best, build_arrays, first_stage, open_arrays


def opened(files, folder, candidates):
    import maxsim_cpu

    sets, pooled = open_arrays(folder)

    def ask(query, k):
        if not candidates:
            return best(np.asarray(maxsim_cpu.maxsim_scores_variable(query.tokens, sets)), k).tolist()
        found = first_stage(pooled, query, candidates)
        scores = np.asarray(maxsim_cpu.maxsim_scores_variable(query.tokens, [sets[i] for i in found]))
        return found[best(scores, k)].tolist()

    return ask


SEARCHES = {
    "every document": {"candidates": 0},
    **{f"{n:,} by pooled vectors": {"candidates": n} for n in RERANKED},
}
SYSTEMS = {"maxsim-cpu": System("tokens", ("maxsim_cpu",), build_arrays, opened, SEARCHES)}
