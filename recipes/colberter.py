"""ColBERTer for a CPU: one vector per text, one per whole word, and a gate that weights the words."""

from counterpoint.encode import DualEncoder, Encoder, Gate, Linear, Mean, TextInput, Transformer, WholeWords
from counterpoint.learn import BM25Negatives, Fit, GateSparsity, MarginMSE, ModelTeacher, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

text = TextInput(180)
heads = {
    "mean": Mean(Linear(128), normalise=True),
    "words": WholeWords(stem="nltk", projection=Linear(32), normalise=True),
}
encoder = Encoder(Transformer("minilm"), heads, query=text, document=text)
dense, words = 10 * Dot("mean"), MaxSim("words", floor0=True)

recipe = Recipe(
    name="colberter",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="128 components a text, 32 a distinct word, weighed by a learnt gate",
    model=Model(DualEncoder(encoder, gates={"words": Gate()})),
    scorer=Mix([dense, words]),
    stages=[
        Fit("mean", what="projection", name="fit-mean"),
        Fit("words", what="projection", name="fit-words", documents=2000),
        Train(
            MarginMSE() + 0.1 * MarginMSE(name="dense", scorer=dense) + 0.1 * GateSparsity("words"),
            steps=300,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            teacher=ModelTeacher("minilm-tokens", scorer=5 * Dot("mean") + 0.5 * MaxSim("tokens")),
            learn=("query.heads.*", "gates.*", "scorer.*"),
            lr=1e-3,
            lr_factors={"gates.*": 10.0, "scorer.*": 30.0},
            remember=2.0,
            evaluate_every=100,
        ),
    ],
)
