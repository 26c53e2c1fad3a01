"""A start without retrieval training in its upper layers, and the rule that chooses how many are new.

MiniLM was trained for retrieval. Here its upper layers are drawn anew: a seed has a start of its own, from
which all of its rows begin. `CANDIDATES` are the numbers of new layers that are tried, with one seed.
"""

import torch
from benchmarks.papers.roc_rows import SIZES

from counterpoint.encode import Transformer
from counterpoint.recipe import change, load_recipe

CANDIDATES = (2, 3, 4, 6)  # new layers, of MiniLM's six
FAILURES = 0.2  # of the queries: the dense half must fail on more


def write_start(folder, fresh, seed, source="roc:naive"):
    """Save the model of a recipe whose upper `fresh` layers are new; a folder that is there is kept."""
    if folder.is_dir():
        return
    sizes = [f"model.encoder.query.{side}.max_length={n}" for side, n in SIZES.items()]
    model = change(load_recipe(source), sizes).declared_model().setup()
    torch.manual_seed(seed)
    new = Transformer("minilm", random=True).setup().model_.encoder.layer
    layers = model.encoder.query.backbone.model_.encoder.layer
    for at in range(len(layers) - fresh, len(layers)):
        layers[at].load_state_dict(new[at].state_dict())
    model.save(folder)


def chosen(tried):
    """The number of new layers to use, and whether it meets the rule.

    The rule: the fewest new layers with which the naive sum's vectors answer more of the held-out queries
    than their start does, and fail on more than `FAILURES` of them. If there is none: of those that answer
    more than their start, the one that fails most; if none does, the most new layers.

    Args:
        tried: by number of new layers, the shares of queries that fail: of `dense`, and of `start`.
    """
    learnt = [fresh for fresh in sorted(tried) if tried[fresh]["dense"] < tried[fresh]["start"]]
    enough = [fresh for fresh in learnt if tried[fresh]["dense"] > FAILURES]
    if enough:
        return enough[0], True
    return (max(learnt, key=lambda fresh: tried[fresh]["dense"]) if learnt else max(tried)), False
