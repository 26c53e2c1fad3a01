"""ColBERTer's two-way dimension reduction as published, on DistilBERT. Start it from a ColBERT run."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import FromData, MarginMSE, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

both = ("query", "document")
heads = {
    "cls": Cls(Linear(128)),
    "tokens": TokenVectors(("[CLS]", "[SEP]"), both, projection=Linear(32)),
}
backbone = Transformer("distilbert/distilbert-base-uncased")
cls, tokens = Dot("cls"), MaxSim("tokens")

recipe = Recipe(
    name="colberter-tokens-paper",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="128 components a text, 32 a token, Margin-MSE on both; give it start= a run of ColBERT",
    model=Model(DualEncoder(Encoder(backbone, heads, query=TextInput(30), document=TextInput(200)))),
    scorer=Mix([cls, tokens]),
    stages=[
        Train(
            MarginMSE() + 0.5 * MarginMSE(name="cls", scorer=cls),
            steps=300_000,
            batch=32,
            negatives=(FromData(count=1),),
            lr=7e-6,
            weight_decay=0.0,
            warmup=0,
            schedule="cosine",
            clip=None,
            evaluate_every=4_000,
        )
    ],
    measures=("nDCG@10", "RR@10", "R@1000"),
)
terms, half = "stages.train.objective", 0.5 * cls + 0.5 * tokens
variants = {  # table 2: σ(γ) = ½ and one loss, as in COIL; other weights α_CLS (the recipe: 0.5)
    "fixed": [f"scorer={half.to_dict()}", f"{terms}={MarginMSE().to_dict()}"]
    + ["model.search={'weights': {'cls': 0.5, 'tokens': 0.5}, 'scale': 'none'}"],
    **{f"cls-{weight}": [f"{terms}.weights=[1, {weight}]"] for weight in (0.1, 0.2, 1)},
}
