"""The fine-tuned models of `isotropy_sources.py` as recipes, and the rule that chooses one of them.

Rows, seeds and the rule were fixed before anything was measured on test queries.
"""

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, TokenVectors, Transformer
from counterpoint.learn import (
    FromData,
    InterIso,
    MultiLabelMargin,
    PairwiseCrossEntropy,
    PairwiseSoftmax,
    Train,
)
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import Dot, MaxSim

QUERY, DOCUMENT = 32, 180  # positions
LAYERS = 5  # of six: a cone up to here, which contrastive training removed only in the last
CONE = 0.2  # the least mean cosine of a cone; the paper's models have .22
WEIGHT = -0.1  # of InterIso, HIL's for an anisotropic space
VARIANTS = {
    "ColBERT": ("pairwise", "cross-entropy", "anisotropic"),
    "RepBERT": ("pairwise", "margin", "anisotropic"),
}


def texts():
    return {"query": TextInput(QUERY), "document": TextInput(DOCUMENT)}


def recipe(kind, variant, seed, steps, layers=LAYERS):
    """A fine-tuning on MiniLM's first layers; all of its parameters learn.

    Args:
        kind: "ColBERT": the sum of a query's highest cosines over the hidden states of all tokens, without a
            projection. "RepBERT": the cosine of their means.
        variant: "pairwise" has the loss of Isotropic DR, "cross-entropy" ColBERT's own, "margin" RepBERT's
            own over inner products, "anisotropic" that of Isotropic DR and HIL's regulariser.
        seed: of the draws.
        steps: of 16 queries, each with a positive and a negative that is drawn from its list.
        layers: of MiniLM, from the first.
    """
    if kind == "ColBERT":
        on, head, scorer = "tokens", TokenVectors(normalise=True), MaxSim("tokens")
    else:  # with a factor of 1, cosines differ too little for so few steps to matter
        on, head, scorer = "mean", Mean(normalise=variant != "margin"), 20.0 * Dot("mean")
    objective, scorer = {
        "pairwise": (PairwiseSoftmax(), scorer),
        "cross-entropy": (PairwiseCrossEntropy(), scorer),
        "margin": (MultiLabelMargin(), Dot("mean")),
        "anisotropic": (PairwiseSoftmax() + InterIso(on, WEIGHT), scorer),
    }[variant]
    encoder = Encoder(Transformer("minilm", layers=layers), {on: head}, **texts())
    training = Train(
        objective, scorer, steps=steps, batch=16, negatives=(FromData(count=1),), lr=2e-5, keep="last"
    )
    return Recipe(
        name="row",
        paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
        model=Model(DualEncoder(encoder), search={"weights": {on: 1.0}}),
        stages=[training],
        seed=seed,
        data=DataSettings(development=None, held_out=0),
    )


def chosen(found):
    """The variant with the highest nDCG@10 on held-out queries of those that are a cone.

    If none is, the one that comes nearest to it.
    """
    cones = [name for name, measured in found.items() if measured["avgcos"] >= CONE]
    if not cones:
        return max(found, key=lambda name: found[name]["avgcos"])
    return max(cones, key=lambda name: found[name]["nDCG@10"])
