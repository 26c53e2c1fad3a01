"""COIL for a CPU: token vectors of 32 components, matched exactly, and one pooled vector per text."""

from counterpoint.encode import DualEncoder, Encoder, Linear, Mean, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Fit, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot, MaxSim

text, both = TextInput(180), ("query", "document")
heads = {
    "mean": Mean(Linear(128), normalise=True),
    "tokens": TokenVectors(("[CLS]", "[SEP]"), both, projection=Linear(32), normalise=True),
}
search = {"weights": {"mean": 20.0, "tokens": 2.0}, "scale": "none", "exact": ["tokens"]}

recipe = Recipe(
    name="coil",
    paper="Gao et al. 2021, COIL: revisit exact lexical match with contextualized inverted lists",
    about="a token matches the same token only, by its context; COIL-full with small vectors",
    model=Model(DualEncoder(Encoder(Transformer("minilm"), heads, query=text, document=text)), search=search),
    scorer=20 * Dot("mean") + 2 * MaxSim("tokens", exact=True, floor0=True),
    stages=[
        Fit("mean", what="projection", name="fit-mean"),
        Fit("tokens", what="projection", name="fit-tokens", documents=2000),
        Train(
            Contrastive(),
            steps=300,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            learn=("query.heads.*",),
            lr=1e-3,
            remember=2.0,
            evaluate_every=100,
        ),
    ],
)
