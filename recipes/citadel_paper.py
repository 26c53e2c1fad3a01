"""CITADEL as published: BERT-base, whose masked-language-model head is the router."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, Routed, Router, TextInput, Transformer
from counterpoint.learn import Contrastive, FromData, RouterBalance, RouterSparsity, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim

heads = {"cls": Cls(Linear(128)), "routed": Routed(Router(), projection=Linear(32))}
backbone = Transformer("google-bert/bert-base-uncased")
encoder = Encoder(backbone, heads, query=TextInput(32), document=TextInput(180))
search = {"weights": {"cls": 1.0, "routed": 1.0}, "scale": "none", "exact": ["routed"]}
router = Contrastive("router", scorer=Dot("routed.router"))

recipe = Recipe(
    name="citadel-paper",
    paper="Li et al. 2023, CITADEL: conditional token interaction via dynamic lexical routing",
    about="each token under one key in queries and five in documents, in an inverted index",
    model=Model(DualEncoder(encoder), search=search),
    scorer=Dot("cls") + MaxSim("routed", exact=True, floor0=True),
    stages=[
        Train(
            Contrastive("expert") + router + 1e-2 * RouterBalance("routed") + 1e-4 * RouterSparsity("routed"),
            epochs=10,
            batch=8,
            accumulate=32,  # 32 GPUs with 8 queries each, which do not share negatives
            negatives=(FromData(count=7),),
            lr=2e-5,
            weight_decay=0.0,
            warmup=3000,
            clip=2.0,
        )
    ],
    measures=("RR@10", "nDCG@10", "R@100"),
)
