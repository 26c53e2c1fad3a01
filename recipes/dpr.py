"""A dense model for a CPU: mean-pooled MiniLM, cosine, in-batch and BM25 negatives."""

from counterpoint.encode import DualEncoder, Encoder, Mean, TextInput, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot

encoder = Encoder(
    Transformer("minilm"), {"mean": Mean(normalise=True)}, query=TextInput(64), document=TextInput(256)
)

recipe = Recipe(
    name="dpr",
    paper="Karpukhin et al. 2020, Dense passage retrieval for open-domain question answering",
    about="one vector a text from the embedded MiniLM, for a CPU: some minutes on a small collection",
    model=Model(DualEncoder(encoder), search={"weights": {"mean": 1.0}}),
    stages=[
        Train(
            Contrastive(scale=20.0),
            Dot("mean"),
            steps=100,
            batch=16,
            negatives=(BM25Negatives(count=1),),
            lr=2e-5,
            evaluate_every=50,
        )
    ],
)
