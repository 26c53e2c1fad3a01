"""The rows of `daft.py`: models cut from MiniLM, stages of training, and the recipe of each row."""

import math
from dataclasses import replace
from itertools import product

from counterpoint.encode import (
    Cls,
    DualEncoder,
    Encoder,
    Linear,
    Mean,
    Stack,
    TextInput,
    Transformer,
    Unit,
)
from counterpoint.learn import (
    AlignmentStop,
    CachedContrastive,
    Contrastive,
    NegativeCache,
    PositiveDistance,
    Train,
    WatchSettings,
)
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot

CANDIDATES, SCALE, DIM = 64, 20.0, 256
EQUAL_SCORES = math.log(1 + CANDIDATES)  # the loss of a collapsed model (DAFT, equation 7)
DOCUMENTS = {  # document encoders; "far" lies in a space of its own after a random layer
    "cls": lambda: (Transformer("minilm"), Cls()),
    "cls, far": lambda: (Transformer("minilm"), Cls(projection=Linear(384))),
    "mean": lambda: (Transformer("minilm"), Mean()),
    "mean, far": lambda: (Transformer("minilm"), Mean(projection=Linear(384))),
    "cls of 4 layers": lambda: (Transformer("minilm", layers=4), Cls()),
}
ALIGNED = ("no alignment", "alignment")


def light(head):
    """A query encoder of two layers."""
    return Transformer("minilm", layers=2), head


def model_of(documents, query, length, shared):
    """Two encoders, and one projection for both or one for each."""
    projection = Stack([Linear(DIM), Unit()])
    sides = []
    for backbone, head in (query, DOCUMENTS[documents]()):
        if not shared:
            head = type(head)(projection=Stack([Linear(DIM), Unit()]))
        sides.append(Encoder(backbone, {"v": head}, query=TextInput(32), document=TextInput(length)))
    encoder = DualEncoder(*sides, {"v": projection} if shared else None)
    return Model(encoder, search={"weights": {"v": 1.0}, "scale": "none"})


def stages_of(arm, steps, align, delta=None):
    """All arms have the same number of steps in all; alignment spends some of them on the query encoder."""
    common = {"batch": 16, "warmup": 20, "schedule": "constant", "keep": "last"}
    common["watch"] = WatchSettings(every=25)
    cached = {**common, "cache": NegativeCache(size=2048, groups=CANDIDATES, scale=SCALE)}
    fine_tune = {"name": "fine-tune", "lr": 2e-5}
    if arm == "batch":
        loss = Contrastive(scale=SCALE)
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **common)]
    loss = CachedContrastive(scale=SCALE)
    if arm == "alternating":  # one encoder a step, in place of a stage of alignment
        turns = {"alternate": ("query.*", "document.*")}
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **turns, **cached)]
    if arm == "no alignment":
        return [Train(loss, steps=(n := steps + align), evaluate_every=n, **fine_tune, **cached)]
    stop = AlignmentStop(patience=4, every=50, delta=delta)
    first = {"name": "align", "lr": 2e-4, "learn": ("query.*",), "stop": stop}
    return [
        Train(CachedContrastive(scale=SCALE), steps=align, evaluate_every=align, **first, **cached),
        Train(loss, steps=steps, evaluate_every=steps, **fine_tune, **cached),
    ]


def recipe_of(name, model, stages, seed, held_out=300):
    return Recipe(
        name=name,
        paper="Leonhardt et al. 2022, Distribution-aligned fine-tuning",
        model=model,
        stages=stages,
        scorer=Dot("v"),
        data=DataSettings(development=None, held_out=held_out),
        seed=seed,
    )


def collapse_rows(seeds):
    """By name and seed: recipes. A query encoder reads [CLS], as DAFT's do, unless the row says otherwise."""
    chosen = [(documents, light(Cls()), True, arm) for documents in DOCUMENTS for arm in ALIGNED]
    chosen += [(documents, light(Cls()), True, "batch") for documents in ("cls", "cls of 4 layers")]
    chosen.append(("cls", light(Cls()), True, "alternating"))
    rows = {
        f"{documents}; {arm}": (documents, query, shared, arm) for documents, query, shared, arm in chosen
    }
    rows |= {
        f"mean, far, queries by mean; {arm}": ("mean, far", light(Mean()), True, arm)
        for arm in (*ALIGNED, "batch")
    }
    random = Transformer("minilm", layers=2, random=True), Cls()
    embeddings = Transformer("minilm", layers=0), Mean()
    rows |= {
        f"cls; alignment, {what}": ("cls", query, shared, "alignment")
        for what, query, shared in (
            ("own projections", light(Cls()), False),
            ("random query encoder", random, True),
            ("no self-attention", embeddings, True),
        )
    }
    return {
        (name, seed): recipe_of(
            f"{name}; seed {seed}", model_of(documents, query, 48, shared), stages_of(arm, 150, 200), seed
        )
        for seed in seeds
        for name, (documents, query, shared, arm) in rows.items()
    }


COLLAPSE_PAIRS = (  # fixed before rows were trained with several seeds
    *((f"{documents}; {ALIGNED[1]}", f"{documents}; {ALIGNED[0]}") for documents in DOCUMENTS),
    *(
        (f"mean, far, queries by mean; {arm}", "mean, far, queries by mean; no alignment")
        for arm in ("alignment", "batch")
    ),
    *((f"{documents}; batch", f"{documents}; no alignment") for documents in ("cls", "cls of 4 layers")),
    ("cls; alternating", "cls; no alignment"),
    ("cls; alternating", "cls; alignment"),
    *(
        (f"cls; alignment, {what}", "cls; alignment")
        for what in ("own projections", "random query encoder", "no self-attention")
    ),
)


KEPT = {
    "6 layers": None,
    "4 layers, the first": 4,
    "4 layers, first and last": [0, 1, 4, 5],
    "4 layers, first and last, by distance": [0, 1, 4, 5],
    "2 layers, the first": 2,
    "2 layers, first and last": [0, 5],
    "2 layers, first and last, by distance": [0, 5],
    "2 layers, first and last, by distance, 600 steps": [0, 5],
}


def layer_rows(seeds):
    """Query encoders by which of MiniLM's six layers they keep, aligned by the loss or by distance.

    By name and seed, as `collapse_rows`.
    """
    rows = {}
    for seed, (name, layers) in product(seeds, KEPT.items()):
        query = Transformer("minilm", layers=layers), Mean()
        # The paper's δ calls cut encoders aligned at the start; so no δ, but the end of the estimate's fall.
        delta = None if layers is None else -1e6
        align, fine_tune = stages_of("alignment", 100, 600 if "600" in name else 200, delta)
        if "by distance" in name:
            changes = {"objective": PositiveDistance("v"), "mirror": True, "batch": 64, "cache": None}
            align = replace(align, **changes, stop=None)
        model = model_of("mean", query, 64, True)
        rows[name, seed] = recipe_of(f"{name}; seed {seed}", model, [align, fine_tune], seed)
    return rows


WHOLE = "6 layers"
LAYER_PAIRS = (  # fixed before rows were trained with several seeds
    *((name, WHOLE) for name in KEPT if name != WHOLE),
    *((f"{n} layers, first and last, by distance", f"{n} layers, first and last") for n in (2, 4)),
    *((f"{n} layers, first and last", f"{n} layers, the first") for n in (2, 4)),
)
