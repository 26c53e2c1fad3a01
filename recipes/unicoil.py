"""UniCOIL-Tok for a CPU: one number per token, matched exactly, in an inverted index."""

from counterpoint.encode import DualEncoder, Encoder, Linear, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim

text, both = TextInput(180), ("query", "document")
tokens = TokenVectors(("[CLS]", "[SEP]"), both, projection=Linear(1, activation="relu"))
search = {"weights": {"tokens": 1.0}, "scale": "none", "exact": ["tokens"]}

recipe = Recipe(
    name="unicoil",
    paper="Lin and Ma 2021, A few brief notes on DeepImpact, COIL, and a conceptual framework",
    about="a learnt weight for every token and nothing else",
    model=Model(
        DualEncoder(Encoder(Transformer("minilm"), {"tokens": tokens}, query=text, document=text)),
        search=search,
        codec="float16",
    ),
    scorer=MaxSim("tokens", exact=True, floor0=True),
    stages=[
        Train(
            Contrastive(),
            steps=300,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            learn=("query.heads.*",),  # 384 numbers and a bias; the paper also trains the backbone
            lr=1e-2,
            remember=2.0,
            evaluate_every=100,
        )
    ],
)
