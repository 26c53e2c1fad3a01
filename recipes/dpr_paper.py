"""DPR as published: two BERT-base encoders, in-batch negatives and one BM25 negative."""

from counterpoint.encode import Cls, DualEncoder, Encoder, TextInput, Transformer
from counterpoint.learn import BM25Negatives, Contrastive, Train
from counterpoint.model import Model
from counterpoint.recipe import Recipe
from counterpoint.score import Dot


def tower() -> Encoder:
    """BERT-base and its first hidden state."""
    text = TextInput(256)
    return Encoder(Transformer("google-bert/bert-base-uncased"), {"cls": Cls()}, query=text, document=text)


recipe = Recipe(
    name="dpr-paper",
    paper="Karpukhin et al. 2020, Dense passage retrieval for open-domain question answering",
    about="one vector a text from two encoders, trained against the batch and a BM25 negative",
    model=Model(DualEncoder(tower(), tower()), search={"weights": {"cls": 1.0}, "scale": "none"}),
    stages=[
        Train(
            Contrastive(),
            Dot("cls"),
            epochs=40,
            batch=128,
            chunk=16,
            negatives=(BM25Negatives(count=1),),
            lr=1e-5,
            weight_decay=0.0,
            warmup=1237,
            clip=2.0,
            keep="best",
        )
    ],
    measures=("R@20", "R@100", "RR@10"),
)
