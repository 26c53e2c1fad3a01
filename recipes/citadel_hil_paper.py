"""CITADEL-HIL with CITADEL's published settings and λ = −0.3. The choice of L is not from the paper."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Routed, Router, Static, TextInput
from counterpoint.encode import Transformer as Backbone
from counterpoint.learn import Contrastive, Fit, FromData, InterIso, RouterBalance, RouterSparsity, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, ZScore

heads = {
    "cls": Cls(Linear(128)),
    "l": Static(projection=Linear(128, bias=False), normalise=True),
    "routed": Routed(Router("softmax"), projection=Linear(32), normalise=True),
}
backbone = Backbone("google-bert/bert-base-uncased")
encoder = Encoder(backbone, heads, query=TextInput(32), document=TextInput(180))
weights = {"cls": 1.0, "l": 1.0, "routed": 1.0}
search = {"weights": weights, "scale": "none", "exact": ["routed"], "idf": {"l": 1.0}}
low, high = ZScore(MaxSim("l", idf=1.0)), ZScore(MaxSim("routed", exact=True, floor0=True))
expert, router = Dot("cls") + high, Contrastive("router", scorer=Dot("routed.router"))
citadel = Contrastive("expert", expert) + router + 1e-2 * RouterBalance("routed")
shapes = InterIso("l", 0.3, absolute=True, name="iso_l") + InterIso("routed", -0.3, False, name="iso_h")

recipe = Recipe(
    name="citadel-hil-paper",
    paper="Kim, Lee and Hwang 2024, HIL: hybrid isotropy learning; Li et al. 2023, CITADEL",
    about="CITADEL whose expert vectors are driven together, with word embeddings that are driven apart",
    model=Model(DualEncoder(encoder), search=search),
    scorer=low + expert,
    stages=[
        Fit("l", what="idf", name="idf", documents=None),
        Train(
            citadel + 1e-4 * RouterSparsity("routed") + Contrastive("l", low) + shapes,
            **{"epochs": 10, "batch": 8, "accumulate": 32, "lr": 2e-5, "weight_decay": 0.0, "warmup": 3000},
            negatives=(FromData(count=7),),
            clip=2.0,
        ),
    ],
    measures=("RR@10", "nDCG@10", "R@100"),
)
at = "model.encoder.query"
variants = {
    "marked": [f"{at}.query.marker=[unused0]", f"{at}.query.expand_to=32", f"{at}.document.marker=[unused1]"],
}
