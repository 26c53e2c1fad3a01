"""A cross-encoder for a CPU: monoBERT's input on MiniLM, one BM25 negative per positive."""

from counterpoint.encode import InteractiveEncoder, Linear, Transformer
from counterpoint.learn import BM25Negatives, NegativeLogLikelihood, Train
from counterpoint.recipe import DataSettings, Recipe

recipe = Recipe(
    name="cross-encoder",
    paper="Nogueira and Cho 2019, Passage re-ranking with BERT",
    about="query and document read together by the embedded MiniLM, for a CPU; reranks what BM25 found",
    model=InteractiveEncoder(Transformer("minilm"), Linear(1), max_length=256),
    stages=[
        Train(
            NegativeLogLikelihood(),
            steps=400,
            batch=8,
            negatives=(BM25Negatives(count=1),),
            lr=5e-5,
            evaluate_every=100,
        )
    ],
    measures=("nDCG@10", "RR@10"),
    data=DataSettings(held_out=30, depth=50),
)
variants = {"input": ["stages.0.mask_matches=0.15"]}
