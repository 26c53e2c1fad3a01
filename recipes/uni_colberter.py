"""Uni-ColBERTer for a CPU: one number per whole word, matched exactly. Start it from `colberter`."""

from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Mean, TextInput, Transformer, WholeWords
from counterpoint.learn import BM25Negatives, GateSparsity, MarginMSE, ModelTeacher, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

text = TextInput(180)
heads = {
    "mean": Mean(Linear(128), normalise=True),
    "words": WholeWords(stem="nltk", projection=Linear(32), normalise=True),
}
encoder = Encoder(Transformer("minilm"), heads, query=text, document=text)
dense, words = 10 * Dot("mean"), MaxSim("words", exact=True, floor0=True)

recipe = Recipe(
    name="uni-colberter",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="one number a distinct word in an inverted index; give it start=runs/colberter",
    model=Model(DualEncoder(encoder, gates={"words": Gate()}, shared={"words": Linear(1)}), codec="float16"),
    scorer=Mix([dense, words]),
    stages=[
        Train(
            MarginMSE() + 0.1 * MarginMSE(name="dense", scorer=dense) + 0.75 * GateSparsity("words"),
            steps=300,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            teacher=ModelTeacher("minilm-tokens", scorer=5 * Dot("mean") + 0.5 * MaxSim("tokens")),
            learn=("query.heads.*", "gates.*", "shared.*", "scorer.*"),
            lr=1e-3,
            lr_factors={"gates.*": 10.0},
            remember=2.0,
            evaluate_every=100,
        )
    ],
)
