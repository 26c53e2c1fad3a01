"""ColBERTer's first step for a CPU: one small vector per text and one per token."""

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Fit, MarginMSE, ModelTeacher, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim, Mix

text, both = TextInput(180), ("query", "document")
heads = {
    "mean": Mean(Linear(128), normalise=True),
    "tokens": TokenVectors(("[CLS]", "[SEP]"), both, projection=Linear(32), normalise=True),
}
dense, tokens = 10 * Dot("mean"), MaxSim("tokens")

recipe = Recipe(
    name="colberter-tokens",
    paper="Hofstätter et al. 2022, Introducing neural bag of whole-words with ColBERTer",
    about="two-way dimension reduction before words: 128 components a text, 32 a token; the baseline of BOW²",
    model=Model(DualEncoder(Encoder(Transformer("minilm"), heads, query=text, document=text))),
    scorer=Mix([dense, tokens]),
    stages=[
        Fit("mean", what="projection", name="fit-mean"),
        Fit("tokens", what="projection", name="fit-tokens", documents=2000),
        Train(
            MarginMSE() + 0.5 * MarginMSE(name="dense", scorer=dense),
            steps=300,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            teacher=ModelTeacher("minilm-tokens", scorer=5 * Dot("mean") + 0.5 * MaxSim("tokens")),
            learn=("query.heads.*", "scorer.*"),
            lr=1e-3,
            remember=2.0,
            evaluate_every=100,
        ),
    ],
)
