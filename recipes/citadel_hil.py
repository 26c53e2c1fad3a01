"""CITADEL-HIL for a CPU: L is word embeddings, H is CITADEL's expert vectors."""

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, Routed, Router, Static, TextInput
from counterpoint.encode import Transformer as Backbone
from counterpoint.learn import BM25Negatives, Contrastive, Fit, InterIso, RouterBalance, RouterSparsity, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, ZScore

heads = {
    "mean": Mean(Linear(128), normalise=True),
    "l": Static(projection=Linear(32, bias=False), normalise=True),
    "routed": Routed(Router("softmax", start="new"), projection=Linear(32), normalise=True),
}
encoder = Encoder(Backbone("minilm"), heads, query=TextInput(32), document=TextInput(180))
weights = {"mean": 20.0, "l": 1.0, "routed": 1.0}
search = {"weights": weights, "scale": "none", "exact": ["routed"], "idf": {"l": 1.0}}
low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(MaxSim("routed", exact=True, floor0=True))
expert, router = 20 * Dot("mean") + high, Contrastive("router", scorer=Dot("routed.router"))
citadel = Contrastive("expert", expert) + router + 1e-2 * RouterBalance("routed")
shapes = InterIso("l", 0.3, absolute=True, name="iso_l") + InterIso("routed", -0.3, False, name="iso_h")

recipe = Recipe(
    name="citadel-hil",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning; Li et al. 2023, CITADEL",
    about="CITADEL whose expert vectors are driven together, with word embeddings that are driven apart",
    model=Model(DualEncoder(encoder), search=search),
    scorer=low + expert,
    stages=[
        Fit("mean", what="projection", name="fit-mean"),
        Fit("l", what="projection", name="fit-l", documents=2000),
        Fit("routed", what="projection", name="fit-routed", documents=2000),
        Fit("l", what="idf", name="idf", documents=None),
        Train(
            citadel + 1e-4 * RouterSparsity("routed") + Contrastive("l", low) + shapes,
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
at = "model.encoder.query"
variants = {
    "marked": [f"{at}.query.marker=[unused0]", f"{at}.query.expand_to=32", f"{at}.document.marker=[unused1]"],
}
