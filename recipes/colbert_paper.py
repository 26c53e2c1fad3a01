"""ColBERT as published: BERT-base, 128 components per token, softmax over triples."""

from counterpoint.encode import (
    PUNCTUATION,
    DualEncoder,
    Encoder,
    Linear,
    TextInput,
    TokenVectors,
    Transformer,
)
from counterpoint.learn import FromData, PairwiseCrossEntropy, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import MaxSim

tokens = TokenVectors(skip=PUNCTUATION, projection=Linear(128, bias=False), normalise=True)
encoder = Encoder(
    Transformer("google-bert/bert-base-uncased"),
    heads={"tokens": tokens},
    query=TextInput(32, marker="[unused0]", expand_to=32),
    document=TextInput(180, marker="[unused1]"),
)

recipe = Recipe(
    name="colbert-paper",
    paper="Khattab and Zaharia 2020, ColBERT: efficient and effective passage search",
    about="late interaction over token vectors, trained on (query, positive, negative)",
    model=Model(DualEncoder(encoder), search={"weights": {"tokens": 1.0}}),
    stages=[
        Train(
            PairwiseCrossEntropy(),
            MaxSim("tokens"),
            steps=200_000,
            batch=32,
            negatives=(FromData(count=1),),
            lr=3e-6,
            weight_decay=0.0,
            warmup=0,
            schedule="constant",
            clip=2.0,
            evaluate_every=10_000,
        )
    ],
    measures=("RR@10", "nDCG@10", "R@100"),
)
variants = {"beir": ["model.encoder.query.document.max_length=300"]}  # HIL's table 9
