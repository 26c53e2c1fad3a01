"""Uni-ColBERTer as published: one number per whole word, matched exactly. Start it from `colberter-paper`."""

from counterpoint.encode import Cls, DualEncoder, Encoder, Gate, Linear, TextInput, Transformer, WholeWords
from counterpoint.learn import FromData, GateSparsity, MarginMSE, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

heads = {"cls": Cls(Linear(128)), "words": WholeWords(stem="nltk", projection=Linear(32))}
backbone = Transformer("distilbert/distilbert-base-uncased")
encoder = Encoder(backbone, heads, query=TextInput(30), document=TextInput(200))
cls, words = Dot("cls"), MaxSim("words", exact=True, floor0=True)

recipe = Recipe(
    name="uni-colberter-paper",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="128 components a text, one number a distinct word, matched by the word's hash",
    model=Model(DualEncoder(encoder, gates={"words": Gate()}, shared={"words": Linear(1)}), codec="float16"),
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
)
variants = {
    "dim-8": [f"model.encoder.shared={ {'words': Linear(8).to_dict()} }"]
}  # ColBERTer with exact matching (w. EM), tables 4 and 5
