"""Isotropic DR at a size for a CPU: ColBERT without a projection is trained, then whitened token by token."""

from counterpoint.encode import PUNCTUATION, DualEncoder, Encoder, TextInput, TokenVectors, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Fit, Train
from counterpoint.model import Model
from counterpoint.recipe import DataSettings, Recipe
from counterpoint.score import MaxSim
from counterpoint.transform import Normalise, Whitening

tokens = TokenVectors(skip=PUNCTUATION)  # whitened as long as they come; training takes their cosines
encoder = Encoder(
    Transformer("minilm"), heads={"tokens": tokens}, query=TextInput(32), document=TextInput(180)
)

recipe = Recipe(
    name="isotropy",
    paper="Jung et al. 2023, Isotropic representation can improve dense retrieval",
    about="ColBERT on the embedded MiniLM without a projection, then whitening of all its token vectors",
    model=Model(
        DualEncoder(encoder),
        transforms={"tokens": [Whitening(384), Normalise()]},  # or Nice(384), or Glow(384)
        search={"weights": {"tokens": 1.0}},
    ),
    stages=[
        Train(
            Contrastive(scale=8.0),
            MaxSim("tokens", normalise=True),
            steps=100,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            lr=2e-5,
            evaluate_every=25,
        ),
        Fit("tokens", documents=2000, queries=True),
    ],
    data=DataSettings(held_out=300),
)
