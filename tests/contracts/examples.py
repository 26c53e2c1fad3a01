"""Examples of every part, from which the contract suite builds its cases.

`EXAMPLES` maps the name of a class to its examples. An example is a function that returns constructor
arguments; it is given the folder of a tiny BERT. Parts join by an entry here.
"""

from counterpoint.encode import (
    PUNCTUATION,
    Cls,
    DualEncoder,
    Encoder,
    Gate,
    Linear,
    Mean,
    Routed,
    Router,
    SparseTerms,
    Stack,
    Static,
    TextInput,
    TokenVectors,
    Transformer,
    Unit,
    WholeWords,
)
from counterpoint.learn import Contrastive, MarginMSE
from counterpoint.score import Dot, MaxSim, Mix, ZScore
from counterpoint.transform import FlowTraining, Normalise, Whitening


def encoder(tiny):
    heads = {"mean": Mean(normalise=True), "words": WholeWords(projection=Linear(3))}
    return Encoder(Transformer(str(tiny)), heads, document=TextInput(20, marker="[unused1]"))


EXAMPLES = {
    # encode
    "Transformer": [
        lambda tiny: {"source": str(tiny)},
        lambda tiny: {"source": str(tiny), "layers": 1},
        lambda tiny: {"source": str(tiny), "layers": 0, "random": True},
    ],
    "TextInput": [
        lambda tiny: {},
        lambda tiny: {"max_length": 32, "marker": "[unused0]", "expand_to": 32, "attend": True},
    ],
    "Linear": [
        lambda tiny: {"dim": 3, "in_dim": 5},
        lambda tiny: {"dim": 3, "bias": False, "activation": "tanh", "residual": True, "in_dim": 5},
    ],
    "Unit": [lambda tiny: {"in_dim": 5}],
    "Stack": [lambda tiny: {"layers": [Linear(4, activation="relu"), Linear(2)], "in_dim": 5}],
    "Cls": [
        lambda tiny: {"in_dim": 5},
        lambda tiny: {"projection": Linear(3), "normalise": True, "in_dim": 5},
    ],
    "Mean": [
        lambda tiny: {"in_dim": 5},
        lambda tiny: {"projection": Linear(3, bias=False), "in_dim": 5},
        lambda tiny: {"in_dim": 5, "tokenwise": [Normalise(), Whitening(5, rank=2)]},
    ],
    "TokenVectors": [
        lambda tiny: {"in_dim": 5},
        lambda tiny: {"skip": PUNCTUATION, "skip_sides": ("query", "document"), "in_dim": 5},
    ],
    "Static": [
        lambda tiny: {"in_dim": 5},
        lambda tiny: {
            "skip": PUNCTUATION,
            "projection": Linear(3, bias=False),
            "normalise": True,
            "in_dim": 5,
        },
    ],
    "WholeWords": [
        lambda tiny: {"in_dim": 5},
        lambda tiny: {
            "stem": "lower",
            "hash_bits": 8,
            "drop_punctuation": True,
            "projection": Linear(1),
            "in_dim": 5,
        },
    ],
    "Router": [
        lambda tiny: {"in_dim": 5, "out_dim": 4, "vocabulary": 7},
        lambda tiny: {
            "activation": "softmax",
            "start": "new",
            "in_dim": 5,
            "out_dim": 4,
            "vocabulary": 7,
        },
    ],
    "Routed": [
        lambda tiny: {"router": Router(in_dim=5, out_dim=4, vocabulary=7), "in_dim": 5},
        lambda tiny: {
            "router": Router(in_dim=5, out_dim=5, vocabulary=7),
            "keys": (2, 3),
            "threshold": 0.5,
            "projection": Linear(3),
            "normalise": True,
            "in_dim": 5,
        },
    ],
    "SparseTerms": [
        lambda tiny: {"importance": Router(in_dim=5, out_dim=4, vocabulary=7), "in_dim": 5},
        lambda tiny: {
            "importance": Router(start="new", bias=0.0, in_dim=5, out_dim=4, vocabulary=7),
            "gate": Router(in_dim=5, out_dim=4, vocabulary=7),
            "expansion": (1, 3),
            "pool": "sum",
            "threshold": 0.5,
            "in_dim": 5,
        },
    ],
    "Encoder": [
        lambda tiny: {
            "backbone": Transformer(str(tiny)),
            "heads": {"tokens": TokenVectors(projection=Linear(4)), "l": Static(projection=Linear(3))},
        },
        lambda tiny: {
            "backbone": Transformer(str(tiny)),
            "heads": {"routed": Routed(Router("softmax", "new"), projection=Linear(4))},
        },
        lambda tiny: {
            "backbone": Transformer(str(tiny)),
            "heads": {"terms": SparseTerms(Router(start="new", bias=0.0), Router(start="new"))},
        },
    ],
    "DualEncoder": [
        lambda tiny: {"query": encoder(tiny)},
        lambda tiny: {"query": encoder(tiny), "document": encoder(tiny)},
        lambda tiny: {
            "query": encoder(tiny),
            "document": encoder(tiny),
            "shared": {"mean": Stack([Linear(3), Unit()])},
        },
        lambda tiny: {
            "query": encoder(tiny),
            "shared": {"words": Linear(1)},
            "gates": {"words": Gate()},
        },
    ],
    "Gate": [lambda tiny: {"in_dim": 5}, lambda tiny: {"threshold": 0.25, "in_dim": 5}],
    "InteractiveEncoder": [
        lambda tiny: {"backbone": Transformer(str(tiny)), "head": Linear(1)},
        lambda tiny: {
            "backbone": Transformer(str(tiny)),
            "head": Stack([Linear(8, activation="tanh"), Linear(1)]),
            "max_length": 32,
        },
    ],
    # transform: of vectors of 4 components
    "Normalise": [lambda tiny: {}],
    "Whitening": [
        lambda tiny: {"dim": 4},
        lambda tiny: {"dim": 4, "rank": 2, "power": -0.25, "centre": False, "normalise": True},
        lambda tiny: {"dim": 4, "shrinkage": 0.1},
        lambda tiny: {"dim": 4, "shrinkage": "oas"},
    ],
    "Nice": [
        lambda tiny: {"dim": 4, "width": 8, "layers": 1, "fitting": FlowTraining(steps=3, batch=50)},
        lambda tiny: {
            "dim": 4,
            "couplings": 1,
            "width": 8,
            "start": "released",
            "fitting": FlowTraining(steps=3),
        },
    ],
    "Glow": [
        lambda tiny: {"dim": 4, "fitting": FlowTraining(steps=3, sample=100, batch=50, seed=1)},
        lambda tiny: {
            "dim": 4,
            "levels": [1, 2],
            "width": 8,
            "coupling": "affine",
            "mixing": "linear",
            "fitting": FlowTraining(steps=3, epochs=2, lr=1e-3),
        },
    ],
    # score: on the pooled set "cls" and the set "words"
    "Dot": [lambda tiny: {"on": "cls"}, lambda tiny: {"on": "cls", "normalise": True}],
    "MaxSim": [
        lambda tiny: {"on": "words"},
        lambda tiny: {"on": "words", "exact": True},
        lambda tiny: {"on": "words", "floor0": True, "normalise": True},
        lambda tiny: {"on": "words", "idf": 0.5},
    ],
    "ZScore": [
        lambda tiny: {"of": MaxSim("words", floor0=True)},
        lambda tiny: {"of": MaxSim("words", idf=1.0), "momentum": 0.5, "detach": True},
    ],
    "Sum": [lambda tiny: {"parts": [Dot("cls"), MaxSim("words")], "weights": [0.3, 1.0]}],
    "Mix": [
        lambda tiny: {"parts": [Dot("cls"), MaxSim("words", exact=True), MaxSim("words")]},
        lambda tiny: {"parts": [Dot("cls"), ZScore(MaxSim("words"))]},
    ],
    # learn: losses, on steps with the pooled set "cls" and the set "words"
    "Contrastive": [
        lambda tiny: {"scale": 20.0, "temperature": 0.5},
        lambda tiny: {"symmetric": True, "name": "both ways"},
        lambda tiny: {"negatives": "positives", "scorer": MaxSim("words")},
    ],
    "CachedContrastive": [lambda tiny: {"scale": 2.0}],
    "NegativeLogLikelihood": [lambda tiny: {}, lambda tiny: {"scorer": MaxSim("words")}],
    "PairwiseCrossEntropy": [lambda tiny: {}, lambda tiny: {"scorer": 0.5 * MaxSim("words")}],
    "PairwiseSoftmax": [lambda tiny: {}, lambda tiny: {"scorer": MaxSim("words")}],
    "MultiLabelMargin": [lambda tiny: {}, lambda tiny: {"margin": 0.2, "scorer": Dot("cls")}],
    "MarginMSE": [
        lambda tiny: {},
        lambda tiny: {"name": "mixed", "scorer": Mix([Dot("cls"), MaxSim("words")])},
    ],
    "GateSparsity": [lambda tiny: {"on": "words"}],
    "Orthogonality": [lambda tiny: {"on": "cls"}, lambda tiny: {"on": "cls", "seed": 5, "name": "apart"}],
    "ResidualMargin": [
        lambda tiny: {},
        lambda tiny: {"xi": 0.5, "lam": 2.0, "scorer": MaxSim("words")},
    ],
    "PositiveDistance": [lambda tiny: {"on": "cls"}],
    "InterIso": [
        lambda tiny: {"on": "words"},
        lambda tiny: {"on": "words", "weight": -0.3, "name": "iso_h"},
        lambda tiny: {"on": "words", "weight": -0.3, "absolute": True},
    ],
    "CosReg": [lambda tiny: {"on": "words", "weight": 0.2}],
    "IStar": [lambda tiny: {"on": "words"}, lambda tiny: {"on": "words", "weight": -0.6, "zeta": 0.5}],
    "RouterBalance": [lambda tiny: {"on": "words"}],
    "RouterSparsity": [lambda tiny: {"on": "words", "name": "sparse"}],
    "TermSparsity": [lambda tiny: {"on": "words", "norm": "l1"}],
    "KLDivergence": [lambda tiny: {"temperature": 2.0}, lambda tiny: {"scorer": MaxSim("words")}],
    "Objective": [
        lambda tiny: {"losses": [MarginMSE(), Contrastive(name="dense")], "weights": [1.0, 0.1]},
        lambda tiny: {"losses": [MarginMSE(), MarginMSE(scorer=MaxSim("words"))]},
    ],
    # model
    "Model": [
        lambda tiny: {"encoder": DualEncoder(encoder(tiny))},
        lambda tiny: {
            "encoder": DualEncoder(Encoder(Transformer(str(tiny)), {"cls": Cls()})),
            "transforms": {"cls": [Normalise(), Whitening(16)]},
            "search": {"fusion": "rrf"},
        },
    ],
}
