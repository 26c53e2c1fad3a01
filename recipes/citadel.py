"""CITADEL for a CPU: tokens match only under vocabulary keys that a router chooses."""

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Routed, Router, TextInput, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Fit, RouterBalance, RouterSparsity, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim

heads = {
    "mean": Mean(Linear(128), normalise=True),
    "routed": Routed(Router(start="new"), projection=Linear(32), normalise=True),
}
encoder = Encoder(Transformer("minilm"), heads, query=TextInput(32), document=TextInput(180))
search = {"weights": {"mean": 20.0, "routed": 1.0}, "scale": "none", "exact": ["routed"]}
router = Contrastive("router", scorer=Dot("routed.router"))

recipe = Recipe(
    name="citadel",
    paper="Li et al. 2023, CITADEL: conditional token interaction via dynamic lexical routing",
    about="each token under one key in queries and five in documents, in an inverted index",
    model=Model(DualEncoder(encoder), search=search),
    scorer=20 * Dot("mean") + MaxSim("routed", exact=True, floor0=True),
    stages=[
        Fit("mean", what="projection", name="fit-mean"),
        Fit("routed", what="projection", name="fit-routed", documents=2000),
        Train(
            Contrastive("expert") + router + 1e-2 * RouterBalance("routed") + 1e-4 * RouterSparsity("routed"),
            steps=300,
            batch=16,
            chunk=16,
            negatives=(BM25Negatives(count=1),),
            learn=("query.heads.*",),
            remember=1.0,
            lr=1e-4,
            evaluate_every=100,
        ),
    ],
)
