"""ColBERTer as published, on DistilBERT. Start it from a run of `colberter-tokens-paper`."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Gate, Linear, TextInput, Transformer, WholeWords
from counterpoint.learn import FromData, GateSparsity, MarginMSE, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

heads = {"cls": Cls(Linear(128)), "words": WholeWords(stem="nltk", projection=Linear(32))}
backbone = Transformer("distilbert/distilbert-base-uncased")
encoder = Encoder(backbone, heads, query=TextInput(30), document=TextInput(200))
cls, words = Dot("cls"), MaxSim("words", floor0=True)

recipe = Recipe(
    name="colberter-paper",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="128 components a text, 32 a distinct word, stop words dropped by a learnt gate",
    model=Model(DualEncoder(encoder, gates={"words": Gate()})),
    scorer=Mix([cls, words]),
    stages=[
        Train(
            MarginMSE() + 0.1 * MarginMSE(name="cls", scorer=cls) + 0.75 * GateSparsity("words"),
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
    start_names={"query.heads.tokens.": "query.heads.words."},
)
terms, dense = "stages.train.objective", MarginMSE(name="cls", scorer=cls)
bare = {weight: (MarginMSE() + weight * dense).to_dict() for weight in (0.1, 0.5)}
variants = {
    # Table 3: no gate, and other weights α_CLS and α_CS (the recipe: 0.1 and 0.75).
    "words": ["model.encoder.gates=None", f"{terms}={bare[0.1]}"],
    "words-cls-0.5": ["model.encoder.gates=None", f"{terms}={bare[0.5]}"],
    **{f"cs-{weight}": [f"{terms}.weights=[1, 0.1, {weight}]"] for weight in (0.5, 1)},
    "cs-1-cls-0.5": [f"{terms}.weights=[1, 0.5, 1]"],
    # Figure 4: fewer components; set start= to a run of this recipe.
    "dim-16": [f"model.encoder.shared={ {'words': Linear(16).to_dict()} }"],
}
